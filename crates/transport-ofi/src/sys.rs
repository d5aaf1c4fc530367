//! The system calls that safe crates do not have.

use std::io;
use std::mem::MaybeUninit;
use std::thread::JoinHandle;

/// Start a thread to which no signal is delivered and whose sleeps end on time.
pub(crate) fn spawn_quietly(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it writes a set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut old = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first set was written above, the second has room for one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) };
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        // SAFETY: takes numbers; where it fails sleeps end 50 us later.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        body();
    });
    // SAFETY: the set was written by the call that blocked all.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), std::ptr::null_mut()) };
    thread
}
