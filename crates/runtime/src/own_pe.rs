//! The PE as a value: its links to the other PEs, its teams and what they take of the internal
//! area, and its requests. Exported calls that a test makes for one of several PEs find theirs by
//! a [`Caller`]; others look up the PE of the process, or its job.

use crate::buffers::Buffers;
use crate::coll::requests::Requests;
use crate::teams::active_set::kept::KeptTeams;
use crate::teams::agreement::Slots;
use crate::teams::registry::Teams;
use rushmem_communication::links::{self, Links};
use rushmem_pe::call::Call;
use rushmem_pe::job::members::Members;
use rushmem_pe::job::{self, Job};
use rushmem_pe::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// A PE. That of a process lives as long as it, since the library can be finalized and initialized
/// again.
pub struct OwnPe {
    pub(crate) links: &'static Links,
    pub(crate) teams: Teams,
    /// The parts of the internal area that teams can get.
    pub(crate) slots: Slots,
    /// The teams of active sets that are kept.
    pub(crate) kept: KeptTeams,
    /// The requests of non-blocking collectives.
    pub(crate) requests: Requests,
    /// A digest of the set and the root of this PE's last broadcast on an active set. Relaxed: if
    /// threads broadcast at once, another value only makes them wait for their receivers.
    pub(crate) last_broadcast: AtomicU64,
    /// The buffers of the program that are registered.
    pub(crate) buffers: Buffers,
    /// The number of successful searches for one word of a wait set.
    pub(crate) n_searches: AtomicUsize,
}

impl OwnPe {
    /// Makes a PE with the predefined teams, which have these members: the world, the PEs that
    /// share memory with this one, and the PEs of its machine.
    pub(crate) fn new(links: &'static Links, predefined: [Members; 3]) -> OwnPe {
        OwnPe {
            links,
            teams: Teams::new(links, predefined),
            slots: Slots::of_areas(links.area.areas()),
            kept: KeptTeams::default(),
            requests: Requests::new(links),
            last_broadcast: AtomicU64::new(0),
            buffers: Buffers::new(links.job.memory),
            n_searches: AtomicUsize::new(0),
        }
    }

    /// Returns the job, as this PE sees it.
    #[inline(always)]
    pub(crate) fn job(&self) -> &'static Job {
        &self.links.job
    }
}

static OWN_PE: OnceLock<&'static OwnPe> = OnceLock::new();

/// Sets the PE of this process, in the first init.
pub(crate) fn set(pe: &'static OwnPe) {
    links::set(pe.links);
    // This cannot fail: only the first init joins the job.
    let _ = OWN_PE.set(pe);
}

/// Returns the PE of this process. Ends the job with an error if the library is not initialized.
#[inline]
pub(crate) fn require(call: Call) -> &'static OwnPe {
    match OWN_PE.get() {
        Some(pe) if process::inits() > 0 => pe,
        _ => job::not_initialized(call),
    }
}

/// Returns the PE of this process once the first init has set it.
pub(crate) fn known() -> Option<&'static OwnPe> {
    OWN_PE.get().copied()
}

/// Returns the PE of this process, which exists from the first init on.
#[inline]
pub(crate) fn of_process() -> &'static OwnPe {
    OWN_PE
        .get()
        .expect("the first init sets it before it communicates")
}

/// Who makes a call: the PE of this process, by a [`Call`] alone, or a given PE. So each routine
/// exists once, and costs an exported call nothing.
pub trait Caller: Copy + Send + 'static {
    /// Returns the PE and the call. Ends the job with an error if the library is not initialized.
    fn enter(self) -> (&'static OwnPe, Call);
}

impl Caller for Call {
    #[inline(always)]
    fn enter(self) -> (&'static OwnPe, Call) {
        (require(self), self)
    }
}

/// A call by a given PE.
impl Caller for (&'static OwnPe, Call) {
    #[inline(always)]
    fn enter(self) -> (&'static OwnPe, Call) {
        self
    }
}
