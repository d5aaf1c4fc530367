//! The levels of thread support (OpenSHMEM 1.6, §9.2) as types, so that the compiler keeps handles
//! on their threads.
#![allow(unsafe_code)]

use core::ffi::c_int;
use rushmem_runtime::constants::{
    SHMEM_THREAD_FUNNELED, SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE,
};
use std::marker::PhantomData;

mod sealed {
    pub trait OfHandles {}
}
use sealed::OfHandles;

/// The level of thread support: which threads of a PE call the library (§9.2).
pub trait ThreadLevel: OfHandles {
    /// The standard's constant, such as `SHMEM_THREAD_SINGLE`.
    const LEVEL: c_int;
}

/// Only the thread that called [`init`](crate::init) calls the library. Handles are neither `Send`
/// nor `Sync`. This is `SHMEM_THREAD_SINGLE` (§9.2), but other threads may exist, and may load and
/// store symmetric elements.
#[derive(Clone, Copy, Debug)]
pub struct Single;

/// A level like [`Single`], for a program that has other threads, which do not call:
/// `SHMEM_THREAD_FUNNELED` (§9.2).
///
/// There is no type for `SHMEM_THREAD_SERIALIZED`: the compiler could not check that one thread
/// calls at a time, since everything that borrows a handle would have to move to another thread
/// together. Use [`Multiple`] instead.
#[derive(Clone, Copy, Debug)]
pub struct Funneled;

/// Any threads call, at any time: `SHMEM_THREAD_MULTIPLE` (§9.2).
///
/// The program must ensure that the threads of a PE call collectives of one team one after the
/// other, and in the same order on all PEs. The job ends with a message if two threads are in such
/// collectives at once. If they are in them one after the other, but in different orders on
/// different PEs, results of the two calls are mixed up; this is a mistake in the program, but not
/// undefined behavior.
#[derive(Clone, Copy, Debug)]
pub struct Multiple;

impl OfHandles for Single {}
impl OfHandles for Funneled {}
impl OfHandles for Multiple {}

impl ThreadLevel for Single {
    const LEVEL: c_int = SHMEM_THREAD_SINGLE;
}

impl ThreadLevel for Funneled {
    const LEVEL: c_int = SHMEM_THREAD_FUNNELED;
}

impl ThreadLevel for Multiple {
    const LEVEL: c_int = SHMEM_THREAD_MULTIPLE;
}

/// A level at which any thread may call.
#[diagnostic::on_unimplemented(
    message = "a handle of the level `{Self}`, and what borrows it, stays on the thread that initialized the library",
    note = "`shmem::init_thread::<shmem::Multiple>()?` returns a handle that threads share by reference, in `std::thread::scope`"
)]
pub trait AnyThread: ThreadLevel {}

impl AnyThread for Multiple {}

/// A marker that is `Send` and `Sync` if any thread may call the library at the level.
pub(crate) struct Threads<L>(PhantomData<(*const (), L)>);

// SAFETY: it contains nothing; the bound is what makes a handle of the level `Send`.
unsafe impl<L: AnyThread> Send for Threads<L> {}
// SAFETY: it contains nothing; the bound is what makes a handle of the level `Sync`.
unsafe impl<L: AnyThread> Sync for Threads<L> {}
