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
    let pe0 = shmem.pe(0);

    for _ in 0..TIMES {
        // Held until the end of this iteration.
        let _held = shmem.lock(LOCK.get(&shmem));

        // Under the lock, the second number is the square of the first.
        let old = numbers.on(pe0).to_vec();
        assert_eq!(old[1], old[0] * old[0]);

        let next = old[0] + 1;
        numbers.on(pe0).put(&[next, next * next]);
    }

    // Waits until all PEs have had their turns.
    shmem.barrier_all();

    let last = numbers[0].on(pe0).read();
    assert_eq!(last, TIMES * shmem.n_pes() as u64);
    println!("PE {} has seen {last} turns", shmem.my_pe());
}
