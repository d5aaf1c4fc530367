//! Tasks that take different times: a PE that has completed a task takes the next one, by a
//! fetch-add on a counter of PE 0.

use shmem::Atomic;

const TASKS: usize = 500;

/// Returns the number of steps of the Collatz sequence from `n` to 1.
fn steps(n: u64) -> u64 {
    std::iter::successors(Some(n), |n| match n {
        1 => None,
        n if n % 2 == 0 => Some(n / 2),
        n => Some(3 * n + 1),
    })
    .count() as u64
}

fn main() {
    let shmem = shmem::init();
    let next = shmem.zeroed::<Atomic<usize>>();
    let results = shmem.array(TASKS);
    let home = shmem.pe(0);

    let mut done = 0;
    loop {
        let task = next.on(home).fetch_add(1);
        if task >= TASKS {
            break;
        }

        results[task].on(home).write(steps(task as u64 + 1));
        done += 1;
    }
    println!("PE {} did {done} of {TASKS} tasks", shmem.my_pe());

    shmem.barrier_all();
    if shmem.my_pe() == 0 {
        for (n, result) in (1..).zip(results.to_vec()) {
            assert_eq!(result, steps(n));
        }
    }
}
