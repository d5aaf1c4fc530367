//! Objects by which threads synchronize: accesses of one thread before it releases an object are
//! ordered before those of another thread after it has acquired the object.
//!
//! An object of the program, such as a mutex, is identified by its address. The others are
//! identified by a tag and a number.

use rushmem_race::process::{ProcessDetector, active};

/// The tags of objects that are not identified by an address of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The start of a thread; the number counts the threads that were created.
    ThreadStart = 1,
    /// The end of a thread; the number is its `pthread_t`.
    ThreadEnd,
    /// A pipe or eventfd; the number is its inode.
    Pipe,
    /// The start of a team of OpenMP.
    TeamFork,
    /// The end of a team of OpenMP.
    TeamJoin,
    /// A barrier.
    Barrier,
    /// Tasks that are done.
    Tasks,
    /// The end of a task for which the thread that creates it waits.
    TaskEnd,
    /// Critical sections without a name.
    Critical,
    /// The ordered part of a loop.
    Ordered,
    /// Iterations of a loop that others depend on.
    Iterations,
    /// The object by which one thread copies data to the others.
    Single,
    /// Tasks that depend on an address by `in`.
    In,
    /// Tasks that depend on an address by `out`, `inout` or `mutexinoutset`.
    Out,
    /// Tasks that depend on an address by `inoutset`.
    Set,
}

/// Returns the object of a tag and the lower 60 bits of a number.
pub fn object(tag: Tag, number: usize) -> usize {
    (tag as usize) << 60 | number & ((1 << 60) - 1)
}

/// Calls the detector, if it is active.
pub fn with(f: impl FnOnce(&ProcessDetector)) {
    if let Some(process) = active() {
        f(process);
    }
}

/// Makes the calling thread acquire an object.
pub fn acquire(object: usize) {
    with(|process| process.acquire(object));
}

/// Makes the calling thread release an object.
pub fn release(object: usize) {
    with(|process| process.release_object(object));
}
