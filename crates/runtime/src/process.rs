//! This process: which PE it is, whether it is a child of the PE, and the number of inits.
//!
//! Messages and the end of the job need this before the job is known, and in processes that have
//! left the job. So nothing else of the job is known here.
#![allow(unsafe_code)]

pub mod stdio;
pub mod time;

use rushmem_bootstrap::Aborter;
use rushmem_transport::Pe;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The number of this PE, the handle that ends the job, and the process; set before the job is
/// known.
static IDENTITY: OnceLock<(Pe, Aborter, u32)> = OnceLock::new();
/// The number of inits that no finalize has matched; 0 in a child process.
static INITS: AtomicU32 = AtomicU32::new(0);
/// True if this process is a child of the PE.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// True while a thread initializes the library.
static STARTS: AtomicBool = AtomicBool::new(false);

/// True once all PEs have reached their exit without finalize.
static JOB_HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Records that all PEs are at their exit.
pub(crate) fn end_job() {
    JOB_HAS_ENDED.store(true, Ordering::Release);
}

/// Returns true if all PEs are at their exit. Threads that the program has not joined may still
/// call the library.
pub(crate) fn job_has_ended() -> bool {
    JOB_HAS_ENDED.load(Ordering::Acquire)
}

/// Records that this process is a child of the PE, in which the library is not initialized.
pub(crate) fn become_child() {
    IS_CHILD.store(true, Ordering::Release);
    INITS.store(0, Ordering::Release);
}

/// Returns true if this process is a child of the PE, forked after the first init.
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

/// Returns the number of inits that no finalize has matched.
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
    // A later init of the process sets the same values.
    let _ = IDENTITY.set((me, aborter, std::process::id()));
}

/// Returns true if this process is the PE, and not a child of it.
#[inline]
pub(crate) fn is_this_process() -> bool {
    is_marked() || IDENTITY.get().is_some_and(|&(_, _, process)| process == std::process::id())
}

/// Returns the handle that ends the job. `None` before the session is open, and in a child process,
/// whose errors end only the child.
pub(crate) fn aborter() -> Option<&'static Aborter> {
    IDENTITY.get().filter(|_| !is_child()).map(|(_, aborter, _)| aborter)
}

/// Returns the number of this PE, if it is known.
pub(crate) fn pe() -> Option<Pe> {
    IDENTITY.get().map(|(me, ..)| *me)
}

/// Returns the prefix of messages that names this PE; empty if it is not known.
pub(crate) fn pe_for_messages() -> String {
    match IDENTITY.get() {
        Some((me, ..)) if is_child() => format!("PE {me}'s child process {}: ", std::process::id()),
        Some((me, ..)) => format!("PE {me}: "),
        None => String::new(),
    }
}

/// Locks a mutex, poisoned or not: no panic can leave its data inconsistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

const PAGE: usize = 4096;

/// A word that is 1 in the PE and that the kernel sets to 0 in a child process, also in one that
/// the bare system call `fork` makes. So a load instead of a system call tells which process this
/// is. Null if the kernel does not wipe pages on fork (before Linux 4.14).
static WORD: AtomicPtr<u32> = AtomicPtr::new(null_mut());

/// Marks the calling process as the PE.
fn mark_process() {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: creates a mapping at an address that the kernel chooses.
    let page = unsafe { mmap_anonymous(null_mut(), PAGE, protection, MapFlags::PRIVATE) };
    let Ok(page) = page else { return };
    // SAFETY: the page is the new mapping, which nothing else uses.
    if unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork) }.is_ok() {
        // SAFETY: as above.
        unsafe { page.cast::<u32>().write(1) };
        WORD.store(page.cast(), Ordering::Relaxed);
    }
}

/// Returns true if the calling process is certainly the PE. A child of `vfork`, which shares the
/// memory of its parent, counts as the PE.
#[inline(always)]
pub(crate) fn is_marked() -> bool {
    let word = WORD.load(Ordering::Relaxed);
    // SAFETY: if not null, the word is in a mapping that lives as long as the process and is
    // accessed atomically.
    !word.is_null() && unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Relaxed) == 1
}
