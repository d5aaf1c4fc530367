//! Which threads may use a handle and what borrows it (OpenSHMEM 1.6, §9.2 and §9.5.1), as a type,
//! so that the compiler keeps it on them.
#![allow(unsafe_code)]

use core::ffi::c_long;
use rushmem_runtime::constants::{SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED};
use std::marker::PhantomData;

/// A trait that no program can name, so that no program implements [`Threads`].
mod sealed {
    use core::ffi::c_long;

    pub trait UsedBy {
        /// True if the thread that made the handle is the only one that uses it.
        const IS_ONE: bool;
        /// The argument `options` of `shmem_ctx_create` for a context of these threads (§9.5.1).
        const OPTIONS: c_long;
    }
}
pub(crate) use sealed::UsedBy;

/// The threads that may use a [`Shmem`](crate::Shmem), a [`Team`](crate::Team) or a
/// [`Context`](crate::Context), and what borrows it (§9.2, §9.5.1): [`Local`], [`Movable`] or
/// [`Shared`].
pub trait Threads: UsedBy + 'static {}

/// The thread that made it: neither `Send` nor `Sync`. A handle of [`init`](crate::init) is
/// `SHMEM_THREAD_SINGLE` (§9.2), but other threads may exist, and may load and store symmetric
/// elements. A context is `SHMEM_CTX_PRIVATE` (§9.5.1).
#[doc(alias = "SHMEM_THREAD_SINGLE")]
#[doc(alias = "SHMEM_CTX_PRIVATE")]
#[derive(Clone, Copy, Debug)]
pub struct Local;

/// One thread at a time: `Send`, but not `Sync`. Only contexts are of this kind, which is
/// `SHMEM_CTX_SERIALIZED` (§9.5.1).
///
/// There is no handle for `SHMEM_THREAD_SERIALIZED`: the compiler could not check that one thread
/// calls at a time, since everything that borrows a handle would have to move to another thread
/// together. Use [`Shared`] instead.
#[doc(alias = "SHMEM_CTX_SERIALIZED")]
#[doc(alias = "SHMEM_THREAD_SERIALIZED")]
#[derive(Clone, Copy, Debug)]
pub struct Movable;

/// Any threads, at any time: `SHMEM_THREAD_MULTIPLE` (§9.2), or a context without an option
/// (§9.5.1).
///
/// The program must ensure that the threads of a PE call collectives of one team one after the
/// other, and in the same order on all PEs. The job ends with a message if two threads are in such
/// collectives at once. If they are in them one after the other, but in different orders on
/// different PEs, results of the two calls are mixed up; this is a mistake in the program, but not
/// undefined behavior.
#[doc(alias = "SHMEM_THREAD_MULTIPLE")]
#[derive(Clone, Copy, Debug)]
pub struct Shared;

impl UsedBy for Local {
    const IS_ONE: bool = true;
    const OPTIONS: c_long = SHMEM_CTX_PRIVATE;
}

impl UsedBy for Movable {
    const IS_ONE: bool = false;
    const OPTIONS: c_long = SHMEM_CTX_SERIALIZED;
}

impl UsedBy for Shared {
    const IS_ONE: bool = false;
    const OPTIONS: c_long = 0;
}

impl Threads for Local {}
impl Threads for Movable {}
impl Threads for Shared {}

/// The threads that call a library where contexts of the kind `K` can be created.
#[diagnostic::on_unimplemented(
    message = "a context of the kind `{K}` cannot be created where the threads `{Self}` call the library",
    label = "other threads may not call",
    note = "`shmem::init_shared()?` returns a handle for all threads; with the one of `shmem::init()`, `team.context()` makes a \
            context for this thread"
)]
pub trait Creates<K: Threads>: Threads {}

impl Creates<Local> for Local {}
impl Creates<Local> for Movable {}
impl<K: Threads> Creates<K> for Shared {}

/// The kinds of threads for which a handle and what borrows it are [`Send`].
#[diagnostic::on_unimplemented(
    message = "what is `{Self}` stays on the thread that made it, and so does all that borrows it",
    note = "`shmem::init_shared()?`, instead of `init` or `launch`, returns a handle that threads share by reference, in \
            `std::thread::scope`; each of them makes a context of its own by `team.context()`"
)]
pub trait Moves: Threads {}

impl Moves for Movable {}
impl Moves for Shared {}

/// The kind of threads for which a handle and what borrows it are [`Sync`].
#[diagnostic::on_unimplemented(
    message = "what is `{Self}` stays on the thread that has it, and so does all that borrows it",
    note = "`shmem::init_shared()?`, instead of `init` or `launch`, returns a handle that threads share by reference, in \
            `std::thread::scope`; each of them makes a context of its own by `team.context()`"
)]
pub trait AnyThread: Threads {}

impl AnyThread for Shared {}

/// A marker for the fields of what these threads use: it is `Send` and `Sync` only if `C` allows
/// it, since the pointer in it is neither.
pub(crate) struct UsedByThreads<C>(PhantomData<(*const (), C)>);

// SAFETY: a marker has no bytes that two threads could access. Its pointer only withholds `Send`
// from the types that have the marker, and `Moves` says that these may be sent.
unsafe impl<C: Moves> Send for UsedByThreads<C> {}
// SAFETY: a marker has no bytes that two threads could access. Its pointer only withholds `Sync`
// from the types that have the marker, and `AnyThread` says that these may be shared.
unsafe impl<C: AnyThread> Sync for UsedByThreads<C> {}
