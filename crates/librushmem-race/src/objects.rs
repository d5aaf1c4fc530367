//! Objects by which threads synchronize: what one thread did before it released an object is known
//! to another one that has acquired it.
//!
//! An object of the program, such as a mutex, is its address. Others have a number and a tag.

use rushmem_race::process::{ProcessDetector, active};

/// The tags of objects that are no address of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The start of a thread, by the order of their creation.
    ThreadStart = 1,
    /// The end of a thread, by its `pthread_t`.
    ThreadEnd,
    /// A pipe, by the number of its file.
    Pipe,
    /// The start of a team of OpenMP.
    TeamFork,
    /// Its end.
    TeamJoin,
    /// A barrier.
    Barrier,
    /// Tasks that are done.
    Tasks,
    /// A task for which the thread waits that makes it.
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
    /// Those that depend on it by `out`, `inout` or `mutexinoutset`.
    Out,
    /// Those that depend on it by `inoutset`.
    Set,
}

/// Returns the object of a tag and a number, of which the lower 60 bits count.
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
