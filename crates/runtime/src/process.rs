//! This process: which PE it is, whether it is a child of the PE, and the number of inits.
//!
//! Messages and the end of a job need this before the job is known, and in processes that have left
//! it. It must know nothing else of the job.
#![allow(unsafe_code)]

pub mod stdio;
pub mod time;

use rushmem_bootstrap::Aborter;
use rushmem_transport::Pe;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The number of this PE, how it ends the job, and its process; set before the job is known.
static IDENTITY: OnceLock<(Pe, Aborter, u32)> = OnceLock::new();
/// The number of inits without a finalize yet; 0 in a child process.
static INITS: AtomicU32 = AtomicU32::new(0);
/// This process is a child of the one that is the PE.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// A thread initializes the library.
static STARTS: AtomicBool = AtomicBool::new(false);

/// All PEs of the job have come to their exit without finalize.
static JOB_HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Records that this PE and all others are at their exit.
pub(crate) fn end_job() {
    JOB_HAS_ENDED.store(true, Ordering::Release);
}

/// Returns true if this PE and all others are at their exit. Threads that the program did not join
/// may still call the library.
pub(crate) fn job_has_ended() -> bool {
    JOB_HAS_ENDED.load(Ordering::Acquire)
}

/// Records that this process is a child of the PE, in which the library is not initialized.
pub(crate) fn become_child() {
    IS_CHILD.store(true, Ordering::Release);
    INITS.store(0, Ordering::Release);
}

/// Returns true if this process is a child of the PE that `fork` made after its first init.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Acquire)
}

/// Records that a thread begins to initialize the library, or has done so.
pub(crate) fn set_starts(starts: bool) {
    STARTS.store(starts, Ordering::Relaxed);
}

/// Returns true if a thread initializes the library.
pub(crate) fn starts() -> bool {
    STARTS.load(Ordering::Relaxed)
}

/// Returns the number of inits without a finalize yet.
pub(crate) fn inits() -> u32 {
    INITS.load(Ordering::Acquire)
}

/// Counts an init.
pub(crate) fn increment_inits() {
    INITS.fetch_add(1, Ordering::AcqRel);
}

/// Counts a finalize.
pub(crate) fn decrement_inits() {
    INITS.fetch_sub(1, Ordering::AcqRel);
}

/// Sets the number of this PE and how it ends the job.
pub(crate) fn set_identity(me: Pe, aborter: Aborter) {
    rushmem_log::identify(me.0);
    mark_process();
    // A second init of the process has the same one.
    let _ = IDENTITY.set((me, aborter, std::process::id()));
}

/// Returns true if this process is the PE, and not a child of it, whose exit does not matter.
#[inline]
pub(crate) fn is_this_process() -> bool {
    is_marked() || IDENTITY.get().is_some_and(|&(_, _, process)| process == std::process::id())
}

/// Returns the handle that ends the job; none before the session is open, and none in a child
/// process, whose errors end only the child.
pub(crate) fn aborter() -> Option<&'static Aborter> {
    IDENTITY.get().filter(|_| !is_child()).map(|(_, aborter, _)| aborter)
}

/// Returns the number of this PE, if it is known.
pub(crate) fn pe() -> Option<Pe> {
    IDENTITY.get().map(|(me, ..)| *me)
}

/// Returns the name of this PE for messages, if it is known.
pub(crate) fn pe_for_messages() -> String {
    match IDENTITY.get() {
        Some((me, ..)) if is_child() => format!("PE {me}'s child process {}: ", std::process::id()),
        Some((me, ..)) => format!("PE {me}: "),
        None => String::new(),
    }
}

/// Locks data that no panic can leave inconsistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

const PAGE: usize = 4096;

/// A word that the kernel sets to 0 in a child process, also in one that the bare system call
/// `fork` makes: to find out which process this is takes a load instead of a system call.
/// Null if the kernel does not wipe pages on fork (before Linux 4.14).
static WORD: AtomicPtr<u32> = AtomicPtr::new(null_mut());

/// Marks the calling process.
fn mark_process() {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { mmap_anonymous(null_mut(), PAGE, protection, MapFlags::PRIVATE) };
    let Ok(page) = page else { return };
    // SAFETY: the new mapping, which nobody else knows.
    if unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork) }.is_ok() {
        // SAFETY: as above.
        unsafe { page.cast::<u32>().write(1) };
        WORD.store(page.cast(), Ordering::Relaxed);
    }
}

/// Returns whether the calling process is certainly the one that was marked. A child of `vfork`,
/// which has the memory of its parent, counts as that one.
#[inline(always)]
pub(crate) fn is_marked() -> bool {
    let word = WORD.load(Ordering::Relaxed);
    // SAFETY: null, or a mapping that lives as long as the process and is accessed atomically.
    !word.is_null() && unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Relaxed) == 1
}
