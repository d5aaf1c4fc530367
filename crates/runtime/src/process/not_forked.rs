//! A word that the kernel sets to 0 in a child process, also in one that the bare system call
//! `fork` makes: to find out which process this is takes a load instead of a system call.
#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

const PAGE: usize = 4096;

/// Null if the kernel does not wipe pages on fork (before Linux 4.14).
static WORD: AtomicPtr<u32> = AtomicPtr::new(null_mut());

/// Marks the calling process.
pub(super) fn mark() {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { mmap_anonymous(null_mut(), PAGE, protection, MapFlags::PRIVATE) };
    let Ok(page) = page else { return };
    // SAFETY: the new mapping, which nobody else knows.
    if unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork) }.is_ok() {
        // SAFETY: as above.
        unsafe { page.cast::<u32>().write(1) };
        WORD.store(page.cast(), Relaxed);
    }
}

/// Returns whether the calling process is certainly the one that was marked. A child of `vfork`,
/// which has the memory of its parent, counts as that one.
#[inline]
pub(super) fn is_marked() -> bool {
    let word = WORD.load(Relaxed);
    // SAFETY: null, or a mapping that lives as long as the process and is accessed atomically.
    !word.is_null() && unsafe { AtomicU32::from_ptr(word) }.load(Relaxed) == 1
}
