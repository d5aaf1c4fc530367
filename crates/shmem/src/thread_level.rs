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
    /// The constant of the standard.
    const LEVEL: c_int;
}

/// One thread calls: the one that called [`init`](crate::init). Handles are neither `Send` nor
/// `Sync`. This is `SHMEM_THREAD_SINGLE` (§9.2); other threads may exist, and may load and store
/// symmetric elements.
#[derive(Clone, Copy, Debug)]
pub struct Single;

/// A level like [`Single`], for a program that has other threads, which do not call:
/// `SHMEM_THREAD_FUNNELED` (§9.2).
///
/// There is no type for `SHMEM_THREAD_SERIALIZED`: which thread calls next could not be left to the
/// compiler, since everything that borrows a handle would have to move to another thread together.
/// Programs use [`Multiple`].
#[derive(Clone, Copy, Debug)]
pub struct Funneled;

/// Any threads call, at any time: `SHMEM_THREAD_MULTIPLE` (§9.2).
///
/// Threads of a PE are in collectives of one team one after the other, in the same order on all
/// PEs, which the program ensures. The job ends with a message if two of them are inside at once.
/// If they are not by chance, a thread gets values of the call that another thread has made on
/// another PE; this is a mistake in the program, but not undefined behavior.
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

/// A part of what threads share if any thread may call at the level.
pub(crate) struct Threads<L>(PhantomData<(*const (), L)>);

// SAFETY: it contains nothing; the bound is what makes a handle of the level `Send`.
unsafe impl<L: AnyThread> Send for Threads<L> {}
// SAFETY: as above.
unsafe impl<L: AnyThread> Sync for Threads<L> {}
