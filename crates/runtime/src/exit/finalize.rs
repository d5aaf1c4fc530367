//! Finalization and global exit (OpenSHMEM 1.6, §9.1.4 and §9.1.6).
#![allow(unsafe_code)]

use super::{at_exit, leave};
use crate::api::{ctx, lock};
use crate::coll::collectives;
use crate::own_pe::{self, OwnPe};
use crate::reports::{job_trace, statistics};
use crate::teams::registry;
use core::ffi::c_int;
use rushmem_communication::links::Links;
use rushmem_communication::observers::races;
use rushmem_communication::status;
use rushmem_communication::sync::{finalizing, word_tasks};
use rushmem_explain::status::{AwaitedObject, Stage};
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{self, Call, call, fail};
use rushmem_pe::job::{self, mpi, permission};
use rushmem_pe::memory::{address, checks};
use rushmem_pe::process;
use rushmem_pe::process::time::nanoseconds;

/// `shmem_finalize` (§9.1.4): the call that matches the first init destroys all teams and contexts
/// and closes the library; any other call is a barrier. Once all PEs are at their exit, a call
/// synchronizes nothing. A call that matches no init only prints a warning, since such programs run
/// with other libraries.
pub fn finalize(call: Call) {
    if process::inits() == 0 && !process::is_child() {
        warning!(each: "{call}: called more often than shmem_init; the call has no effect");
        return;
    }

    let pe = own_pe::require(call);
    let job = pe.job();
    permission::check_finalizer(call, job);
    if process::job_has_ended() {
        end_init_and_report(pe, call);
    } else if process::inits() == 1 {
        close(pe, call);
        end_init_and_report(pe, call);
    } else {
        synchronize(pe);
        process::decrement_inits();
    }
}

/// Ends an init, and reports to the launcher that this PE has finalized.
fn end_init_and_report(pe: &OwnPe, call: Call) {
    process::decrement_inits();
    status::enter(pe.links, Stage::Finalized);
    if let Err(error) = pe.job().membership().report_finalize() {
        fail!(call, "{error}");
    }
}

/// Closes the library on all PEs.
fn close(pe: &'static OwnPe, call: Call) {
    let job = pe.job();
    // Encoded here, so that the counters do not include what finalize itself does.
    let counters = statistics::encode(pe.links);

    at_exit::count_end(&pe.links.area);
    at_exit::forget_due();
    mpi::warn_if_alone(job);

    // What the program has left: requests, tasks, locks, and overwritten guards of blocks.
    pe.requests.complete_all(call);
    word_tasks::forget(pe.links);
    lock::finalize(pe, call);
    checks::check_all_guards(call, job);

    synchronize(pe);

    // Behind the barrier, since by then every PE has made all its operations.
    races::close();
    if let Some(counters) = counters {
        statistics::report(pe, call, counters);
    }
    job_trace::finish(pe, call);
    ctx::destroy_of(pe, call, None);
    rushmem_system::log::debug!("every PE finalizes");

    if pe.links.network.is_open() {
        close_network(pe.links, call);
    }
    pe.kept.clear();
    pe.teams.clear(&pe.slots);
    pe.buffers.close(job);
    address::close();
    *job.allocator() = None;
    checks::forget_blocks();
    rushmem_system::log::debug!("the library is closed");
}

/// Waits until all PEs have called finalize.
pub(crate) fn synchronize(pe: &'static OwnPe) {
    let links = pe.links;
    // PEs that wait for this one elsewhere see that it is in finalize. They read the status once
    // they have seen the number that `enter` releases, so the status is written first.
    status::set_finalizing(links, Some(registry::entered_collectives(&pe.teams)));
    finalizing::enter(&links.job, &links.area);

    // With `SHMEM_CHECK`, the members of a collective compare the names of their calls. Other PEs
    // may finalize by another routine, so all use this name.
    collectives::finalize(pe, call!("shmem_finalize"));
    status::set_finalizing(links, None);
}

/// Closes the network once no PE has operations in flight. A PE must not close it while others have
/// operations on its memory, for example on the flags of the barrier of finalize.
fn close_network(links: &'static Links, call: Call) {
    links.endpoints.complete(call);

    let waits = status::show(links, nanoseconds(), None, call, AwaitedObject::Exit);
    if let Err(error) = links.job.membership().barrier() {
        fail!(call, "{error}");
    }
    drop(waits);

    links.close_network();
}

/// Returns the number of inits that no finalize has matched; `None` if a finalize would not wait
/// for other PEs, since the library is not initialized or all PEs are at their exit.
pub fn inits_in_force() -> Option<u32> {
    let inits = process::inits();
    if inits == 0 || process::job_has_ended() {
        return None;
    }
    Some(inits)
}

/// `shmem_global_exit` (§9.1.6): ends the job with `status`, whatever the other PEs do.
pub fn global_exit(call: Call, status: c_int) -> ! {
    job::require(call);
    let status = exit_status(status);
    leave::begin_exit();
    process::flush_output();

    let is_ended_by_launcher =
        process::aborter().is_some_and(|aborter| aborter.global_exit(status));
    if !is_ended_by_launcher {
        // Runs the exit handlers of the program, as the standard requires.
        // SAFETY: the program asks for the exit, and the library's own exit handlers do nothing
        // after `begin_exit`.
        unsafe { libc::exit(status) }
    }
    call::leave(is_ended_by_launcher, status)
}

/// Returns the exit status of the job. The kernel keeps only the low 8 bits: a status whose low
/// bits are 0 becomes 255, so that it is not taken for success.
fn exit_status(status: c_int) -> c_int {
    match status & 0xff {
        0 if status != 0 => 255,
        low => low,
    }
}
