//! Several threads of each PE at once: a private context for each, and a queue of tasks for all
//! threads of all PEs.

use shmem::{Atomic, Multiple, Private};
use std::thread;

const THREADS: usize = 3;
const TASKS: u64 = 300;

fn main() -> Result<(), shmem::ThreadLevelError> {
    let shmem = shmem::init_thread::<Multiple>()?;
    let next = shmem.zeroed::<Atomic<u64>>();
    let squares = shmem.array::<u64>(TASKS as usize);
    let world = shmem.world();
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                // The context stays on this thread, and its drop completes the puts issued on it.
                let context = world.context::<Private>();
                loop {
                    let task = context.fetch_inc(&next, 0);
                    if task >= TASKS {
                        break;
                    }
                    context.p(squares.at(task as usize), task * task, 0);
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
