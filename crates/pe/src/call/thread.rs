//! Identifies the thread that calls the library. It is a thread of the system, unless the program
//! has registered a function that numbers its threads, because they move between threads of the
//! system. Also records which threads of the library carry out non-blocking collectives, and
//! whether several threads may be in the library at once.
#![allow(unsafe_code)]

use crate::call::{Call, fail};
use crate::process;
use rushmem_system::lock::lock;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::{self, ThreadId};

/// A function of the program that returns the number of the calling thread; null for no function.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct GetThread(Option<unsafe extern "C" fn() -> u64>);

/// A thread that calls the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallingThread {
    /// A thread of the system.
    OfSystem(ThreadId),
    /// A thread by the number that the program gives it.
    OfProgram(u64),
}

static REGISTERED: Mutex<GetThread> = Mutex::new(GetThread(None));

/// `shmemx_register_gettid`: registers a function that numbers the threads of the program. Ends the
/// job with an error if the library is initialized.
///
/// # Safety
/// Any thread that calls the library can call the function, at any time in the life of the process.
pub unsafe fn register(call: Call, function: GetThread) {
    if process::inits() > 0 {
        fail!(
            call,
            "called after the initialization of the library, which knows the program's threads by other numbers; call it \
             before shmem_init_thread"
        );
    }
    *lock(&REGISTERED) = function;
}

/// Returns true if the program numbers its threads.
pub(crate) fn are_numbered() -> bool {
    lock(&REGISTERED).0.is_some()
}

/// Returns the calling thread. It is only called for private contexts, as in Sandia OpenSHMEM: the
/// registered function may expect that.
pub fn current() -> CallingThread {
    let registered = *lock(&REGISTERED);
    match registered.0 {
        // SAFETY: the caller of `register` promises that any thread can call the function.
        Some(number) => CallingThread::OfProgram(unsafe { number() }),
        None => CallingThread::OfSystem(thread::current().id()),
    }
}

/// The number of non-blocking collectives that are not complete. It falls with release order in
/// [`carry_out`], and is read with acquire order in [`has_requests`].
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The non-blocking collective that this thread of the library carries out.
    static CARRIES_OUT: Cell<Option<Call>> = const { Cell::new(None) };
}

/// Counts a non-blocking collective that a thread of the library will carry out.
pub fn add_request() {
    // Relaxed, since the program's thread counts the collective before it hands it over, and a
    // higher number publishes nothing.
    REQUESTS.fetch_add(1, Relaxed);
}

/// Returns true if threads of the library carry out collectives beside the program. If it returns
/// false, all that they have written is visible to the caller.
#[inline]
pub fn has_requests() -> bool {
    REQUESTS.load(Acquire) > 0
}

/// Calls `act`, which carries out a non-blocking collective on this thread of the library, and then
/// counts the collective as complete.
pub fn carry_out<R>(call: Call, act: impl FnOnce() -> R) -> R {
    CARRIES_OUT.set(Some(call));
    let result = act();
    CARRIES_OUT.set(None);

    REQUESTS.fetch_sub(1, Release);
    result
}

/// False if the thread level excludes that two threads of the program are in the library at once.
/// Relaxed: only init stores it, which no other call overlaps.
static ARE_AT_ONCE: AtomicBool = AtomicBool::new(true);

/// Sets, at initialization, whether two threads of the program may be in the library at once.
pub fn set_at_once(are_at_once: bool) {
    ARE_AT_ONCE.store(are_at_once, Relaxed);
}

/// Returns true if two threads of the program may be in the library at once.
#[inline(always)]
pub fn are_at_once() -> bool {
    ARE_AT_ONCE.load(Relaxed)
}

/// Returns true if no other thread can be in the library, neither one of the program nor one that
/// carries out a request.
#[inline(always)]
pub fn is_alone() -> bool {
    !are_at_once() && !has_requests()
}

/// Adds to a counter, without a locked instruction if the thread is alone in the library. Returns
/// the former value. Four locked additions would make an 8-byte put with `SHMEM_STATS` take 6 ns
/// more, beside the 4 ns of one without.
#[inline(always)]
pub fn add(counter: &AtomicU64, amount: u64, is_alone: bool) -> u64 {
    if !is_alone {
        return counter.fetch_add(amount, Relaxed);
    }

    // No other thread adds between the load and the store.
    let before = counter.load(Relaxed);
    counter.store(before + amount, Relaxed);
    before
}

/// Returns the call of the non-blocking collective that this thread of the library carries out;
/// `None` for other threads.
#[cold]
#[inline(never)]
pub fn request_call() -> Option<Call> {
    CARRIES_OUT.get()
}
