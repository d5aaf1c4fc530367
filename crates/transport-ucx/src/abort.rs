//! UCX (1.13 and 1.19 do) aborts the process when it cannot answer a peer that has just died. The launcher knows which
//! PE died first, and ends the job at once. An abort within UCX waits for that, so that this PE is not taken for the one
//! that failed.
//!
//! This file must never know what UCX is called for.
#![allow(unsafe_code)]

use rushmem_transport::Pe;
use std::cell::Cell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

thread_local! {
    /// Whether this thread is within UCX.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// What an abort does first: it waits for so long, then prints this.
struct Last {
    wait: libc::timespec,
    words: String,
}

static LAST: OnceLock<Last> = OnceLock::new();

/// Calls UCX, which may abort.
#[inline]
pub(crate) fn within<T>(call: impl FnOnce() -> T) -> T {
    WITHIN.set(true);
    let done = call();
    WITHIN.set(false);
    done
}

/// Aborts of this process, which is PE `me`, wait from now on if they come from UCX, unless the program handles them itself.
pub(crate) fn guard(me: Pe, wait: Duration) {
    let words = format!(
        "PE {me}: UCX ended this process, as it may when another PE has ended; see what UCX printed, and what other PEs \
         said last\n"
    );
    let wait = libc::timespec {
        tv_sec: wait.as_secs() as libc::time_t,
        tv_nsec: wait.subsec_nanos().into(),
    };
    if LAST.set(Last { wait, words }).is_err() {
        return;
    }
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: room for what the call writes.
    let known = unsafe { libc::sigaction(libc::SIGABRT, std::ptr::null(), now.as_mut_ptr()) } == 0;
    // SAFETY: written by the call, or zeros, which is a valid value of this structure.
    let mut action = unsafe { now.assume_init() };
    if known && action.sa_sigaction == libc::SIG_DFL {
        action.sa_sigaction = aborted as extern "C" fn(c_int) as usize;
        // SAFETY: a handler of this kind that calls only what a handler may call.
        unsafe { libc::sigaction(libc::SIGABRT, &action, null_mut()) };
    }
}

extern "C" fn aborted(signal: c_int) {
    if let Some(Last { wait, words }) = LAST.get().filter(|_| WITHIN.get()) {
        let mut left = *wait;
        // SAFETY: both are valid; a signal that is handled ends a sleep early.
        while unsafe { libc::nanosleep(&left, &mut left) } != 0 {}
        // SAFETY: as many bytes as are told. Nobody can be told where stderr is closed.
        unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
    }
    // SAFETY: numbers; a handler may call it.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: as above. The signal is blocked within its handler and ends the process on return.
    unsafe { libc::raise(signal) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, abort};

    const HOW: &str = "RUSHMEM_TEST_ABORTS";

    /// What the process of the test below does.
    fn end(how: &str) -> ! {
        guard(Pe(3), Duration::from_millis(1));
        match how {
            "within" => within(|| abort()),
            _ => abort(),
        }
    }

    #[test]
    fn an_abort_within_ucx_waits_and_names_the_pe() {
        if let Ok(how) = std::env::var(HOW) {
            end(&how);
        }
        let this = std::env::current_exe().expect("a test program knows its path");
        for (how, says_so) in [("within", true), ("elsewhere", false)] {
            let test = "abort::tests::an_abort_within_ucx_waits_and_names_the_pe";
            let mut command = Command::new(&this);
            command.args([test, "--exact", "--nocapture"]).env(HOW, how);
            let output = command.output().expect("it runs");
            assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(said.contains("PE 3: UCX ended this process"), says_so, "{said}");
        }
    }
}
