//! The handle of the library: initialization, finalization and the routines for all PEs (OpenSHMEM
//! 1.6, §9.1, §9.2).

use crate::agreement::{AgreementStep, EnteredStep};
use crate::context::Context;
use crate::panics::{self, end_if_panicking};
use crate::team::Team;
use crate::threads::{Local, Threads};
use crate::unique_id::Place;
use core::ffi::c_int;
use rushmem_providers::ALL;
use rushmem_runtime::constants::{
    SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED,
    SHMEM_THREAD_SINGLE, SHMEM_VENDOR_STRING,
};
use rushmem_runtime::heap;
use rushmem_runtime::{Call, TeamHandle, collectives, setup, start};
use rushmem_system::lock::lock;
use std::fmt;
use std::ops::Deref;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// A handle of the initialized library (§9.1). Everything that needs the library borrows the
/// handle.
///
/// After all handles are dropped, the library is finalized (`shmem_finalize`, §9.1.4) when the
/// process exits, or initializes the library again. Both are collective over all PEs: the job ends
/// with a message if another PE allocates a symmetric object instead. The drop itself waits for no
/// PE, so a program may return an error from `main` at any time: the error is printed, and the job
/// ends with its exit status. [`finalize`](Shmem::finalize) finalizes the library at once.
///
/// The handle dereferences to the default [`Context`]: its [peers](Shmem::pe) are those of that
/// context, and `shmem.quiet()` completes the operations on it.
pub struct Shmem<C: Threads = Local> {
    context: Context<'static, C>,
    world: Team<'static, C>,
    shared: Team<'static, C>,
    node: Team<'static, C>,
}

/// The version of the standard that the library implements, major and minor (§9.1.11).
#[doc(alias = "shmem_info_get_version")]
#[doc(alias = "SHMEM_MAJOR_VERSION")]
#[doc(alias = "SHMEM_MINOR_VERSION")]
pub const VERSION: (u32, u32) = (SHMEM_MAJOR_VERSION as u32, SHMEM_MINOR_VERSION as u32);

/// The name and version of the library (§9.1.12).
#[doc(alias = "shmem_info_get_name")]
#[doc(alias = "SHMEM_VENDOR_STRING")]
pub const NAME: &str = SHMEM_VENDOR_STRING;

/// The [`Local`] handles, all of which one thread has.
struct LocalHandles {
    thread: ThreadId,
    count: usize,
}

/// The [`Local`] handles that exist; `None` if there are none.
static LOCAL: Mutex<Option<LocalHandles>> = Mutex::new(None);

/// The error if the library was initialized before with a lower thread level, which remains in
/// force (§9.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLevelError {
    requested: i32,
    provided: i32,
}

impl fmt::Display for ThreadLevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is provided instead of {}, since the library was initialized with that before; \
             call shmem::init_shared first, and instead of shmem::launch",
            name_of_level(self.provided),
            name_of_level(self.requested)
        )
    }
}

impl std::error::Error for ThreadLevelError {}

fn name_of_level(level: i32) -> &'static str {
    match level {
        SHMEM_THREAD_SINGLE => "SHMEM_THREAD_SINGLE",
        SHMEM_THREAD_FUNNELED => "SHMEM_THREAD_FUNNELED",
        SHMEM_THREAD_SERIALIZED => "SHMEM_THREAD_SERIALIZED",
        _ => "SHMEM_THREAD_MULTIPLE",
    }
}

/// Sends the library's events from now on to the program's subscriber of
/// [`tracing`](https://docs.rs/tracing): the default one of the process, or of the thread in which
/// an event happens. This does not depend on whether `SHMEM_DEBUG` prints them. The targets of the
/// events begin with `rushmem_`, and each event has the field `pe`. A call before
/// [`init`](crate::init) includes the events of the initialization.
///
/// Without this call a subscriber receives no events of the library. The library never sets a
/// default subscriber.
///
/// ```no_run
/// tracing_subscriber::fmt().init();
/// shmem::forward_events();
/// let shmem = shmem::init();              // its events are lines of the subscriber
/// ```
pub fn forward_events() {
    rushmem_system::log::give_to_program();
}

/// Initializes the library at `level`, one of the constants `SHMEM_THREAD_`. With a place in a job
/// by a unique id, no launcher is needed.
pub(crate) fn enter<C: Threads>(
    call: Call,
    level: c_int,
    place: Option<Place<'_>>,
) -> Result<Shmem<C>, ThreadLevelError> {
    // Locked until the end, so that no two threads at once become the one that has handles.
    let mut local = lock(&LOCAL);
    setup::finalize_due();

    // An initialization that is in force keeps its level. This one is refused before it is counted:
    // only a finalization, which is collective, would undo it.
    if setup::query_initialized() == 1 {
        let provided = setup::query_thread(call);
        if provided < level {
            return Err(ThreadLevelError {
                requested: level,
                provided,
            });
        }
    }

    let thread = thread::current().id();
    if C::IS_ONE
        && let Some(handles) = &*local
        && handles.thread != thread
    {
        call.fail(format_args!(
            "another thread has initialized the library for itself; initialize it with \
             shmem::init_shared() where several threads call it"
        ));
    }

    let provided = match place {
        None => start::init_thread(call, ALL, level),
        Some(Place { id, rank, n_ranks }) => {
            let rank = c_number(rank);
            let n_ranks = c_number(n_ranks);
            start::init_by_id(call, ALL, level, rank, n_ranks, id.bytes())
        }
    };
    let Some(provided) = provided else {
        unreachable!("{level} is a level of the standard");
    };

    if provided < level {
        // An earlier initialization had another level, which remains. This one is undone, since
        // there is no handle whose drop would finalize it.
        finalize(call);
        return Err(ThreadLevelError {
            requested: level,
            provided,
        });
    }

    // Counted only now, since an initialization that is undone makes no handle.
    if C::IS_ONE {
        let handles = local.get_or_insert(LocalHandles { thread, count: 0 });
        handles.count += 1;
    }
    panics::name_pe(setup::my_pe(call));
    Ok(Shmem {
        context: Context::default_one(),
        world: Team::borrowed(TeamHandle::WORLD),
        shared: Team::borrowed(TeamHandle::SHARED),
        node: Team::borrowed(TeamHandle::NODE),
    })
}

/// Returns a number or count of PEs for the runtime, which refuses the maximum: no job has as many.
pub(crate) fn c_number(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

impl<C: Threads> Shmem<C> {
    /// Returns the number of this PE in the world (`shmem_my_pe`, §9.1.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// assert!(shmem.my_pe() < shmem.n_pes());
    /// ```
    #[doc(alias = "shmem_my_pe")]
    #[inline]
    pub fn my_pe(&self) -> usize {
        setup::my_pe(call!("Shmem::my_pe")) as usize
    }

    /// Returns the number of PEs of the job (`shmem_n_pes`, §9.1.3).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// assert_eq!(shmem.peers().len(), shmem.n_pes());
    /// ```
    #[doc(alias = "shmem_n_pes")]
    #[inline]
    pub fn n_pes(&self) -> usize {
        setup::n_pes(call!("Shmem::n_pes")) as usize
    }

    /// Returns the team of all PEs (`SHMEM_TEAM_WORLD`, §9.4). A context of it may be kept as long
    /// as this handle.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let world = shmem.world();
    /// assert_eq!((world.my_pe(), world.n_pes()), (shmem.my_pe(), shmem.n_pes()));
    /// ```
    #[doc(alias = "SHMEM_TEAM_WORLD")]
    pub fn world(&self) -> &Team<'_, C> {
        &self.world
    }

    /// Returns the team of the PEs whose memory this PE can load and store (`SHMEM_TEAM_SHARED`,
    /// §9.4).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(17);
    /// let shared = shmem.shared();
    /// assert!(shared.peers().all(|peer| mine.on(peer).ptr().is_some()));
    /// ```
    #[doc(alias = "SHMEM_TEAM_SHARED")]
    pub fn shared(&self) -> &Team<'_, C> {
        &self.shared
    }

    /// Returns the team of the PEs on this PE's machine (`SHMEM_TEAM_NODE`, an extension of
    /// Cray's).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let node = shmem.node();
    /// let first_of_node = node.my_pe() == 0;
    /// let n_nodes = shmem.world().all_reduce(u32::from(first_of_node), shmem::Sum);
    /// assert!(n_nodes >= 1);
    /// ```
    #[doc(alias = "SHMEM_TEAM_NODE")]
    pub fn node(&self) -> &Team<'_, C> {
        &self.node
    }

    /// Waits until all PEs have called this, and completes the operations that they have issued on
    /// their default contexts (`shmem_barrier_all`, §9.10.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.boxed(0);
    /// inbox.on(shmem.next()).write(17);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.load(), 17);
    /// ```
    #[doc(alias = "shmem_barrier_all")]
    #[inline]
    pub fn barrier_all(&self) {
        collectives::barrier_all(call!("Shmem::barrier_all"));
    }

    /// Waits until all PEs have called this. Completes no operations (`shmem_sync_all`, §9.10.4).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(0);
    /// mine.store(17);
    /// shmem.sync_all();                       // a store of a PE to its own element is complete
    /// assert_eq!(mine.on(shmem.next()).read(), 17);
    /// ```
    #[doc(alias = "shmem_sync_all")]
    #[inline]
    pub fn sync_all(&self) {
        collectives::sync_all(call!("Shmem::sync_all"));
    }

    /// Sets the level of detail of a tool that observes the program (`shmem_pcontrol`, §9.15). The
    /// library itself does nothing.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// shmem.pcontrol(0);                      // a tool may record nothing from here
    /// shmem.barrier_all();
    /// shmem.pcontrol(1);                      // to here
    /// ```
    #[doc(alias = "shmem_pcontrol")]
    pub fn pcontrol(&self, _level: i32) {}

    /// Returns the size and the use of the symmetric heap of this PE (`shmemx_heap_info`).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let before = shmem.heap_info();
    /// let array = shmem.array::<u64>(1000);
    /// assert!(shmem.heap_info().used >= before.used + 8000);
    /// ```
    #[doc(alias = "shmemx_heap_info")]
    pub fn heap_info(&self) -> HeapInfo {
        let info = heap::info(call!("Shmem::heap_info"));
        HeapInfo {
            total: info.total,
            used: info.used,
            largest_free: info.largest_free,
        }
    }

    /// Drops this handle, and finalizes the library now instead of at the exit of the process, if
    /// this is the last handle (`shmem_finalize`, §9.1.4). Collective over all PEs, and completes
    /// the operations of all. The job ends with a message if another PE allocates a symmetric
    /// object instead.
    ///
    /// ```
    /// let shmem = shmem::init();
    /// let me = shmem.my_pe();
    /// shmem.finalize();
    /// // No other PE accesses the memory of this one any more.
    /// let shmem = shmem::init();
    /// assert_eq!(shmem.my_pe(), me);
    /// ```
    #[doc(alias = "shmem_finalize")]
    pub fn finalize(self) {
        drop(self);
        setup::finalize_due();
    }

    /// Ends the job with an exit status, whatever the other PEs do (`shmem_global_exit`, §9.1.6).
    ///
    /// ```no_run
    /// # let shmem = shmem::init();
    /// if shmem.my_pe() == 0 {
    ///     shmem.global_exit(3);
    /// }
    /// shmem.barrier_all();                    // does not return: the job ends with status 3
    /// ```
    #[doc(alias = "shmem_global_exit")]
    pub fn global_exit(&self, status: i32) -> ! {
        setup::global_exit(call!("Shmem::global_exit"), status)
    }
}

/// The symmetric heap of a PE, in bytes (`shmemx_heap_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapInfo {
    /// The size of the heap: `SHMEM_SYMMETRIC_SIZE` and the bytes that the allocator needs in
    /// addition, in whole pages.
    pub total: usize,
    /// The sum of the sizes of all blocks, as they were requested.
    pub used: usize,
    /// The size of a block for which there is room now. One that is up to 32 bytes larger may have
    /// room, too.
    pub largest_free: usize,
}

impl<C: Threads> Deref for Shmem<C> {
    type Target = Context<'static, C>;
    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.context
    }
}

impl<C: Threads> Drop for Shmem<C> {
    /// Has the library finalized when the process exits.
    fn drop(&mut self) {
        end_if_panicking();

        // Locked until the end, so that a thread that initializes the library meanwhile finds
        // either this handle or its finalization.
        let mut local = lock(&LOCAL);
        setup::finalize_at_exit(call!("Shmem::finalize"), finalize);

        if C::IS_ONE
            && let Some(handles) = &mut *local
        {
            handles.count -= 1;
            if handles.count == 0 {
                *local = None;
            }
        }
    }
}

/// Finalizes the library, after a check that all PEs do so: objects of a PE that does not would be
/// in the heap of the next initialization.
fn finalize(call: Call) {
    if let Some(inits) = setup::inits_in_force() {
        let mistake = "does not drop its handle of the library; all PEs drop as many, in the same \
            order as they allocate";
        EnteredStep::new(call).compare(AgreementStep::Finalize { inits }, mistake, mistake);
    }
    setup::finalize(call);
}

impl<C: Threads> fmt::Debug for Shmem<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shmem")
            .field("pe", &self.my_pe())
            .field("n_pes", &self.n_pes())
            .finish()
    }
}
