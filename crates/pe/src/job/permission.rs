//! Checks with `SHMEM_CHECK` who may call the library: a call by a child process or by a signal
//! handler is an error, and one by a thread that the thread level does not allow gets a warning.

use crate::call::location;
use crate::call::stack;
use crate::call::thread;
use crate::call::warning::warning;
use crate::call::{Call, fail};
use crate::constants::SHMEM_THREAD_FUNNELED;
use crate::job::{self, Job};
use crate::process;
use rushmem_system::lock::lock;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Warns of a use that OpenSHMEM leaves undefined but that works here, once for each function and
/// reason.
pub fn warn_once(call: Call, why: &'static str) {
    static WARNED: Mutex<BTreeSet<(&str, &str)>> = Mutex::new(BTreeSet::new());
    if lock(&WARNED).insert((call.name(), why)) {
        warning!(each: "{call}: {why}{}", location::clause(format_args!("{why}")));
    }
}

/// The number of initializations of the library so far. Relaxed: a thread that has initialized the
/// library reads at least its own number.
static INITIALIZERS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The number of the last initialization that this thread has made; 0 if it has made none.
    static INITIALIZER: Cell<u32> = const { Cell::new(0) };
}

/// Records that the calling thread has initialized the library.
pub fn record_initializer() {
    INITIALIZER.set(INITIALIZERS.fetch_add(1, Relaxed) + 1);
}

/// With `SHMEM_CHECK`: ends the process with an error if it is a forked child, even one created
/// without the handlers of `fork`, or if a signal handler makes the call. Warns if the thread level
/// does not allow this thread to make the call.
#[inline]
pub fn check(call: Call, job: &Job) {
    if job.settings.checks() {
        check_access(call);
        stack::refuse_signal_handler(call, job.me);
    }
}

/// Makes the checks of [`check`] for an access, except that for signal handlers, which takes a
/// system call. Only called with `SHMEM_CHECK`.
#[inline(always)]
pub fn check_access(call: Call) {
    thread::add(&CALLS, 1, thread::is_alone());

    let is_certainly_valid = process::is_marked() && is_main();
    if !is_certainly_valid {
        check_process_and_thread(call, job::require(call));
    }
}

#[cold]
#[inline(never)]
fn check_process_and_thread(call: Call, job: &Job) {
    if !process::is_this_process() {
        job::refuse_child(call);
    }

    let is_of_program = thread::request_call().is_none();
    if is_of_program && job.thread_level <= SHMEM_THREAD_FUNNELED && !is_main() {
        warn_once(
            call,
            "called by another thread than the one that initialized the library, but the thread level is below \
             SHMEM_THREAD_SERIALIZED: this works here as long as no two threads are in the library at once; ask \
             shmem_init_thread for SHMEM_THREAD_SERIALIZED or SHMEM_THREAD_MULTIPLE",
        );
    }
}

/// The number of checked calls. A call with several arguments may count more than once. Relaxed:
/// the watchdog compares two values a second apart.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Returns a number that grows with each checked call of this PE.
pub fn calls() -> u64 {
    CALLS.load(Relaxed)
}

/// With `SHMEM_CHECK`, ends the job with an error if another thread finalizes the library than the
/// one that has initialized it.
pub fn check_finalizer(call: Call, job: &Job) {
    if job.settings.checks() && !is_main() {
        fail!(
            call,
            "called by another thread than the one that initialized the library, which must finalize it"
        );
    }
}

/// Returns true if the calling thread has made the last initialization. Also returns true if the
/// program numbers its threads, since they may move between threads of the system.
#[inline(always)]
fn is_main() -> bool {
    INITIALIZER.get() == INITIALIZERS.load(Relaxed) || thread::are_numbered()
}
