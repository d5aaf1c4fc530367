//! Finds the call that the program repeats on one word instead of a call that waits, such as
//! `shmem_test` or a get in a loop. An access to memory of the node leaves no trace, so such a PE
//! would seem to compute.
//!
//! A reader of the statuses sends SIGURG to a PE that uses CPU time, as Go's runtime does to its
//! threads: the signal has no effect by default, and programs that handle it expect it at any time.
//! From then on, `status::polled_calls` counts the accesses by which a program may poll, until one
//! was repeated often, which it publishes.
#![allow(unsafe_code)]

use core::ffi::c_int;
use rushmem_communication::links::Links;
use rushmem_communication::status;
use rushmem_communication::status::polled_calls;
use rushmem_pe::memory::address;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Installs the handler of the signal, unless the program handles it.
pub(crate) fn install_handler(links: &Links) {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the present one.
    let is_known =
        unsafe { libc::sigaction(libc::SIGURG, std::ptr::null(), now.as_mut_ptr()) } == 0;
    // SAFETY: where `is_known`, the call has written `now`; its zeros are a valid value, too.
    let mut action = unsafe { now.assume_init() };
    if !is_known || action.sa_sigaction != libc::SIG_DFL {
        return;
    }

    // Before the handler is installed, which must not make the table that it switches to.
    address::prepare_to_count_polls();
    action.sa_sigaction = start_counting as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler has the type that the flags require, and only stores to atomic variables.
    if unsafe { libc::sigaction(libc::SIGURG, &raw const action, null_mut()) } == 0 {
        status::set_finds_polls(links);
    }
}

extern "C" fn start_counting(_: c_int) {
    polled_calls::start_counting();
}
