//! Contexts (OpenSHMEM 1.6, §9.5): streams of operations, which are ordered and completed
//! independently of each other.
#![allow(unsafe_code)]

use crate::panics::mistake;
use crate::thread_level::{Single, ThreadLevel, Threads};
use core::ffi::{c_int, c_long};
use rushmem_runtime::constants::{
    SHMEM_CTX_NOSTORE, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEM_CTX_SESSION_BATCH,
};
use rushmem_runtime::{
    Call, Context as _, ContextHandle, ExistingPe, TeamHandle, ctx, order, team,
};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

mod sealed {
    pub trait OfContext {
        /// The owner of the context, whose drop destroys it.
        type Owned;
        /// The handle of the runtime.
        type Handle: rushmem_runtime::Context;
        /// A type that is `Send` and `Sync` if the context is, among threads that may call the
        /// library.
        type Threads;
        fn handle(owned: &Self::Owned) -> Self::Handle;
    }
}
use sealed::OfContext;

/// The options of a context (§9.5.1), as a type.
pub trait ContextKind: OfContext {}

/// A kind of context that a program can create (§9.5.1).
pub trait CreatedKind: ContextKind + OfContext<Owned = Owned> {
    /// The value of the standard's argument `options`.
    const OPTIONS: c_long;
}

/// The default context (`SHMEM_CTX_DEFAULT`, §9.5), which exists without being created. It numbers
/// PEs as the world team does.
#[derive(Clone, Copy, Debug)]
pub struct DefaultContext;

/// No option (§9.5.1): any thread may use the context at any time.
#[derive(Clone, Copy, Debug)]
pub struct Shared;

/// `SHMEM_CTX_SERIALIZED` (§9.5.1): one thread at a time uses the context. It is `Send`, but not
/// `Sync`.
#[derive(Clone, Copy, Debug)]
pub struct Serialized;

/// `SHMEM_CTX_PRIVATE` (§9.5.1): only the thread that created the context uses it. It is neither
/// `Send` nor `Sync`.
#[derive(Clone, Copy, Debug)]
pub struct Private;

impl OfContext for DefaultContext {
    type Owned = ();
    type Handle = rushmem_runtime::DefaultContext;
    type Threads = ();
    #[inline(always)]
    fn handle((): &()) -> rushmem_runtime::DefaultContext {
        rushmem_runtime::DefaultContext
    }
}

impl ContextKind for DefaultContext {}

macro_rules! created {
    ($($kind:ident, $threads:ty, $options:expr;)*) => {$(
        impl OfContext for $kind {
            type Owned = Owned;
            type Handle = ContextHandle;
            type Threads = $threads;
            #[inline(always)]
            fn handle(owned: &Owned) -> ContextHandle {
                owned.0
            }
        }
        impl ContextKind for $kind {}
        impl CreatedKind for $kind {
            const OPTIONS: c_long = $options;
        }
    )*};
}
created! {
    Shared, (), 0;
    Serialized, Cell<()>, SHMEM_CTX_SERIALIZED;
    Private, *const (), SHMEM_CTX_PRIVATE;
}

/// A context that this program created and has to destroy.
#[derive(Debug)]
pub struct Owned(pub(crate) ContextHandle);

impl Drop for Owned {
    fn drop(&mut self) {
        ctx::destroy(call!("Context::drop"), self.0);
    }
}

/// A stream of operations on the PEs of one team, numbered as in that team (`shmem_ctx_t`, §9.5).
///
/// A [`Shmem`](crate::Shmem) dereferences to the default context. Others are made by
/// [`Team::context`](crate::Team::context) and destroyed when they are dropped, which completes
/// the operations issued on them (`shmem_ctx_destroy`, §9.5.3).
pub struct Context<'t, K: ContextKind = DefaultContext, L: ThreadLevel = Single> {
    owned: K::Owned,
    team: PhantomData<&'t ()>,
    threads: PhantomData<(K::Threads, Threads<L>)>,
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    pub(crate) fn new(owned: K::Owned) -> Self {
        Context {
            owned,
            team: PhantomData,
            threads: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn handle(&self) -> K::Handle {
        K::handle(&self.owned)
    }

    /// Returns the PE that `pe` means on this context. Panics if there is none.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn existing(&self, call: Call, pe: usize) -> ExistingPe {
        match self.handle().existing_pe(call, pe) {
            Some(existing) => existing,
            None => no_such_pe(call, self.handle().handle(), pe),
        }
    }

    /// Orders the puts, atomic operations and signals issued on this context so far before those
    /// issued later to the same PE (`shmem_ctx_fence`, §9.12.1).
    #[doc(alias = "shmem_ctx_fence")]
    #[inline]
    pub fn fence(&self) {
        order::fence(call!("Context::fence"), self.handle());
    }

    /// Completes all operations issued on this context: puts are visible at their targets, and the
    /// data of gets are in their destinations (`shmem_ctx_quiet`, §9.12.2).
    #[doc(alias = "shmem_ctx_quiet")]
    #[inline]
    pub fn quiet(&self) {
        order::quiet(call!("Context::quiet"), self.handle());
    }

    /// Works as [`quiet`](Self::quiet), for the operations issued to these PEs
    /// (`shmem_ctx_pe_quiet`, §9.12.3). Panics if one of the PEs does not exist.
    #[doc(alias = "shmem_ctx_pe_quiet")]
    #[track_caller]
    pub fn pe_quiet(&self, pes: &[usize]) {
        let call = call!("Context::pe_quiet");
        for &pe in pes {
            self.existing(call, pe);
            let pe = pe as c_int;
            // SAFETY: an array of one number, which lives during the call.
            unsafe { order::pe_quiet(call, self.handle(), &raw const pe, 1) };
        }
    }
}

/// The expected use of a context (§9.5.1). It is a hint.
///
/// ```standalone_crate
/// let shmem = shmem::init();
/// let team = shmem.world();
/// let options = shmem::ContextOptions::new().no_store();
/// let context = team.context_with::<shmem::Private>(options);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextOptions {
    no_store: bool,
}

impl ContextOptions {
    /// Makes the options of a context about whose use nothing is known.
    pub fn new() -> ContextOptions {
        ContextOptions::default()
    }

    /// The orders and completions of the context need not include stores to memory of other PEs by
    /// pointers (`SHMEM_CTX_NOSTORE`).
    #[doc(alias = "SHMEM_CTX_NOSTORE")]
    pub fn no_store(mut self) -> ContextOptions {
        self.no_store = true;
        self
    }

    /// Returns the options of a kind in the standard's form.
    pub(crate) fn flags<K: CreatedKind>(self) -> c_long {
        K::OPTIONS | if self.no_store { SHMEM_CTX_NOSTORE } else { 0 }
    }
}

/// A session (OpenSHMEM 1.6, §9.9): a hint that many operations are issued on a context until the
/// session is dropped.
#[derive(Debug)]
#[must_use = "a session ends when it is dropped"]
pub struct Session<'c, K: ContextKind, L: ThreadLevel>(&'c Context<'c, K, L>);

/// The expected operations of a session (§9.9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    batch: bool,
}

impl SessionOptions {
    /// Makes the options of a session about whose operations nothing is known.
    pub fn new() -> SessionOptions {
        SessionOptions::default()
    }

    /// The operations may be sent later, several together (`SHMEM_CTX_SESSION_BATCH`).
    #[doc(alias = "SHMEM_CTX_SESSION_BATCH")]
    pub fn batch(mut self) -> SessionOptions {
        self.batch = true;
        self
    }

    /// The expected number of operations (`total_ops` of `shmem_ctx_session_config_t`). The library
    /// does not use it, since a session costs nothing even for one operation.
    pub fn total_ops(self, _number: usize) -> SessionOptions {
        self
    }
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Starts a session (`shmem_ctx_session_start`, §9.9.2).
    #[doc(alias = "shmem_ctx_session_start")]
    pub fn session(&self) -> Session<'_, K, L> {
        self.session_with(SessionOptions::default())
    }

    /// Works as [`session`](Self::session), for operations that `options` describe.
    ///
    /// ```standalone_crate
    /// # let shmem = shmem::init();
    /// # let counters = shmem.array::<shmem::Atomic<u64>>(100);
    /// let options = shmem::SessionOptions::new().batch().total_ops(100);
    /// let session = shmem.session_with(options);
    /// (0..100).for_each(|i| shmem.inc(counters.at(i), 0));
    /// drop(session);
    /// ```
    pub fn session_with(&self, options: SessionOptions) -> Session<'_, K, L> {
        let options = if options.batch {
            SHMEM_CTX_SESSION_BATCH
        } else {
            0
        };
        ctx::session_start(call!("Context::session"), self.handle().handle(), options);
        Session(self)
    }
}

impl<K: ContextKind, L: ThreadLevel> Drop for Session<'_, K, L> {
    /// Stops the session (`shmem_ctx_session_stop`, §9.9.3).
    fn drop(&mut self) {
        ctx::session_stop(call!("Session::drop"), self.0.handle().handle());
    }
}

/// Panics since the team of a context has no PE `pe`.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn no_such_pe(call: Call, context: ContextHandle, pe: usize) -> ! {
    let team = ctx::team_of(call, context).unwrap_or(TeamHandle::WORLD);
    let n_pes = team::n_pes(call, team);
    match team {
        TeamHandle::WORLD => mistake!(
            call,
            "argument pe is {pe}, but PEs are numbered 0 to {}",
            n_pes - 1
        ),
        _ => mistake!(
            call,
            "argument pe is {pe}, but the context's team has {n_pes} PEs; translate the number from another team's by Team::translate"
        ),
    }
}

impl<K: ContextKind, L: ThreadLevel> fmt::Debug for Context<'_, K, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}
