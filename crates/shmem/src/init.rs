//! The start of the library (OpenSHMEM 1.6, §9.1.1 and §9.2.1), also in processes that no launcher
//! has started.

use crate::job::{self, Shmem, ThreadLevelError};
use crate::threads::{Local, Shared};
use crate::unique_id::{Place, UniqueId};
use rushmem_runtime::constants::{
    SHMEM_THREAD_FUNNELED, SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE,
};

/// Initializes the library for use by this thread (`shmem_init`, §9.1.1). Collective over all PEs.
///
/// The job ends with a message if another thread has such a handle.
///
/// ```
/// let shmem = shmem::init();
/// assert!(shmem.my_pe() < shmem.n_pes());
/// ```
#[doc(alias = "shmem_init")]
#[doc(alias = "start_pes")]
pub fn init() -> Shmem {
    match job::enter(call!("shmem::init"), SHMEM_THREAD_SINGLE, None) {
        Ok(shmem) => shmem,
        Err(error) => unreachable!("no level is below SHMEM_THREAD_SINGLE: {error}"),
    }
}

/// Initializes the library for use by all threads (`shmem_init_thread` with
/// `SHMEM_THREAD_MULTIPLE`, §9.2.1). Collective over all PEs.
///
/// ```standalone_crate
/// let shmem = shmem::init_shared()?;
/// let count = shmem.atomic(0usize);
/// std::thread::scope(|threads| {
///     threads.spawn(|| count.on(shmem.pe(0)).add(1));
///     threads.spawn(|| count.on(shmem.pe(0)).add(1));
/// });
/// shmem.barrier_all();
/// assert_eq!(count.on(shmem.pe(0)).load(), 2 * shmem.n_pes());
/// # Ok::<(), shmem::ThreadLevelError>(())
/// ```
///
/// # Errors
/// If the library is, or was before, initialized at a lower level.
#[doc(alias = "shmem_init_thread")]
#[doc(alias = "SHMEM_THREAD_MULTIPLE")]
pub fn init_shared() -> Result<Shmem<Shared>, ThreadLevelError> {
    job::enter(call!("shmem::init_shared"), SHMEM_THREAD_MULTIPLE, None)
}

/// The options of an initialization (`shmem_init_thread`, §9.2.1) that [`init`] and [`init_shared`]
/// do not have: the level `SHMEM_THREAD_FUNNELED`, and the id of a job.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "`start` initializes the library by its options"]
pub struct Init<'a> {
    is_funneled: bool,
    place: Option<Place<'a>>,
}

impl<'a> Init<'a> {
    /// Makes the options of [`init`].
    ///
    /// ```
    /// let shmem = shmem::Init::new().start()?;
    /// assert!(shmem.my_pe() < shmem.n_pes());
    /// # Ok::<(), shmem::ThreadLevelError>(())
    /// ```
    pub fn new() -> Init<'a> {
        Init::default()
    }

    /// Says that the program has other threads, which do not call the library
    /// (`SHMEM_THREAD_FUNNELED`, §9.2). Has no effect on [`start_shared`](Self::start_shared): its
    /// level includes this one.
    ///
    /// ```standalone_crate
    /// let shmem = shmem::Init::new().funneled().start()?;
    /// let other = std::thread::spawn(|| (1..=4u64).product::<u64>());
    /// let product = other.join().expect("no panic");
    /// assert_eq!(shmem.world().all_reduce(product, shmem::Max), 24);
    /// # Ok::<(), shmem::ThreadLevelError>(())
    /// ```
    #[doc(alias = "SHMEM_THREAD_FUNNELED")]
    pub fn funneled(mut self) -> Init<'a> {
        self.is_funneled = true;
        self
    }

    /// Makes this process PE `rank` of the job of `n_ranks` PEs that has this id
    /// (`shmemx_init_attr`). The start then waits until all processes of the job have joined. The
    /// job ends with a message if one of them does not join in time (`SHMEM_JOIN_LIMIT`), or has
    /// the rank of another one.
    ///
    /// Under `oshrun`, which starts the job then, the rank and the number of PEs must be those of
    /// `oshrun`.
    ///
    /// ```no_run
    /// # let (id, rank) = (shmem::UniqueId::new()?, 0);
    /// let shmem = shmem::Init::new().by_id(&id, rank, 4).start()?;
    /// assert_eq!((shmem.my_pe(), shmem.n_pes()), (rank, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "shmemx_init_attr")]
    #[doc(alias = "shmemx_set_attr_uniqueid_args")]
    pub fn by_id(mut self, id: &'a UniqueId, rank: usize, n_ranks: usize) -> Init<'a> {
        self.place = Some(Place { id, rank, n_ranks });
        self
    }

    /// Initializes the library for use by this thread (`shmem_init_thread`, §9.2.1). Collective
    /// over all PEs.
    ///
    /// ```
    /// let shmem = shmem::Init::new().start()?;
    /// assert!(shmem.my_pe() < shmem.n_pes());
    /// # Ok::<(), shmem::ThreadLevelError>(())
    /// ```
    ///
    /// # Errors
    /// If the library is, or was before, initialized at a lower level.
    #[doc(alias = "shmem_init_thread")]
    pub fn start(self) -> Result<Shmem<Local>, ThreadLevelError> {
        let level = if self.is_funneled {
            SHMEM_THREAD_FUNNELED
        } else {
            SHMEM_THREAD_SINGLE
        };
        job::enter(call!("Init::start"), level, self.place)
    }

    /// Initializes the library for use by all threads (`shmem_init_thread`, §9.2.1). Collective
    /// over all PEs.
    ///
    /// ```standalone_crate
    /// let shmem = shmem::Init::new().start_shared()?;
    /// let seen = std::thread::scope(|threads| threads.spawn(|| shmem.my_pe()).join());
    /// assert_eq!(seen.expect("no panic"), shmem.my_pe());
    /// # Ok::<(), shmem::ThreadLevelError>(())
    /// ```
    ///
    /// # Errors
    /// If the library is, or was before, initialized at a lower level.
    #[doc(alias = "shmem_init_thread")]
    pub fn start_shared(self) -> Result<Shmem<Shared>, ThreadLevelError> {
        job::enter(
            call!("Init::start_shared"),
            SHMEM_THREAD_MULTIPLE,
            self.place,
        )
    }
}
