//! A lock around several operations: one PE after the other changes two numbers of PE 0.

use shmem::Lock;

shmem::symmetric! {
    static LOCK: Lock;
    static NUMBERS: [u64; 2];
}

const TIMES: u64 = 25;

fn main() {
    let shmem = shmem::init();
    let numbers = NUMBERS.elements(&shmem);
    for _ in 0..TIMES {
        let _turn = shmem.lock(LOCK.element(&shmem));
        let mut copy = [0; 2];
        shmem.get(&mut copy, numbers, 0);
        assert_eq!(copy[1], copy[0] * copy[0]);
        let next = copy[0] + 1;
        shmem.put(numbers, &[next, next * next], 0);
    }
    shmem.barrier_all();
    let last = shmem.g(numbers.at(0), 0);
    assert_eq!(last, TIMES * shmem.n_pes() as u64);
    println!("PE {} has seen {last} turns", shmem.my_pe());
}
