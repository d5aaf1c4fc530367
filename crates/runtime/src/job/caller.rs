//! Checks of the caller with `SHMEM_CHECK`: that it is not a child process, a signal handler, or a
//! thread that the thread level does not allow.

use crate::call::location;
use crate::call::signal_handler::{self, StackPlace};
use crate::call::thread;
use crate::call::warning::warning;
use crate::call::{Call, fail};
use crate::constants::SHMEM_THREAD_FUNNELED;
use crate::job::{self, Job};
use crate::process;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Warns of something that OpenSHMEM leaves undefined but that works here, once for each function.
pub(crate) fn warn_once(call: Call, why: &'static str) {
    static WARNED: Mutex<BTreeSet<(&str, &str)>> = Mutex::new(BTreeSet::new());
    if process::lock(&WARNED).insert((call.name(), why)) {
        warning!(each: "{call}: {why}{}", location::clause(format_args!("{why}")));
    }
}

/// The number of initializations so far.
static INITIALIZERS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The number of the last initialization that this thread has made; 0 if it has made none.
    static INITIALIZER: Cell<u32> = const { Cell::new(0) };
}

/// Records that the calling thread has initialized the library.
pub(crate) fn initialized_here() {
    INITIALIZER.set(INITIALIZERS.fetch_add(1, Relaxed) + 1);
}

/// Ends the job with an error if the caller is a forked child, even one created without the
/// handlers of `fork`, or a signal handler. Warns if the thread level does not allow this call.
#[inline]
pub(crate) fn check(call: Call, job: &Job) {
    check_at(call, job, place());
}

/// Works as [`check`], for a caller whose place on the stack is known.
#[inline]
pub(crate) fn check_at(call: Call, job: &Job, place: StackPlace) {
    if !job.settings.checks() {
        return;
    }
    if !process::is_this_process() {
        job::refuse_child(call);
    }
    count();
    if !place.is_known() && check_thread(call, job) {
        place.remember();
    }
}

/// Returns the place of the calling function on the stack.
#[inline(always)]
pub(crate) fn place() -> StackPlace {
    let local = 0u8;
    StackPlace::of(&local, INITIALIZERS.load(Relaxed))
}

/// Counts a call if a caller at this place was found correct before; otherwise returns false.
#[inline(always)]
pub(crate) fn is_known(place: StackPlace) -> bool {
    let is_known = process::is_marked() && place.is_known();
    if is_known {
        count();
    }
    is_known
}

#[inline(always)]
fn count() {
    thread::add(&CALLS, 1, thread::is_alone());
}

/// Ends the job with an error if the caller is a signal handler. Returns true if the thread level
/// allows the calling thread to call, and warns if it does not.
#[cold]
#[inline(never)]
fn check_thread(call: Call, job: &Job) -> bool {
    if signal_handler::calls() {
        signal_handler::ends_in_time(call, job.me());
        fail!(
            call,
            "called by a signal handler, which may have interrupted another call of the library; set a flag \
             there, and call where the program sees the flag"
        );
    }
    let is_of_program = thread::carries_out().is_none();
    let is_other = is_of_program && job.thread_level <= SHMEM_THREAD_FUNNELED && !is_main();
    if is_other {
        warn_once(
            call,
            "called by another thread than the one that initialized the library, but the thread level is below \
             SHMEM_THREAD_SERIALIZED: this works here as long as no two threads are in the library at once; ask \
             shmem_init_thread for SHMEM_THREAD_SERIALIZED or SHMEM_THREAD_MULTIPLE",
        );
    }
    !is_other
}

/// The number of checked calls; a call with several arguments may count more than once.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Returns a number that grows with each checked call of this PE.
pub(crate) fn calls() -> u64 {
    CALLS.load(Relaxed)
}

/// Ends the job with an error if another thread finalizes the library than the one that has
/// initialized it.
pub(crate) fn check_finalizer(call: Call, job: &Job) {
    if job.settings.checks() && !is_main() {
        fail!(
            call,
            "called by another thread than the one that initialized the library, which must finalize it"
        );
    }
}

/// Returns true if the calling thread has made the last initialization. Also returns true if the
/// program numbers its threads, since they may move between threads of the system.
fn is_main() -> bool {
    INITIALIZER.get() == INITIALIZERS.load(Relaxed) || thread::are_numbered()
}
