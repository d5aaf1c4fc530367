//! The exit of a PE that a launcher started, by `exit` or a return from main.
//!
//! A PE must report a regular exit to a process manager. An exit without finalize is a failure if
//! other PEs still need the PE. If every PE exits so with status 0, no PE needs another one, and
//! the job has produced its whole result. Therefore a PE that exits without finalize and with
//! status 0 waits until all others do the same, for [`LIMIT`] at most, since another PE may wait
//! for it in the library forever.
//!
//! After `start_pes` the library is finalized at the exit. A PE that exits with another status than
//! 0 waits until the others have reached their exit or finalize, for [`grace`] at most, since they
//! may wait for it in a collective. If they have not, this PE has failed.
#![allow(unsafe_code)]

use crate::call::call;
use crate::call::warning::warning;
use crate::diagnosis::status::{self, ShownWait};
use crate::job::{self, Job};
use crate::net::flags;
use crate::net::{endpoints, network};
use crate::process;
use crate::process::time::nanoseconds;
use core::ffi::{c_int, c_void};
use rushmem_explain::status::Subject;
use rushmem_transport::Pe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that a PE which exits without finalize and with status 0 waits for the others.
const LIMIT: Duration = Duration::from_secs(10);
/// The time between two reads of the number of PEs that have reached their exit.
const PAUSE: Duration = Duration::from_millis(1);

unsafe extern "C" {
    /// glibc's form of `atexit` that passes the status to the handler.
    fn on_exit(function: Handler, argument: *mut c_void) -> c_int;
}

/// True once a global exit, or the exit of a PE that has failed after `start_pes`, has begun:
/// nothing is synchronized any more.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Records that an exit begins that ends the job, whatever the other PEs do.
pub(crate) fn begin_exit() {
    EXITING.store(true, Ordering::Release);
}

/// Returns true if an exit has begun that ends the job.
pub(crate) fn is_exiting() -> bool {
    EXITING.load(Ordering::Acquire)
}

/// An exit handler, which is given the exit status.
type Handler = extern "C" fn(c_int, *mut c_void);

/// Registers an exit handler, which runs before those that were registered earlier.
fn register(handler: Handler) {
    // If it fails for lack of memory, the launcher takes the exit for a failure.
    // SAFETY: the handler exists until the process ends, since the library is never unloaded.
    unsafe { on_exit(handler, std::ptr::null_mut()) };
}

/// Registers the exit handler of a PE that a launcher has started.
pub(crate) fn at_exit() {
    register(leave);
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    let Some(job) = job::known() else { return };
    if is_exiting() || !process::is_this_process() {
        return;
    }
    if process::inits() == 0 {
        // If another thread holds the session, that thread is still in the library.
        if let Ok(mut session) = job.session.try_lock() {
            session.leave();
        }
    } else if status == 0 && await_all_exits(job) {
        end_unfinalized(job);
    } else if let Some(aborter) = process::aborter().filter(|aborter| !aborter.is_oshrun()) {
        let me = job.me.0;
        let message = format!("PE {me}: exited with status {status} without shmem_finalize");
        process::flush_output();
        aborter.abort(status, &message);
    }
}

/// The number of times that `start_pes` has initialized the library.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// The number of these initializations whose end this PE has counted on PE 0.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Records that `start_pes` has initialized the library. The first time, also registers `handler`
/// for the exit.
pub(crate) fn count_start(handler: Handler) {
    if STARTED.fetch_add(1, Ordering::Relaxed) == 0 {
        register(handler);
    }
}

/// Counts this PE on PE 0 as one that has reached finalize or its exit, if `start_pes` has
/// initialized the library since this PE was last counted.
pub(crate) fn count_end() {
    let started = STARTED.load(Ordering::Relaxed);
    if ENDED.swap(started, Ordering::Relaxed) < started {
        let [at, by_network] = flags::area().areas().exits();
        flags::area().count(Pe(0), at, by_network);
    }
}

/// Returns the time that a PE which exits with another status than 0 after `start_pes` waits for
/// the others: 1.5 s by default, since the failure of a PE must end the job within 2 s.
fn grace(job: &Job) -> Duration {
    job.settings.host_limit * 3 / 20
}

/// Called at an exit after `start_pes`. Returns true if this PE must finalize the library; returns
/// false at once if the library is not initialized or an exit ends the job. Counts the end of this
/// PE. If its status is not 0, waits for the time of [`grace`] until the other PEs have reached
/// their exit or finalize; if they have not, ends the job with this status.
pub(crate) fn reach_exit(status: c_int) -> bool {
    let is_due = process::inits() > 0 && process::is_this_process() && !is_exiting();
    let Some(job) = job::known().filter(|_| is_due) else {
        return false;
    };
    count_end();
    // The part of the status that a launcher sees.
    let status = status & 0xff;
    if status == 0 || await_all_ends(job) {
        return true;
    }
    let me = job.me.0;
    let message = format!(
        "PE {me}: exited with status {status} after start_pes while other PEs go on; a PE that has \
         not failed must return 0 from main or call shmem_finalize before"
    );
    begin_exit();
    process::flush_output();
    if let Some(aborter) = process::aborter() {
        aborter.abort(status, &message);
    }
    false
}

/// Adds to the status that this PE waits at its exit.
fn show_exit() -> ShownWait {
    status::show(nanoseconds(), (call!("exit"), Subject::Leaving))
}

/// Returns true if every PE reaches its exit or finalize within [`grace`].
fn await_all_ends(job: &Job) -> bool {
    let area = flags::area();
    let first = || std::iter::once(Pe(0));
    let ended = || {
        area.areas()
            .exits()
            .iter()
            .flat_map(|at| area.words_of(first(), *at))
            .sum::<u64>()
    };
    let _waits = show_exit();
    // Each PE is counted once for each end. Every earlier end was a barrier, so all were counted.
    let all = u64::from(job.n_pes) * ENDED.load(Ordering::Relaxed);
    let end = Instant::now() + grace(job);
    while ended() < all {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}

/// Returns true if every PE reaches its exit with status 0 and without finalize within [`LIMIT`].
/// The operations of this PE are then complete.
fn await_all_exits(job: &'static Job) -> bool {
    let _waits = show_exit();
    let (done, all) = mpsc::channel();
    let meet = move || {
        if network::is_open() {
            endpoints::complete(call!("exit"));
        }
        // After the limit there is no receiver.
        let _ = done.send(job.session().barrier().is_ok());
    };
    thread::Builder::new().spawn(meet).is_ok() && all.recv_timeout(LIMIT) == Ok(true)
}

/// Reports to the launcher that this exit is not a failure. The library stays initialized: a later
/// exit handler of the program may call finalize, which must not wait for the other PEs, since they
/// may have ended.
fn end_unfinalized(job: &Job) {
    process::set_job_ended();
    endpoints::close();
    if job.me.0 == 0 && process::aborter().is_some_and(|aborter| !aborter.is_oshrun()) {
        warning!("no PE called shmem_finalize; call it before the program ends");
    }
    // If the launcher is gone, no report is needed.
    let _ = job.session().report_unfinalized();
}
