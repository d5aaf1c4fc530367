//! Delays aborts by UCX. UCX (1.13 and 1.19) aborts the process if it cannot answer a peer that has
//! just died. So that the launcher reports that peer and not this PE, an abort while UCX makes
//! progress waits first: the launcher ends the job meanwhile.
#![allow(unsafe_code)]

use libc::siginfo_t;
use rushmem_transport::Pe;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

thread_local! {
    /// True while UCX makes progress in this thread.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// What happens at an abort.
struct AbortAction {
    /// The time for which an abort by UCX waits.
    wait: libc::timespec,
    /// The message that it prints after that.
    message: String,
    /// The action that was installed before, for all other aborts.
    previous: libc::sigaction,
}

static ACTION: OnceLock<AbortAction> = OnceLock::new();

/// Calls UCX's progress function, which may abort, and marks this thread as in UCX meanwhile.
#[inline]
pub(crate) fn within<T>(call: impl FnOnce() -> T) -> T {
    WITHIN.set(true);
    let done = call();
    WITHIN.set(false);
    done
}

/// Installs a handler of SIGABRT that makes aborts by UCX wait and then print a message that names
/// this PE, `me`. For other aborts it calls the previous handler, which may be the program's, or
/// the one by which the library reports crashes. Installs none if the program ignores the signal.
/// Only the first call of the process has an effect.
pub(crate) fn guard(me: Pe, wait: Duration) {
    let message = format!(
        "PE {me}: UCX ended this process, as it may when another PE has ended; see what UCX printed, and what other PEs \
         said last\n"
    );

    let wait = libc::timespec {
        tv_sec: wait.as_secs() as libc::time_t,
        tv_nsec: wait.subsec_nanos().into(),
    };

    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `previous` has room for what the call writes.
    let known = unsafe { libc::sigaction(libc::SIGABRT, std::ptr::null(), previous.as_mut_ptr()) };
    // SAFETY: `previous` was written by the call, or has zeros, which are a valid value.
    let previous = unsafe { previous.assume_init() };

    let action = AbortAction {
        wait,
        message,
        previous,
    };
    if ACTION.set(action).is_err() || known != 0 || previous.sa_sigaction == libc::SIG_IGN {
        return;
    }

    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = aborted;
    let mut action = previous;
    action.sa_sigaction = handler as usize;
    action.sa_flags |= libc::SA_SIGINFO;
    // This cannot fail: the signal exists, and may have a handler.
    // SAFETY: `action` has a handler of three arguments, as the flag says, that calls only what a
    // handler may call, and the previous handler.
    unsafe { libc::sigaction(libc::SIGABRT, &action, null_mut()) };
}

/// Returns true if a thread of this process has sent the signal, as `abort` does. A signal from
/// another process ends this one at once.
fn is_own(info: &siginfo_t) -> bool {
    // SAFETY: the kernel stores the sender of a signal with the code `SI_TKILL`.
    info.si_code == libc::SI_TKILL && unsafe { info.si_pid() } == std::process::id().cast_signed()
}

extern "C" fn aborted(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: `info` is the description of the signal, which the kernel keeps during this call.
    let is_ucx = WITHIN.get() && is_own(unsafe { &*info });
    match ACTION.get() {
        Some(action) if is_ucx => announce(action),
        // SAFETY: the arguments are those that the kernel has passed to this handler.
        Some(action) if unsafe { call(&action.previous, signal, info, context) } => return,
        _ => {}
    }

    // Neither call can fail: the signal has a number of the kernel's.
    // SAFETY: the arguments are numbers, and a handler may call this function.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: the argument is a number, and a handler may call this function. The signal is blocked
    // while its handler runs, and ends the process when this function returns.
    unsafe { libc::raise(signal) };
}

/// Waits, and prints the message.
fn announce(AbortAction { wait, message, .. }: &AbortAction) {
    let mut time = *wait;
    let left = &raw mut time;
    // A signal that is handled ends a sleep early, and the call stores the time that is left.
    // SAFETY: both arguments point to a local, and may be the same.
    while unsafe { libc::nanosleep(left, left) } != 0 {}

    // If stderr is closed, nothing is printed.
    // SAFETY: the pointer and the length are those of a text that lives as long as the process.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
}

/// Calls the handler of an action. Returns false if it has none.
///
/// # Safety
/// The arguments are those that the kernel passes to a handler.
unsafe fn call(
    action: &libc::sigaction,
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) -> bool {
    type WithInfo = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    type Plain = extern "C" fn(c_int);

    let handler = action.sa_sigaction;
    if [libc::SIG_DFL, libc::SIG_IGN].contains(&handler) {
        return false;
    }
    if action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the flag says that `handler` is a function of three arguments.
        let handler = unsafe { transmute::<usize, WithInfo>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: without the flag, `handler` is a function of one argument.
        let handler = unsafe { transmute::<usize, Plain>(handler) };
        handler(signal);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, abort};

    const HOW: &str = "RUSHMEM_TEST_ABORTS";

    extern "C" fn report_of_a_crash(signal: c_int) {
        eprintln!("the handler of before");
        // SAFETY: the arguments are numbers.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }

    /// Ends the process of the test below.
    fn end(how: &str) -> ! {
        if how.contains("_with_a_handler") {
            let handler: extern "C" fn(c_int) = report_of_a_crash;
            // SAFETY: a handler of one argument.
            unsafe { libc::signal(libc::SIGABRT, handler as usize) };
        }
        guard(Pe(3), Duration::from_millis(1));
        match how {
            "within" | "within_with_a_handler" => within(|| abort()),
            "from_outside" => within(|| send(std::process::id())),
            _ => abort(),
        }
    }

    /// Makes another process send the signal to this one.
    fn send(pid: u32) -> ! {
        let status = Command::new("kill")
            .args(["-s", "ABRT", &pid.to_string()])
            .status();
        panic!("the signal has not ended the process: {status:?}")
    }

    #[test]
    fn an_abort_within_ucx_waits_and_names_the_pe() {
        if let Ok(how) = std::env::var(HOW) {
            end(&how);
        }
        let this = std::env::current_exe().expect("a test program knows its path");
        for (how, says_so) in [
            ("within", true),
            ("within_with_a_handler", true),
            ("elsewhere", false),
            ("elsewhere_with_a_handler", false),
            ("from_outside", false),
        ] {
            let test = "abort::tests::an_abort_within_ucx_waits_and_names_the_pe";
            let mut command = Command::new(&this);
            command.args([test, "--exact", "--nocapture"]).env(HOW, how);
            let output = command.output().expect("it runs");

            assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                stderr.contains("PE 3: UCX ended this process"),
                says_so,
                "{stderr}"
            );
            assert_eq!(
                stderr.contains("the handler of before"),
                how == "elsewhere_with_a_handler",
                "{how}: {stderr}"
            );
        }
    }
}
