//! This process: which PE it is, whether it is a child of the PE, and how often the library was initialised.
//!
//! Messages and the end of a job need this before the job is known, and in processes that have left it. It must
//! know nothing else of the job.

use rushmem_bootstrap::Aborter;
use rushmem_transport::Pe;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Who this PE is, how it ends the job, and its process: known before the job is.
static IDENTITY: OnceLock<(Pe, Aborter, u32)> = OnceLock::new();
/// How many inits have no finalize yet; none in a child process.
static DEPTH: AtomicU32 = AtomicU32::new(0);
/// This process is a child of the one that is the PE.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// This process is a child of the PE from now on, in which the library is not initialised.
pub(crate) fn become_child() {
    IS_CHILD.store(true, Ordering::Release);
    DEPTH.store(0, Ordering::Release);
}

/// Whether this process is a child of the PE that `fork` made after its first init.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Acquire)
}

/// How many inits have no finalize yet.
pub(crate) fn depth() -> u32 {
    DEPTH.load(Ordering::Acquire)
}

/// Count an init.
pub(crate) fn deepen() {
    DEPTH.fetch_add(1, Ordering::AcqRel);
}

/// Count a finalize.
pub(crate) fn rise() {
    DEPTH.fetch_sub(1, Ordering::AcqRel);
}

/// Who this PE is and how to end the job, known before the job is.
pub(crate) fn set_identity(me: Pe, aborter: Aborter) {
    // A second init of the process has the same one.
    let _ = IDENTITY.set((me, aborter, std::process::id()));
}

/// Whether this process is the PE, not a child of it, whose exit is nobody's business.
pub(crate) fn is_this_process() -> bool {
    IDENTITY.get().is_some_and(|&(_, _, process)| process == std::process::id())
}

/// Whom to tell that the job ends; nobody before the session is open, nor in a child process, whose errors
/// end itself alone.
pub(crate) fn aborter() -> Option<&'static Aborter> {
    IDENTITY.get().filter(|_| !is_child()).map(|(_, aborter, _)| aborter)
}

/// This PE for messages, as far as it is known.
pub(crate) fn pe_for_messages() -> String {
    match IDENTITY.get() {
        Some((me, ..)) if is_child() => format!("PE {me}'s child process {}: ", std::process::id()),
        Some((me, ..)) => format!("PE {me}: "),
        None => String::new(),
    }
}

/// Lock what no panic can leave half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
