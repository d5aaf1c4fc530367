//! Contexts (OpenSHMEM 1.6, §9.5): streams of operations, which are ordered and completed
//! independently of each other.

use crate::panics::mistake;
use crate::team::Team;
use crate::threads::{Creates, Local, Threads, UsedBy, UsedByThreads};
use rushmem_runtime::constants::{SHMEM_CTX_NOSTORE, SHMEM_CTX_SESSION_BATCH};
use rushmem_runtime::{ContextHandle, TeamHandle, ctx, order};
use std::fmt;
use std::marker::PhantomData;

/// A stream of operations on the PEs of one team, numbered as in that team (`shmem_ctx_t`, §9.5).
///
/// A [`Shmem`](crate::Shmem) dereferences to the default context (`SHMEM_CTX_DEFAULT`), which
/// numbers PEs as the world team does. Others are made by [`Team::context`] and by
/// [`ContextOptions`], and destroyed when they are dropped, which completes the operations issued
/// on them (`shmem_ctx_destroy`, §9.5.3). Operations are issued on a context by its
/// [peers](Self::pe).
#[doc(alias = "shmem_ctx_t")]
#[doc(alias = "shmem_ctx_destroy")]
pub struct Context<'t, C: Threads = Local> {
    owned: Owned,
    team: PhantomData<&'t ()>,
    threads: PhantomData<UsedByThreads<C>>,
}

/// A context that is destroyed when this is dropped, unless it is the default one.
struct Owned(ContextHandle);

impl Drop for Owned {
    fn drop(&mut self) {
        // The default context exists until the library is finalized (§9.5.3).
        if self.0 != ContextHandle::DEFAULT {
            ctx::destroy(call!("Context::drop"), self.0);
        }
    }
}

/// Completes the operations on a context when it is dropped.
pub(crate) struct CompletedAtEnd(pub(crate) ContextHandle);

impl Drop for CompletedAtEnd {
    fn drop(&mut self) {
        order::quiet(call!("Context::quiet"), self.0);
    }
}

impl<C: Threads> Context<'_, C> {
    fn new(handle: ContextHandle) -> Self {
        Context {
            owned: Owned(handle),
            team: PhantomData,
            threads: PhantomData,
        }
    }

    pub(crate) fn default_one() -> Self {
        Context::new(ContextHandle::DEFAULT)
    }

    #[inline(always)]
    pub(crate) fn handle(&self) -> ContextHandle {
        self.owned.0
    }

    /// Returns the team on which the context was created, in which its operations number PEs
    /// (`shmem_ctx_get_team`, §9.5.4).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let node = shmem.node();
    /// let context = node.context();
    /// assert_eq!(context.team().n_pes(), node.n_pes());
    /// ```
    #[doc(alias = "shmem_ctx_get_team")]
    pub fn team(&self) -> Team<'_, C> {
        Team::borrowed(team_of(self.handle()))
    }

    /// Orders the puts, atomic operations and signals issued on this context so far before those
    /// issued later to the same PE (`shmem_ctx_fence`, §9.12.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (data, flag) = (shmem.boxed(0u64), shmem.boxed(0u64));
    /// data.on(shmem.next()).write(17);
    /// shmem.fence();                          // the flag follows the data
    /// flag.on(shmem.next()).write(1);
    /// shmem.wait(flag.eq(1));
    /// assert_eq!(data.load(), 17);
    /// ```
    #[doc(alias = "shmem_fence")]
    #[doc(alias = "shmem_ctx_fence")]
    #[inline]
    pub fn fence(&self) {
        order::fence(call!("Context::fence"), self.handle());
    }

    /// Completes all operations issued on this context: puts are visible at their targets, and the
    /// data of gets are in their destinations (`shmem_ctx_quiet`, §9.12.2). [`Peer::quiet`]
    /// completes those to one PE.
    ///
    /// [`Peer::quiet`]: crate::Peer::quiet
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(2);
    /// inbox.on(shmem.next()).put(&[1, 2]);
    /// shmem.quiet();
    /// assert_eq!(inbox.on(shmem.next()).to_vec(), [1, 2]);
    /// ```
    #[doc(alias = "shmem_quiet")]
    #[doc(alias = "shmem_ctx_quiet")]
    #[inline]
    pub fn quiet(&self) {
        order::quiet(call!("Context::quiet"), self.handle());
    }
}

/// Returns the team of a context that exists.
pub(crate) fn team_of(context: ContextHandle) -> TeamHandle {
    let team = ctx::team_of(call!("Context::team"), context);
    team.unwrap_or_else(|| unreachable!("a context that exists has a team"))
}

/// The expected use of a context (§9.5.1), by which [`create`](Self::create) makes one. It is a
/// hint.
///
/// ```
/// let shmem = shmem::init();
/// let team = shmem.world();
/// let context = shmem::ContextOptions::new().no_store().create(&team)?;
/// # drop(context);
/// # Ok::<(), shmem::TooManyContexts>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "`create` makes a context by its options"]
pub struct ContextOptions {
    no_store: bool,
}

impl ContextOptions {
    /// Makes the options of a context about whose use nothing is known.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let world = shmem.world();
    /// let context = shmem::ContextOptions::new().create(&world)?;
    /// assert_eq!(context.team().n_pes(), shmem.n_pes());
    /// # Ok::<(), shmem::TooManyContexts>(())
    /// ```
    pub fn new() -> ContextOptions {
        ContextOptions::default()
    }

    /// Says that the orders and completions of the context need not include stores to memory of
    /// other PEs by pointers (`SHMEM_CTX_NOSTORE`, §9.5.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let world = shmem.world();
    /// let context = shmem::ContextOptions::new().no_store().create(&world)?;
    /// let inbox = shmem.boxed(0);
    /// inbox.on(context.next()).write(17);
    /// context.quiet();
    /// assert_eq!(inbox.on(context.next()).read(), 17);
    /// # Ok::<(), shmem::TooManyContexts>(())
    /// ```
    #[doc(alias = "SHMEM_CTX_NOSTORE")]
    pub fn no_store(mut self) -> ContextOptions {
        self.no_store = true;
        self
    }

    /// Creates a context for this thread, whose PEs are those of the team (`shmem_team_create_ctx`,
    /// §9.5.2). Not collective.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let node = shmem.node();
    /// let context = shmem::ContextOptions::new().create(&node)?;
    /// assert_eq!(context.me().pe(), shmem.my_pe());
    /// # Ok::<(), shmem::TooManyContexts>(())
    /// ```
    ///
    /// # Errors
    /// If this PE has 65,536 contexts, besides the default one.
    #[doc(alias = "shmem_ctx_create")]
    #[doc(alias = "shmem_team_create_ctx")]
    pub fn create<'t, C: Threads>(
        self,
        team: &'t Team<'_, C>,
    ) -> Result<Context<'t, Local>, TooManyContexts> {
        self.create_of_kind(team)
    }

    /// Creates a context of the kind `K`, whose PEs are those of the team
    /// (`shmem_team_create_ctx`, §9.5.2): one that goes from thread to thread
    /// ([`Movable`](crate::Movable)), that threads use at once ([`Shared`](crate::Shared)), or that
    /// stays on this thread ([`Local`]). Not collective.
    ///
    /// ```standalone_crate
    /// use shmem::{Context, ContextOptions, Movable};
    ///
    /// let shmem = shmem::init_shared()?;
    /// let (world, count) = (shmem.world(), shmem.atomic(0u64));
    /// let context: Context<Movable> = ContextOptions::new().create_as(&world)?;
    /// let element = &count;
    /// std::thread::scope(|threads| {
    ///     threads.spawn(move || element.on(context.pe(0)).add(1));
    /// });
    /// shmem.barrier_all();
    /// assert_eq!(count.on(shmem.pe(0)).load(), shmem.n_pes() as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If this PE has 65,536 contexts, besides the default one.
    #[doc(alias = "shmem_ctx_create")]
    #[doc(alias = "shmem_team_create_ctx")]
    pub fn create_as<'t, K: Threads>(
        self,
        team: &'t Team<'_, impl Creates<K>>,
    ) -> Result<Context<'t, K>, TooManyContexts> {
        self.create_of_kind(team)
    }

    fn create_of_kind<'t, K: Threads, C: Threads>(
        self,
        team: &'t Team<'_, C>,
    ) -> Result<Context<'t, K>, TooManyContexts> {
        let mut options = <K as UsedBy>::OPTIONS;
        if self.no_store {
            options |= SHMEM_CTX_NOSTORE;
        }

        match ctx::create(call!("ContextOptions::create"), team.handle(), options) {
            Some(handle) => Ok(Context::new(handle)),
            // The team is valid and the options are known, so nothing else can fail.
            None => Err(TooManyContexts(())),
        }
    }
}

impl<C: Threads> Team<'_, C> {
    /// Creates a context for this thread, whose PEs are those of the team (`shmem_team_create_ctx`,
    /// §9.5.2). Not collective.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let world = shmem.world();
    /// let context = world.context();
    /// let inbox = shmem.boxed(0);
    /// inbox.on(context.next()).write(17);
    /// context.quiet();                        // not what the default context has issued
    /// assert_eq!(inbox.on(context.next()).read(), 17);
    /// ```
    ///
    /// # Panics
    /// If this PE has 65,536 contexts, besides the default one. [`ContextOptions::create`] returns
    /// an error then.
    #[doc(alias = "shmem_ctx_create")]
    #[doc(alias = "shmem_team_create_ctx")]
    #[track_caller]
    pub fn context(&self) -> Context<'_, Local> {
        match ContextOptions::new().create(self) {
            Ok(context) => context,
            Err(error) => mistake!(call!("Team::context"), "{error}"),
        }
    }
}

/// The error of a PE that already has as many contexts as it can have (§9.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyContexts(());

impl fmt::Display for TooManyContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there are too many contexts; drop those that are not in use")
    }
}

impl std::error::Error for TooManyContexts {}

/// A session (OpenSHMEM 1.6, §9.9): a hint that many operations are issued on a context until the
/// session is dropped.
#[doc(alias = "shmem_ctx_session_stop")]
#[derive(Debug)]
#[must_use = "a session ends when it is dropped"]
pub struct Session<'c, C: Threads = Local>(&'c Context<'c, C>);

/// The expected operations of a session (§9.9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "`session_with` starts a session by its options"]
pub struct SessionOptions {
    batch: bool,
}

impl SessionOptions {
    /// Makes the options of a session about whose operations nothing is known.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(100);
    /// let session = shmem.session_with(shmem::SessionOptions::new());
    /// inbox.iter().for_each(|x| x.on(shmem.next()).write(1));
    /// drop(session);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [1; 100]);
    /// ```
    pub fn new() -> SessionOptions {
        SessionOptions::default()
    }

    /// Says that the operations may be sent later, several together (`SHMEM_CTX_SESSION_BATCH`,
    /// §9.9.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(100);
    /// let session = shmem.session_with(shmem::SessionOptions::new().batch());
    /// inbox.iter().for_each(|x| x.on(shmem.next()).write(1));
    /// drop(session);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [1; 100]);
    /// ```
    #[doc(alias = "SHMEM_CTX_SESSION_BATCH")]
    pub fn batch(mut self) -> SessionOptions {
        self.batch = true;
        self
    }

    /// Says how many operations are expected (`total_ops` of `shmem_ctx_session_config_t`, §9.9.1).
    /// The library does not use the number, since a session costs nothing even for one operation.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(100);
    /// let session = shmem.session_with(shmem::SessionOptions::new().total_ops(100));
    /// inbox.iter().for_each(|x| x.on(shmem.next()).write(1));
    /// drop(session);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [1; 100]);
    /// ```
    pub fn total_ops(self, _number: usize) -> SessionOptions {
        self
    }
}

impl<C: Threads> Context<'_, C> {
    /// Starts a session (`shmem_ctx_session_start`, §9.9.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let count = shmem.atomic(0usize);
    /// let session = shmem.session();
    /// (0..100).for_each(|_| count.on(shmem.pe(0)).add(1));
    /// drop(session);
    /// shmem.barrier_all();
    /// assert_eq!(count.on(shmem.pe(0)).load(), 100 * shmem.n_pes());
    /// ```
    #[doc(alias = "shmem_ctx_session_start")]
    pub fn session(&self) -> Session<'_, C> {
        self.session_with(SessionOptions::default())
    }

    /// Starts a session (`shmem_ctx_session_start`, §9.9.2) of operations as `options` describe
    /// them.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counters = shmem.array::<shmem::Atomic<usize>>(100);
    /// let session = shmem.session_with(shmem::SessionOptions::new().batch().total_ops(100));
    /// counters.iter().for_each(|x| x.on(shmem.pe(0)).add(1));
    /// drop(session);
    /// shmem.barrier_all();
    /// assert_eq!(counters.on(shmem.pe(0)).load_each(), [shmem.n_pes(); 100]);
    /// ```
    #[doc(alias = "shmem_ctx_session_start")]
    pub fn session_with(&self, options: SessionOptions) -> Session<'_, C> {
        let constants = if options.batch {
            SHMEM_CTX_SESSION_BATCH
        } else {
            0
        };
        ctx::session_start(call!("Context::session"), self.handle(), constants);
        Session(self)
    }
}

impl<C: Threads> Drop for Session<'_, C> {
    /// Stops the session (`shmem_ctx_session_stop`, §9.9.3).
    fn drop(&mut self) {
        ctx::session_stop(call!("Session::drop"), self.0.handle());
    }
}

impl<C: Threads> fmt::Debug for Context<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}
