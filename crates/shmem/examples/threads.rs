//! Several threads of each PE at once: a private context for each, and a queue of tasks for all
//! threads of all PEs.

use shmem::Atomic;
use std::thread;

const THREADS: usize = 3;
const TASKS: u64 = 300;

fn main() -> Result<(), shmem::ThreadLevelError> {
    let shmem = shmem::init_shared()?;
    let next = shmem.zeroed::<Atomic<u64>>();
    let squares = shmem.array::<u64>(TASKS as usize);
    let world = shmem.world();

    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                // The context stays on this thread, and its drop completes the puts issued on it.
                let context = world.context();
                let home = context.pe(0);
                loop {
                    let task = next.on(home).fetch_add(1);
                    if task >= TASKS {
                        break;
                    }

                    squares[task as usize].on(home).write(task * task);
                }
            });
        }
    });

    shmem.barrier_all();
    if shmem.my_pe() == 0 {
        assert!((0..TASKS).map(|task| task * task).eq(squares.to_vec()));
    }
    println!("PE {} has {THREADS} threads", shmem.my_pe());
    Ok(())
}
