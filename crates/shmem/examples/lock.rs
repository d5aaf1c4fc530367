//! A lock around several operations: one PE after the other changes two numbers of PE 0.

use shmem::Lock;

shmem::symmetric! {
    static LOCK: Lock;
    static NUMBERS: [u64; 2];
}

const TIMES: u64 = 25;

fn main() {
    let shmem = shmem::init();
    let numbers = NUMBERS.get(&shmem);
    let home = shmem.pe(0);
    for _ in 0..TIMES {
        let _turn = shmem.lock(LOCK.get(&shmem));
        let copy = numbers.on(home).to_vec();
        assert_eq!(copy[1], copy[0] * copy[0]);
        let next = copy[0] + 1;
        numbers.on(home).put(&[next, next * next]);
    }
    shmem.barrier_all();
    let last = numbers[0].on(home).read();
    assert_eq!(last, TIMES * shmem.n_pes() as u64);
    println!("PE {} has seen {last} turns", shmem.my_pe());
}
