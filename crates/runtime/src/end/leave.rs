//! The exit of a PE that a launcher started, by `exit` or a return from main.
//!
//! A process manager must learn of a regular exit, and a PE that has not finalized must be
//! distinguished from one that the others still need. Only the others know: if every PE of the job
//! exits with status 0, none needs another one, and the job has produced its whole result.
//! Therefore a PE that exits with status 0 waits for the others to do the same, for [`LIMIT`] at
//! most, since others may wait for it in the library forever.
//!
//! After `start_pes` the library is finalized at the exit. A PE that exits with another status
//! waits until the others come to their exit or call finalize, for [`grace`] at most, since they
//! may wait for it in a collective; if they do not come, it has failed.
#![allow(unsafe_code)]

use crate::call::call;
use crate::call::warning::warning;
use crate::diagnosis::status::{self, ShownWait};
use crate::job::{self, Job};
use crate::net::flags;
use crate::net::{endpoints, network};
use crate::process;
use crate::process::stdio;
use crate::process::time::nanoseconds;
use core::ffi::{c_int, c_void};
use rushmem_explain::status::Subject;
use rushmem_transport::Pe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The time for which a PE waits at its exit for the others.
const LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at how many of them have come.
const PAUSE: Duration = Duration::from_millis(1);

unsafe extern "C" {
    /// glibc's form of `atexit` that passes the status to the handler.
    fn on_exit(function: Handler, argument: *mut c_void) -> c_int;
}

/// Set by a global exit: nothing is synchronized any more.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Records that a global exit begins.
pub(crate) fn begin_exit() {
    EXITING.store(true, Ordering::Release);
}

/// Returns true if a global exit has begun.
pub(crate) fn is_exiting() -> bool {
    EXITING.load(Ordering::Acquire)
}

/// A function that runs when the program exits, given the status.
type Handler = extern "C" fn(c_int, *mut c_void);

/// Registers a handler, which runs before those that were registered earlier.
fn register(handler: Handler) {
    // SAFETY: a function that outlives the process's main. It fails only without memory, and the
    // launcher then takes the exit for a failure.
    unsafe { on_exit(handler, std::ptr::null_mut()) };
}

/// Registers the handler of every PE that a launcher started.
pub(crate) fn at_exit() {
    register(leave);
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    let Some(job) = job::known() else { return };
    if is_exiting() || !process::is_this_process() {
        return;
    }
    if process::inits() == 0 {
        // If another thread still holds the session, it has not left the library.
        if let Ok(mut session) = job.session.try_lock() {
            session.leave();
        }
    } else if status == 0 && all_exit(job) {
        end_unfinalized(job);
    } else if let Some(aborter) = process::aborter().filter(|aborter| !aborter.is_oshrun()) {
        let me = job.me.0;
        let message = format!("PE {me}: exited with status {status} without shmem_finalize");
        stdio::flush();
        aborter.abort(status, &message);
    }
}

/// The number of times that `start_pes` has begun to use the library.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// The number of these uses that this PE has counted as ended, on PE 0.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Records that `start_pes` begins to use the library; `handler` runs at the exit.
pub(crate) fn starts(handler: Handler) {
    if STARTED.fetch_add(1, Ordering::Relaxed) == 0 {
        register(handler);
    }
}

/// Counts this PE as one that finalizes or exits, if `start_pes` has begun.
pub(crate) fn ends() {
    let started = STARTED.load(Ordering::Relaxed);
    if ENDED.swap(started, Ordering::Relaxed) < started {
        let [at, by_network] = flags::area().areas().exits();
        flags::area().count(Pe(0), at, by_network);
    }
}

/// Returns how long a PE that is to finalize at its exit, with another status than 0, waits there
/// for the others: 1.5 s by default, since the failure of a PE ends the job within 2 s.
fn grace(job: &Job) -> Duration {
    job.settings.host_limit * 3 / 20
}

/// Returns true if a PE at its exit finalizes the library, after `start_pes`: with a status other
/// than 0 only if all the others come soon. If they do not, this ends the job.
pub(crate) fn may_finalize(status: c_int) -> bool {
    let is_due = process::inits() > 0 && process::is_this_process() && !is_exiting();
    let Some(job) = job::known().filter(|_| is_due) else { return false };
    ends();
    // The part of the status that a launcher sees.
    let status = status & 0xff;
    let may = status == 0 || all_have_come(job);
    if !may {
        give_up(job, status);
    }
    may
}

/// Ends the job because this PE exits while others go on.
fn give_up(job: &Job, status: c_int) {
    let me = job.me.0;
    let message = format!(
        "PE {me}: exited with status {status} after start_pes while other PEs go on; a PE that has \
         not failed must return 0 from main or call shmem_finalize before"
    );
    begin_exit();
    stdio::flush();
    if let Some(aborter) = process::aborter() {
        aborter.abort(status, &message);
    }
}

/// Shows in the status that this PE waits at its exit.
fn shows_exit() -> ShownWait {
    status::show(nanoseconds(), (call!("exit"), Subject::Leaving))
}

/// Returns true if every PE has come to its exit or to finalize within [`grace`].
fn all_have_come(job: &Job) -> bool {
    let area = flags::area();
    let first = || std::iter::once(Pe(0));
    let come = || area.areas().exits().iter().flat_map(|at| area.shown(first(), *at)).sum::<u64>();
    let _waits = shows_exit();
    // Each earlier end was a barrier, so all were counted there.
    let all = u64::from(job.n_pes) * ENDED.load(Ordering::Relaxed);
    let end = Instant::now() + grace(job);
    while come() < all {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}

/// Returns true if every PE comes to its exit, with status 0 and without finalize, within
/// [`LIMIT`]. Then the operations of this PE are complete.
fn all_exit(job: &'static Job) -> bool {
    let _waits = shows_exit();
    let (done, all) = mpsc::channel();
    let meet = move || {
        if network::is_open() {
            endpoints::complete(call!("exit"));
        }
        // The caller waits no longer if it took too long.
        let _ = done.send(job.session().barrier().is_ok());
    };
    thread::Builder::new().spawn(meet).is_ok() && all.recv_timeout(LIMIT) == Ok(true)
}

/// Reports to the launcher that this exit is no failure. The library stays initialized: an exit
/// handler of the program that runs later may still call finalize, which must not wait for the
/// other PEs, because they may have ended.
fn end_unfinalized(job: &Job) {
    process::end_job();
    endpoints::close();
    if job.me.0 == 0 && process::aborter().is_some_and(|aborter| !aborter.is_oshrun()) {
        warning!("no PE called shmem_finalize; call it before the program ends");
    }
    // A launcher that is gone needs no report.
    let _ = job.session().unfinalized();
}
