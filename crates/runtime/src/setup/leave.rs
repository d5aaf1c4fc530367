//! The exit of a PE that a launcher started, by `exit` or a return from main.
//!
//! A process manager must be told of a regular exit, and a PE that has not finalized must be distinguished from one
//! that the others still need. Only the others know: if every PE of the job exits with status 0, none needs another
//! one, and the job has produced its whole result. Therefore a PE that exits with status 0 waits for the others to
//! do the same, for [`LIMIT`] at most, since others may wait for it in the library for ever.
#![allow(unsafe_code)]

use crate::base::call::Call;
use crate::base::job::{self, Job};
use crate::base::process;
use crate::base::stdio;
use crate::net::network;
use core::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a PE waits at its exit for the others.
const LIMIT: Duration = Duration::from_secs(10);

unsafe extern "C" {
    /// glibc's form of `atexit` that passes the status to the handler.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Set by a global exit: nothing is synchronised any more.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Record that a global exit begins.
pub(super) fn begin_exit() {
    EXITING.store(true, Ordering::Release);
}

/// Whether a global exit has begun.
pub(super) fn is_exiting() -> bool {
    EXITING.load(Ordering::Acquire)
}

/// Register the handler that runs when the program exits.
pub(super) fn at_exit() {
    // SAFETY: a function that outlives the process's main. It fails only without memory, and the launcher then takes
    // the exit for a failure.
    unsafe { on_exit(leave, std::ptr::null_mut()) };
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    let Some(job) = job::known() else { return };
    if is_exiting() || !process::is_this_process() {
        return;
    }
    if process::depth() == 0 {
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

/// Whether every PE comes to its exit, with status 0 and without finalize, within [`LIMIT`]. Then the operations of this
/// PE are complete.
fn all_exit(job: &'static Job) -> bool {
    let (done, all) = mpsc::channel();
    let meet = move || {
        if network::is_open() {
            network::complete(Call(&"exit"));
        }
        // Nobody waits any more if it took too long.
        let _ = done.send(job.session().barrier().is_ok());
    };
    thread::Builder::new().spawn(meet).is_ok() && all.recv_timeout(LIMIT) == Ok(true)
}

/// Report to the launcher that this exit is no failure. The library stays initialised: an exit handler of the program
/// that runs later may still call finalize, which must not wait for the other PEs, because they may have ended.
fn end_unfinalized(job: &Job) {
    process::end_job();
    network::close();
    if job.me.0 == 0 && process::aborter().is_some_and(|aborter| !aborter.is_oshrun()) {
        let warning = "warning: no PE called shmem_finalize; call it before the program ends";
        // Without a stderr nobody can be told.
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    // A launcher that is gone need not be told.
    let _ = job.session().unfinalized();
}
