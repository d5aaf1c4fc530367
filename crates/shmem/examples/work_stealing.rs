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

/// The tasks from `next` on, without `end`.
#[derive(Clone, Copy)]
struct Tasks {
    next: u32,
    end: u32,
}

impl Tasks {
    /// Returns the tasks in one word. The word 0 is one for no tasks.
    fn pack(self) -> u64 {
        u64::from(self.next) << 32 | u64::from(self.end)
    }

    fn unpack(word: u64) -> Tasks {
        Tasks {
            next: (word >> 32) as u32,
            end: word as u32,
        }
    }
}

/// Tasks that are divided into those that a PE takes and the rest.
struct Division {
    taken: Tasks,
    rest: Tasks,
}

/// Takes the first task.
fn first_of(tasks: Tasks) -> Division {
    let second = tasks.next + 1;
    Division {
        taken: Tasks {
            end: second,
            ..tasks
        },
        rest: Tasks {
            next: second,
            ..tasks
        },
    }
}

/// Takes the second half of the tasks.
fn half_of(tasks: Tasks) -> Division {
    let middle = tasks.next + (tasks.end - tasks.next) / 2;
    Division {
        taken: Tasks {
            next: middle,
            ..tasks
        },
        rest: Tasks {
            end: middle,
            ..tasks
        },
    }
}

/// Takes tasks off those of a PE. Returns `None` if it has none.
fn take(tasks: &Sym<Atomic<u64>>, peer: Peer<'_>, divide: fn(Tasks) -> Division) -> Option<Tasks> {
    let mut seen = tasks.on(peer).load();
    loop {
        let found = Tasks::unpack(seen);
        if found.next >= found.end {
            return None;
        }

        let Division { taken, rest } = divide(found);
        match tasks.on(peer).compare_exchange(seen, rest.pack()) {
            Ok(_) => return Some(taken),
            Err(now) => seen = now,
        }
    }
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    let home = shmem.pe(0);
    let own = shmem.me();

    // All tasks are those of PE 0 at first.
    let all = Tasks {
        next: 0,
        end: TASKS,
    };
    let tasks = shmem.atomic(if me == 0 { all.pack() } else { 0 });
    let results = shmem.array::<u64>(TASKS as usize);

    let mut done = 0;
    loop {
        while let Some(task) = take(&tasks, own, first_of) {
            let result = steps(u64::from(task.next) + 1);
            results[task.next as usize].on(home).write(result);
            done += 1;
        }

        let mut victims = shmem.peers();
        let Some(stolen) = victims.find_map(|victim| take(&tasks, victim, half_of)) else {
            break;
        };
        tasks.on(own).store(stolen.pack());
    }
    println!("PE {me} of {n_pes} did {done} of {TASKS} tasks");

    shmem.barrier_all();
    assert_eq!(shmem.world().all_reduce(done, Sum), TASKS);
    if me == 0 {
        for (n, result) in (1..).zip(results.to_vec()) {
            assert_eq!(result, steps(n));
        }
    }
}
