//! Signals of the calling thread, blocked for a while.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

pub(super) fn block_signals() -> libc::sigset_t {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: a set to be filled.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: a set that was filled, and one to be filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: filled by the call, which cannot fail with these arguments.
    unsafe { before.assume_init() }
}

pub(super) fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: a valid set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}
