//! The state of this process: its number as a PE, whether it is a child of the PE, the number of
//! inits, and the output that it has buffered.
//!
//! Messages and the end of the job need this state before the process has joined its job and after
//! it has left it. So this module does not depend on the job.
#![allow(unsafe_code)]

pub mod time;

use rushmem_bootstrap::Aborter;
use rushmem_transport::Pe;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

/// Maximum time for writing buffered output. A reader that has stopped, or a stream whose lock the
/// failing thread has, would keep the job from its end.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The function that writes the output which a language other than C has buffered.
static FLUSH_MORE: OnceLock<fn()> = OnceLock::new();

/// This process as a PE.
struct Identity {
    pe: Pe,
    /// The handle that ends the job.
    aborter: Aborter,
    process_id: u32,
}

/// Set before the process has joined its job completely.
static IDENTITY: OnceLock<Identity> = OnceLock::new();
/// The number of inits that no finalize has matched; 0 in a child process. An init counts itself
/// with release order once it has stored what calls need, and a call that reads the number does so
/// with acquire order: the stores of init to the address map and to other flags are relaxed. The
/// fast paths read only the map, and rely on the order in which the program calls init and them.
static INITS: AtomicU32 = AtomicU32::new(0);
/// True in a child of the PE, if its creation has run the handlers of `fork`. Relaxed: the only
/// thread of the child stores it before it starts others.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// True while a thread initializes the library. Relaxed: only the text of a message depends on it.
static IS_STARTING: AtomicBool = AtomicBool::new(false);

/// True once all PEs have reached their exit without finalize. Relaxed: it publishes nothing, and
/// threads that still run may call a moment before it or after.
static JOB_HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Records that all PEs are at their exit.
pub fn set_job_ended() {
    JOB_HAS_ENDED.store(true, Ordering::Relaxed);
}

/// Returns true if all PEs are at their exit. Threads that the program has not joined may still
/// call the library.
#[inline]
pub fn job_has_ended() -> bool {
    JOB_HAS_ENDED.load(Ordering::Relaxed)
}

/// Records that this process is a child of the PE, in which the library is not initialized.
pub fn become_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    // Relaxed, as above: the child has one thread.
    INITS.store(0, Ordering::Relaxed);
}

/// Returns true in a child of the PE that was forked after the first init. A child whose creation
/// has not run the handlers of `fork` is not recognized; see [`is_this_process`].
#[inline]
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Records that a thread begins to initialize the library.
pub fn begin_start() {
    IS_STARTING.store(true, Ordering::Relaxed);
}

/// Records that the thread has initialized the library.
pub fn end_start() {
    IS_STARTING.store(false, Ordering::Relaxed);
}

/// Returns true if a thread initializes the library.
pub(crate) fn is_starting() -> bool {
    IS_STARTING.load(Ordering::Relaxed)
}

/// Returns the number of inits that no finalize has matched.
#[inline]
pub fn inits() -> u32 {
    INITS.load(Ordering::Acquire)
}

/// Counts an init.
pub fn increment_inits() {
    INITS.fetch_add(1, Ordering::Release);
}

/// Counts a finalize, which matches an init.
pub fn decrement_inits() {
    // Release: a thread that learns by `shmem_query_initialized` that finalize is over sees what it
    // has completed.
    INITS.fetch_sub(1, Ordering::Release);
}

/// Marks this process as the PE `me`, and sets the handle that ends the job.
pub fn set_identity(me: Pe, aborter: Aborter) {
    rushmem_system::log::identify(me.0);
    mark_process();

    let identity = Identity {
        pe: me,
        aborter,
        process_id: std::process::id(),
    };
    // This cannot fail: only the first init joins the job.
    let _ = IDENTITY.set(identity);
}

/// Returns true if this process is the PE: its identity is set, and it is not a child of the
/// process in which that was done. For children of `vfork` see `is_marked`.
#[inline]
pub fn is_this_process() -> bool {
    // The mark is a load. The system call is made in a child, and where the kernel does not support
    // the mark.
    is_marked()
        || IDENTITY
            .get()
            .is_some_and(|identity| identity.process_id == std::process::id())
}

/// Returns the handle that ends the job. `None` before this PE has joined, and in a child process,
/// whose errors end only the child.
pub fn aborter() -> Option<&'static Aborter> {
    if is_child() {
        return None;
    }
    IDENTITY.get().map(|identity| &identity.aborter)
}

/// Returns the number of this PE, if it is known.
pub fn pe() -> Option<Pe> {
    IDENTITY.get().map(|identity| identity.pe)
}

/// Returns the prefix of messages that names this PE; empty if it is not known.
pub fn pe_for_messages() -> String {
    match pe() {
        Some(me) if is_child() => format!("PE {me}'s child process {}: ", std::process::id()),
        Some(me) => format!("PE {me}: "),
        None => String::new(),
    }
}

/// Registers `flush`, which writes the output that another language has buffered. It is called in a
/// thread of its own before the library ends the process because of an error or a global exit.
pub fn also_flush(flush: fn()) {
    // An error says that a function is registered: each initialization of the library registers the
    // same one.
    let _ = FLUSH_MORE.set(flush);
}

/// Makes the C library buffer standard output by line. Under a launcher it is a pipe, and the
/// output in a larger buffer would be lost if another PE ends the job.
pub fn buffer_by_line() {
    unsafe extern "C" {
        #[link_name = "stdout"]
        static mut STDOUT: *mut libc::FILE;
    }
    // SAFETY: the C library sets this variable before `main` runs and never changes it.
    let stream = unsafe { STDOUT };
    // If this fails, output is written later.
    // SAFETY: `stream` is open, the call locks it, and with null the C library allocates the
    // buffer.
    unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

/// Writes the output that the program has buffered, before the library ends the process because of
/// an error or a global exit.
///
/// A stream is locked while a thread reads from it, perhaps forever, and the caller itself may have
/// locked one. Therefore another thread writes, and the caller waits for it at most for
/// `FLUSH_LIMIT`. In a child of the PE nothing is written: its buffers are copies of those of the
/// PE.
pub fn flush_output() {
    if is_child() {
        return;
    }

    let (done, flushed) = std::sync::mpsc::channel();
    let flusher = std::thread::Builder::new().spawn(move || {
        if let Some(flush) = FLUSH_MORE.get() {
            flush();
        }
        // What cannot be written is lost, as at any exit.
        // SAFETY: null denotes all streams of the C library.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // This fails after the limit, when the receiver does not exist any more.
        let _ = done.send(());
    });

    // If no thread can be started, the output is lost. So is what is not written by the limit, when
    // the receive fails.
    if flusher.is_ok() {
        let _ = flushed.recv_timeout(FLUSH_LIMIT);
    }
}

/// The size of the mapping that begins with [`WORD`]. The kernel rounds it up to whole pages.
const MARK_BYTES: usize = 4096;

/// A word that is 1 in the PE and that the kernel sets to 0 in a child process, even in one that
/// the bare system call `fork` has created. So a load instead of a system call distinguishes the
/// two. Null if the kernel does not support pages that it clears in children (before Linux 4.14).
static WORD: AtomicPtr<u32> = AtomicPtr::new(null_mut());

/// Marks the calling process as the PE.
fn mark_process() {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the call creates a mapping at an address that the kernel chooses.
    let page = unsafe { mmap_anonymous(null_mut(), MARK_BYTES, protection, MapFlags::PRIVATE) };
    // Without the mark, `is_this_process` asks the kernel.
    let Ok(page) = page else { return };

    // SAFETY: the page is the new mapping, which nothing else uses.
    let is_cleared_in_child = unsafe { madvise(page, MARK_BYTES, Advice::LinuxWipeOnFork) }.is_ok();
    if !is_cleared_in_child {
        return;
    }

    // SAFETY: the start of the new page is a word, aligned and valid for reads and writes as long
    // as the process lives. All accesses to it are atomic.
    unsafe { AtomicU32::from_ptr(page.cast()) }.store(1, Ordering::Relaxed);
    // Relaxed: a thread that sees the word, but not yet its value, takes the process for an
    // unmarked one and asks the kernel.
    WORD.store(page.cast(), Ordering::Relaxed);
}

/// Returns true if the calling process is certainly the PE. A child of `vfork`, which shares the
/// memory of its parent, counts as the PE.
#[inline(always)]
pub(crate) fn is_marked() -> bool {
    let word = WORD.load(Ordering::Relaxed);
    // SAFETY: if not null, `word` is the start of the page of `mark_process`, which stays mapped as
    // long as the process lives, and to which all accesses are atomic.
    !word.is_null() && unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Relaxed) == 1
}
