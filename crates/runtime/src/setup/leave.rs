//! The exit of a process that a process manager started: it has to hear that all is well.

use crate::job;
use crate::setup::EXITING;
use core::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

unsafe extern "C" {
    /// glibc's `atexit` that passes on the status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Take leave of the process manager when the program exits; exits before the last finalize end the job.
pub(super) fn at_exit() {
    // SAFETY: a function that outlives the process's main. It fails only without memory, and the manager then takes
    // the exit for a failure.
    unsafe { on_exit(leave, std::ptr::null_mut()) };
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    let Some(job) = job::known() else { return };
    if EXITING.load(Ordering::Acquire) || !job::is_this_process() {
        return;
    }
    if job::depth() == 0 {
        // Another thread that still holds the session has not left the library.
        if let Ok(mut session) = job.session.try_lock() {
            session.leave();
        }
    } else if let Some(aborter) = job::aborter() {
        let me = job.me.0;
        let message = format!("PE {me}: exited with status {status} without shmem_finalize");
        aborter.abort(status, &message);
    }
}
