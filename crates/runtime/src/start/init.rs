//! Initialization (OpenSHMEM 1.6, §9.1.1): counts inits. The first one joins the job; the first one
//! after the last finalize connects to its PEs again.
#![allow(unsafe_code)]

use super::by_id::{ById, UNIQUE_ID_BYTES};
use super::{connect, join};
use crate::coll::collectives::barrier_all;
use crate::diagnosis::{crash, polling_calls, watchdog};
use crate::exit::{at_exit, finalize, threads};
use crate::own_pe::{self, OwnPe};
use crate::reports::{job_trace, statistics};
use core::ffi::c_int;
use rushmem_communication::links::Links;
use rushmem_communication::observers::races;
use rushmem_communication::observers::{self, Observer, writes};
use rushmem_communication::status::{self, machine};
use rushmem_explain::status::Stage;
use rushmem_heap::Allocator;
use rushmem_pe::call::{Call, call, fail, thread};
use rushmem_pe::constants::{SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE};
use rushmem_pe::job::{self, Job, caller, mpi};
use rushmem_pe::memory::{address, statics};
use rushmem_pe::process;
use rushmem_pe::settings::{Checks, Statistics};
use rushmem_system::lock::lock;
use rushmem_system::thread_sanitizer::ThreadSanitizer;
use rushmem_transport::Provider;
use std::sync::Mutex;

/// `shmem_init` (§9.1.1). `providers` are the transports that this build has.
pub fn init(call: Call, providers: &[Provider]) {
    enter(call, providers, SHMEM_THREAD_SINGLE, None);
}

/// `shmem_init_thread` (§9.2.1): an init that requests a thread level. Returns the provided level,
/// which is the one that the first init has requested. Returns `None`, without an init, if
/// `requested` is not a level.
pub fn init_thread(call: Call, providers: &[Provider], requested: c_int) -> Option<c_int> {
    if !is_thread_level(requested) {
        return None;
    }
    Some(enter(call, providers, requested, None).thread_level)
}

/// `shmemx_init_attr`: an init as PE `rank` of the `n_ranks` PEs of the job that the unique id
/// names; otherwise [`init_thread`]. Ends the job with an error if the rank or the id is invalid,
/// or if the process has joined by other arguments before.
pub fn init_by_id(
    call: Call,
    providers: &[Provider],
    requested: c_int,
    rank: c_int,
    n_ranks: c_int,
    id: &[u8; UNIQUE_ID_BYTES],
) -> Option<c_int> {
    let by_id = ById::new(call, rank, n_ranks, id);
    by_id.require_same(call);

    if !is_thread_level(requested) {
        return None;
    }
    Some(enter(call, providers, requested, Some(&by_id)).thread_level)
}

fn is_thread_level(level: c_int) -> bool {
    (SHMEM_THREAD_SINGLE..=SHMEM_THREAD_MULTIPLE).contains(&level)
}

/// `start_pes` (§9.1.13): an init that is finalized when the program exits. Has no effect while the
/// library is initialized. A PE that exits with another status than 0 while others go on is not
/// finalized: it has failed, which ends the job.
pub fn start_pes(call: Call, providers: &[Provider]) {
    if process::inits() > 0 {
        return;
    }
    enter(call, providers, SHMEM_THREAD_SINGLE, None);
    at_exit::finalize_at_exit(call!("start_pes (at exit)"), finalize::finalize);
}

/// Counts an init. The first one joins the job; the first one after the last finalize returns to
/// it.
fn enter(
    call: Call,
    providers: &[Provider],
    thread_level: c_int,
    by_id: Option<&ById>,
) -> &'static Job {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if process::is_child() {
        job::refuse_child(call);
    }

    let _entering = lock(&ONE_AT_A_TIME);
    if process::inits() > 0 {
        process::increment_inits();
        return job::require(call);
    }

    process::set_starting(true);
    let pe = threads::record_threads(|| open(call, providers, thread_level, by_id));
    let job = pe.job();
    thread::set_at_once(job.thread_level >= SHMEM_THREAD_MULTIPLE);

    let is_recorded = add_observers(call, pe.links);
    if is_recorded {
        status::locate_waits(pe.links);
    }

    // After `open`, which decides whether the network carries out atomic operations.
    address::set_polls_counted(job.is_oversubscribed);
    let heap_bytes = job.memory.layout().heap_bytes();
    address::open(job.memory.heap(), heap_bytes, is_recorded);

    // The barrier is a call of the library, so the init counts before it.
    caller::record_initializer();
    process::increment_inits();

    // With `SHMEM_CHECK`, the members of a collective compare the names of their calls. Other PEs
    // may initialize by another routine, so all use this name.
    barrier_all((pe, call!("shmem_init")));
    mpi::warn_if_alone(job);
    status::enter(pe.links, Stage::Initialized);

    // After the barrier, which is neither counted nor traced.
    statistics::start(call, job);
    job_trace::start(pe, call);
    process::set_starting(false);
    job
}

/// Adds the observers that the settings and the program request, except those of the statistics and
/// the trace, which start later. Returns true if any observer but the checks sees accesses.
fn add_observers(call: Call, links: &'static Links) -> bool {
    let job = &links.job;
    let settings = &job.settings;
    if settings.checks() {
        observers::add(Observer::Checks);
    }
    if settings.check == Checks::Races {
        races::open(call, job);
        observers::add(Observer::Races);
    }

    let records_writes = writes::are_wanted(settings);
    if records_writes {
        writes::start(links.area.writes());
        observers::add(Observer::Writes);
    }

    let is_under_sanitizer = ThreadSanitizer::find().is_some();
    if is_under_sanitizer {
        observers::add(Observer::ThreadSanitizer);
    }

    let is_counted = settings.statistics != Statistics::No;
    is_counted || settings.trace.is_some() || records_writes || is_under_sanitizer
}

/// Joins the job, or returns to it, and connects to its PEs.
fn open(
    call: Call,
    providers: &[Provider],
    thread_level: c_int,
    by_id: Option<&ById>,
) -> &'static OwnPe {
    let pe = match own_pe::known() {
        Some(pe) => {
            status::enter(pe.links, Stage::Starting);
            if let Err(error) = pe.job().session().report_resumption() {
                fail!(call, "{error}");
            }
            pe
        }
        None => {
            // The static data of a process without a launcher were not moved before main. They are
            // moved now, while this thread is the only one.
            if by_id.is_some() {
                statics::move_now();
            }
            let pe = join::join(call, providers, thread_level, by_id);
            machine::begin(pe.links);
            polling_calls::begin();
            watchdog::start(pe.job());
            pe
        }
    };
    let job = pe.job();

    let layout = job.memory.layout();
    // SAFETY: the heap is mapped for the life of the process. The last finalize has dropped its
    // allocator behind a barrier, so no PE uses the blocks of that one any more.
    let mut allocator =
        unsafe { Allocator::new(job.memory.heap(), layout.heap_bytes(), layout.stride()) };
    if job.settings.checks() {
        allocator = allocator.guarded();
    }
    *job.allocator() = Some(allocator);

    connect::connect(call, job, providers);
    // After the libraries of transports have installed their handlers.
    crash::install_for(job, call);
    pe
}
