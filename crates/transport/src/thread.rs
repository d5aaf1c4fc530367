//! Threads of the library, and locks. The threads block all signals, because signals belong to the
//! program.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};

/// Calls `act` with all signals blocked in this thread. Threads that it starts inherit this.
pub fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it writes a set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut old = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first set was written above, the second has room for one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) };
    let done = act();
    // SAFETY: the set was written by the call that blocked all.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), null_mut()) };
    done
}

/// Returns the message that the kernel refused a thread, with the remedy.
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

/// Returns true if this is a service thread, which works beside the program: whenever it waits,
/// threads that compute need the CPU.
pub fn is_service() -> bool {
    IS_SERVICE.get()
}

/// Starts a service thread: it takes no signals, and its sleeps end without the usual timer slack.
///
/// # Errors
/// When there can be no thread.
pub fn spawn_service(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let builder = Builder::new().name(name.to_owned());
    without_signals(|| {
        builder.spawn(move || {
            // SAFETY: takes numbers; where it fails sleeps end 50 us later.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
            IS_SERVICE.set(true);
            body();
        })
    })
}

/// Waits for the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the lock, if it is free.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
