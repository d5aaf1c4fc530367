//! Work stealing: each PE has a range of tasks, packed into one word (next, end). The owner takes
//! from the front, a thief half of the rest from the back, both by compare-and-exchange.

use shmem::{Atomic, Peer, Sum, Sym};

const TASKS: u32 = 500;

/// Returns the number of steps of the Collatz sequence from `n` to 1.
fn steps(n: u64) -> u64 {
    std::iter::successors(Some(n), |n| match n {
        1 => None,
        n if n % 2 == 0 => Some(n / 2),
        n => Some(3 * n + 1),
    })
    .count() as u64
}

/// Returns a range of tasks in one word.
fn pack(next: u32, end: u32) -> u64 {
    u64::from(next) << 32 | u64::from(end)
}

/// Takes tasks from the range of a PE: `cut` divides it into what stays and what is taken.
fn take(
    range: &Sym<Atomic<u64>>,
    peer: Peer<'_>,
    cut: impl Fn(u32, u32) -> (u64, (u32, u32)),
) -> Option<(u32, u32)> {
    let mut seen = range.on(peer).load();
    loop {
        let (next, end) = ((seen >> 32) as u32, seen as u32);
        if next >= end {
            return None;
        }
        let (rest, taken) = cut(next, end);
        match range.on(peer).compare_exchange(seen, rest) {
            Ok(_) => return Some(taken),
            Err(now) => seen = now,
        }
    }
}

fn main() {
    let shmem = shmem::init();
    let (me, n_pes) = (shmem.my_pe() as u32, shmem.n_pes() as u32);
    // All tasks are those of PE 0 at first.
    let range = shmem.atomic(if me == 0 { pack(0, TASKS) } else { 0 });
    let results = shmem.array::<u64>(TASKS as usize);
    let (home, own) = (shmem.pe(0), shmem.me());
    let mut done = 0;
    loop {
        while let Some((task, _)) = take(&range, own, |next, end| {
            (pack(next + 1, end), (next, next + 1))
        }) {
            results[task as usize]
                .on(home)
                .write(steps(u64::from(task) + 1));
            done += 1;
        }
        let stolen = shmem.peers().find_map(|victim| {
            take(&range, victim, |next, end| {
                let middle = next + (end - next) / 2;
                (pack(next, middle), (middle, end))
            })
        });
        match stolen {
            Some((next, end)) => range.on(own).store(pack(next, end)),
            None => break,
        }
    }
    println!("PE {me} of {n_pes} did {done} of {TASKS} tasks");
    shmem.barrier_all();
    assert_eq!(shmem.world().all_reduce(done, Sum), TASKS);
    if me == 0 {
        assert!(
            (1..)
                .zip(results.to_vec())
                .all(|(n, result)| result == steps(n))
        );
    }
}
