//! Threads of the library, which take no signals but those of faults, and the memory of a thread:
//! its stack and its control block.
#![allow(unsafe_code)]

use crate::signals::without_signals;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::resume_unwind;
use std::ptr::null_mut;
use std::thread::{Builder, JoinHandle, scope};

/// Calls `act`, which may take long, in another thread without signals, and waits for it. Threads
/// that `act` starts block all signals but those of faults, and this one takes signals meanwhile,
/// so that SIGTERM ends a process in which a library of C does not return.
///
/// # Errors
/// When the kernel refuses a thread.
pub fn apart<T: Send>(act: impl FnOnce() -> T + Send) -> io::Result<T> {
    scope(|scope| {
        let builder = Builder::new().name("rushmem-apart".to_owned());
        let thread = without_signals(|| builder.spawn_scoped(scope, act))?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Returns the message that the kernel refused to start a thread, with the remedy.
pub fn refused(error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM) => {
            "a sandbox or container does: permit clone3 in its filter of system calls, or update its runtime"
        }
        _ => "raise `ulimit -u` or pids.max of the control group, or start fewer PEs on this host",
    };
    format!("the kernel refused a thread: {error}; {remedy}")
}

thread_local! {
    static IS_SERVICE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if the calling thread is a service thread. While a service thread waits, threads of
/// the program need the CPU.
pub fn is_service() -> bool {
    IS_SERVICE.get()
}

/// Starts a service thread. It blocks all signals but those of faults, and its sleeps end without
/// the usual timer slack of 50 us.
///
/// # Errors
/// When the kernel refuses a thread.
pub fn spawn_service(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let builder = Builder::new().name(name.to_owned());
    without_signals(|| {
        builder.spawn(move || {
            // Where this fails, sleeps end 50 us later.
            // SAFETY: the call takes numbers.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
            IS_SERVICE.set(true);
            body();
        })
    })
}

/// Returns the addresses of the calling thread's stack; no bytes if it cannot be found.
pub fn own_stack() -> Range<usize> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let own = attributes.as_mut_ptr();
    // SAFETY: it has no preconditions.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread exists; the call writes the attributes to the variable above.
    if unsafe { libc::pthread_getattr_np(thread, own) } != 0 {
        return 0..0;
    }

    let mut start = null_mut();
    let mut nbytes = 0;
    // This cannot fail: the C library has filled in the attributes.
    // SAFETY: the attributes were initialized above; the call writes to two variables.
    unsafe { libc::pthread_attr_getstack(own, &raw mut start, &raw mut nbytes) };
    // SAFETY: the same attributes, which are not used any more.
    unsafe { libc::pthread_attr_destroy(own) };
    start.addr()..start.addr() + nbytes
}

/// Upper limit of the size in bytes of a control block from the list of robust mutexes on, and on
/// AArch64 of the thread-local variables behind the block.
const REST_OF_CONTROL_BLOCK: usize = 4096;

/// Returns the addresses of the first thread's control block, from the list of robust mutexes on,
/// which the kernel knows. No bytes where it knows none, as with musl, which has no area as below.
///
/// While the thread runs, the kernel writes to the area of restartable sequences (rseq) of glibc.
/// This is behind the list, or from glibc 2.41 on among thread-local variables: on x86-64 before
/// the block. Memory that is allocated behind the block shares a page with it if it shares one with
/// the area.
pub fn first_control_block() -> Range<usize> {
    let mut robust_list = 0usize;
    let mut nbytes = 0usize;
    // SAFETY: the call writes to two variables of the sizes of a pointer and of a size.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_get_robust_list,
            libc::c_long::from(std::process::id()),
            &raw mut robust_list,
            &raw mut nbytes,
        )
    };
    if failed != 0 || robust_list == 0 {
        return 0..0;
    }
    robust_list..robust_list + REST_OF_CONTROL_BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_to_string;
    use std::time::{Duration, Instant};

    /// Returns the signals that a thread of this process blocks, as a mask.
    fn blocked(thread: libc::pid_t) -> u64 {
        let status = read_to_string(format!("/proc/self/task/{thread}/status")).expect("a thread");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(mask.expect("a line of the kernel").trim(), 16).expect("a mask")
    }

    fn own() -> libc::pid_t {
        // SAFETY: it takes nothing.
        unsafe { libc::gettid() }
    }

    fn is_blocked(thread: libc::pid_t, signal: libc::c_int) -> bool {
        blocked(thread) >> (signal - 1) & 1 == 1
    }

    #[test]
    fn the_own_stack_has_the_variables_of_the_thread() {
        let of_another = std::thread::spawn(own_stack).join().expect("no panic");
        let variable = (&raw const of_another).addr();
        assert!(own_stack().contains(&variable));
        assert!(!of_another.is_empty() && !of_another.contains(&variable));
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn the_control_block_of_the_first_thread_is_known_to_others() {
        // This is another thread than the first one, except with one thread for all tests.
        let of_another = std::thread::spawn(first_control_block)
            .join()
            .expect("no panic");
        assert_eq!(of_another, first_control_block());
        assert!(!of_another.is_empty());
        let text = crate::maps::text();
        let mut mappings = crate::maps::parse(&text);
        assert!(mappings.any(|mapping| mapping.addresses.contains(&of_another.start)));
    }

    #[test]
    fn what_is_called_apart_takes_no_signals_and_its_caller_does() {
        let caller = own();
        let end = Instant::now() + Duration::from_secs(20);
        apart(|| {
            assert!(is_blocked(own(), libc::SIGTERM));
            assert!(!is_blocked(own(), libc::SIGSEGV));
            // The caller goes on from the start of this thread meanwhile.
            while is_blocked(caller, libc::SIGTERM) {
                assert!(Instant::now() < end, "the caller blocks SIGTERM");
            }
        })
        .expect("a thread");
    }
}
