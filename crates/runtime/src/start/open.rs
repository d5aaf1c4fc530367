//! The last steps of a start: the PE adds the observers of accesses, opens the symmetric memory to
//! the program, and meets all PEs in a barrier.
#![allow(unsafe_code)]

use super::connect::Connected;
use crate::coll::collectives::barrier_all;
use crate::own_pe::OwnPe;
use crate::reports::{job_trace, statistics};
use rushmem_communication::observers::races;
use rushmem_communication::observers::{self, Observer, writes};
use rushmem_communication::status;
use rushmem_explain::status::Stage;
use rushmem_heap::Allocator;
use rushmem_pe::call::{Call, call, fail, thread};
use rushmem_pe::constants::SHMEM_THREAD_MULTIPLE;
use rushmem_pe::job::{Job, mpi, permission};
use rushmem_pe::memory::address;
use rushmem_pe::process;
use rushmem_pe::settings::{Checks, Statistics};
use rushmem_system::thread_sanitizer::ThreadSanitizer;

/// A PE whose accesses are observed as the settings and the program request.
pub(super) struct Observed {
    pe: &'static OwnPe,
    /// True if any observer but the checks sees accesses.
    is_recorded: bool,
}

/// A PE to whose memory accesses may be made.
pub(super) struct Opened {
    pe: &'static OwnPe,
}

impl Connected {
    /// Adds the observers, except those of the statistics and the trace, which start later.
    pub(super) fn observe(self, call: Call) -> Observed {
        let links = self.pe.links;
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
        let is_recorded =
            is_counted || settings.trace.is_some() || records_writes || is_under_sanitizer;
        if is_recorded {
            status::locate_waits(links);
        }
        Observed {
            pe: self.pe,
            is_recorded,
        }
    }
}

impl Observed {
    /// Opens the symmetric memory with a heap that is empty, on the path of observed accesses if
    /// they are recorded.
    pub(super) fn open(self, call: Call) -> Opened {
        let job = self.pe.job();
        let layout = job.memory.layout();
        let heap = job.memory.heap();
        let heap_bytes = layout.heap_bytes();

        // Before the heap is divided anew.
        if let Err(why) = self.pe.buffers.give_back(job) {
            fail!(
                call,
                "the kernel refuses private pages for a buffer that was registered before the last finalize: {why}; raise \
                 the limits of memory, mappings and open files, or call shmemx_buffer_unregister before shmem_finalize"
            );
        }

        // SAFETY: the heap is mapped for the life of the process. The last finalize has dropped its
        // allocator behind a barrier, so no PE uses the blocks of that one any more.
        let mut allocator = unsafe { Allocator::new(heap, heap_bytes, layout.stride()) };
        if job.settings.checks() {
            allocator = allocator.guarded();
        }
        *job.allocator() = Some(allocator);

        // The paths of accesses are chosen before any access can take them.
        thread::set_at_once(job.thread_level >= SHMEM_THREAD_MULTIPLE);
        address::set_polls_counted(job.is_oversubscribed);
        address::open(heap, heap_bytes, self.is_recorded);
        Opened { pe: self.pe }
    }
}

impl Opened {
    /// Waits until all PEs have come this far, and begins what observes the program alone: neither
    /// counts nor traces the barrier.
    pub(super) fn meet(self, call: Call) -> &'static Job {
        let pe = self.pe;
        let job = pe.job();

        // The barrier is a call of the library, so the init counts before it.
        permission::record_initializer();
        process::increment_inits();

        // With `SHMEM_CHECK`, the members of a collective compare the names of their calls. Other
        // PEs may initialize by another routine, so all use this name.
        barrier_all((pe, call!("shmem_init")));
        mpi::warn_if_alone(job);
        status::enter(pe.links, Stage::Initialized);

        statistics::start(call, job);
        job_trace::start(pe, call);
        job
    }
}
