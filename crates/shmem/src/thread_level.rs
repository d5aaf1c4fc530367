//! The levels of thread support (OpenSHMEM 1.6, §9.2) as types, so that the compiler keeps handles on their threads.

use core::ffi::c_int;
use rushmem_runtime::constants::{SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE};

mod sealed {
    pub trait OfHandles {
        /// `Send` and `Sync` as a handle of this level is.
        type Threads;
    }
}
use sealed::OfHandles;

/// How many threads of a PE call the library (§9.2).
pub trait ThreadLevel: OfHandles {
    /// The constant of the standard.
    const LEVEL: c_int;
}

/// One thread calls: the one that called [`init`](crate::init). Handles are neither `Send` nor `Sync`. This is
/// `SHMEM_THREAD_SINGLE` (§9.2); other threads may exist, and may load and store symmetric elements.
#[derive(Clone, Copy, Debug)]
pub struct Single;

/// Any threads call, at any time: `SHMEM_THREAD_MULTIPLE` (§9.2). The job ends with a message if two
/// threads are in collectives on one team at once.
#[derive(Clone, Copy, Debug)]
pub struct Multiple;

impl OfHandles for Single {
    type Threads = *const ();
}

impl OfHandles for Multiple {
    type Threads = ();
}

impl ThreadLevel for Single {
    const LEVEL: c_int = SHMEM_THREAD_SINGLE;
}

impl ThreadLevel for Multiple {
    const LEVEL: c_int = SHMEM_THREAD_MULTIPLE;
}
