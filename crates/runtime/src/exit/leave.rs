//! The exit of a PE that a launcher started, by `exit` or a return from main.
//!
//! A PE must report a regular exit to a process manager. An exit without finalize is a failure if
//! other PEs still need the PE. If every PE exits so with status 0, no PE needs another one, and
//! the job has produced its whole result. Therefore a PE that exits without finalize and with
//! status 0 waits until all others do the same, for [`LIMIT`] at most, since another PE may wait
//! for it in the library forever.
//! [`at_exit`](super::at_exit) is for the exit of a program that leaves the finalize to the
//! library.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use rushmem_bootstrap::UnmatchedInits;
use rushmem_communication::links::{self, Links};
use rushmem_communication::status::{self, ShownWait};
use rushmem_explain::status::AwaitedObject;
use rushmem_pe::call::call;
use rushmem_pe::call::warning::warning;
use rushmem_pe::process;
use rushmem_pe::process::time::nanoseconds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Maximum time that a PE which exits without finalize and with status 0 waits for the others. PEs
/// that return from `main` together are apart by less, and one that hangs must not keep this one.
const LIMIT: Duration = Duration::from_secs(10);

unsafe extern "C" {
    /// glibc's form of `atexit` that passes the status to the handler.
    fn on_exit(function: Handler, argument: *mut c_void) -> c_int;
}

/// True once a global exit, or the exit of a PE that has failed, has begun: nothing is synchronized
/// any more. Relaxed: it publishes nothing, and a thread that misses it is ended with the process.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Records that an exit begins that ends the job, whatever the other PEs do.
pub(crate) fn begin_exit() {
    EXITING.store(true, Ordering::Relaxed);
}

/// Returns true if an exit has begun that ends the job.
pub(crate) fn is_exiting() -> bool {
    EXITING.load(Ordering::Relaxed)
}

/// An exit handler, which is given the exit status.
pub(super) type Handler = extern "C" fn(c_int, *mut c_void);

/// Registers an exit handler, which runs before those that were registered earlier.
pub(super) fn register(handler: Handler) {
    // The result is ignored: if memory is lacking, the handler does not run, and the launcher takes
    // the exit for a failure.
    // SAFETY: the handler exists until the process ends, since the library is never unloaded, and
    // it does not use its argument.
    unsafe { on_exit(handler, std::ptr::null_mut()) };
}

/// Registers the exit handler of a PE that a launcher has started.
pub(crate) fn register_exit_handler() {
    register(leave);
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    let Some(links) = links::known() else { return };
    let job = &links.job;
    if is_exiting() || !process::is_this_process() {
        return;
    }

    if process::inits() == 0 {
        // If another thread holds the membership, it is in a call of the library, which this exit
        // interrupts. The exit is then not reported as a regular one.
        if let Ok(mut membership) = job.membership.try_lock() {
            membership.leave();
        }
        return;
    }

    if status == 0 && await_all_exits(links) {
        end_unfinalized(links);
        return;
    }

    // This PE has failed, which ends the job. `oshrun` learns that from the exit of the process.
    if let Some(aborter) = process::aborter()
        && !aborter.is_oshrun()
    {
        let me = job.me.0;
        let message = format!("PE {me}: exited with status {status} without shmem_finalize");
        process::flush_output();
        aborter.abort(status, &message);
    }
}

/// Adds to the status that this PE waits at its exit.
pub(super) fn show_exit(links: &'static Links) -> ShownWait {
    status::show(
        links,
        nanoseconds(),
        None,
        call!("exit"),
        AwaitedObject::Leaving,
    )
}

/// Returns true if every PE reaches its exit with status 0 and without finalize within [`LIMIT`].
/// The operations of this PE are then complete.
fn await_all_exits(links: &'static Links) -> bool {
    let _waits = show_exit(links);

    // In another thread, since a barrier has no time limit. After the limit nothing waits for that
    // thread, which ends with the process.
    let (sender, receiver) = mpsc::channel();
    let started = thread::Builder::new().spawn(move || {
        if links.network.is_open() {
            links.endpoints.complete(call!("exit"));
        }
        // This fails after the limit, when there is no receiver.
        let _ = sender.send(links.job.membership().barrier().is_ok());
    });
    started.is_ok() && receiver.recv_timeout(LIMIT) == Ok(true)
}

/// Reports to the launcher that this exit is not a failure. The library stays initialized: a later
/// exit handler of the program may call finalize, which must not wait for the other PEs, since they
/// may have ended.
fn end_unfinalized(links: &Links) {
    let Links { job, area, .. } = links;
    process::set_job_ended();
    links.close_network();

    let finalizes = area.flag(area.areas().finalizes());
    let inits = UnmatchedInits {
        inits: finalizes + u64::from(process::inits()),
        finalizes,
    };
    // `oshrun` prints such a warning itself.
    if job.me.0 == 0 && process::aborter().is_some_and(|aborter| !aborter.is_oshrun()) {
        warning!("{}", inits.warning());
    }

    // This fails if the launcher is gone, which needs no report then.
    let _ = job.membership().report_unfinalized(inits);
}
