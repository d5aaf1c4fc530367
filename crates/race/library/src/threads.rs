//! Orders the accesses of a thread of the program after the accesses before its creation, and
//! before those after its join.
//!
//! A library, such as that of C++, may create and join a thread of the program. So these functions
//! interpose those of the C library for the whole process.
#![allow(unsafe_code)]

use crate::next::{around_next, next};
use crate::synchronization::{Tag, acquire, object, release, with};
use core::ffi::{c_int, c_void};
use libc::pthread_attr_t;
use rushmem_race::actors::THREAD;
use rushmem_race::{private, sites};
use rushmem_system::thread::own_stack;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The function of a thread, of POSIX or of C.
type Start<R> = extern "C" fn(*mut c_void) -> R;
type CreatePosix =
    unsafe extern "C" fn(*mut usize, *const pthread_attr_t, Start<usize>, *mut c_void) -> c_int;
type CreateC = unsafe extern "C" fn(*mut usize, Start<c_int>, *mut c_void) -> c_int;

/// The program's function that a new thread runs, its argument, and the number of the thread among
/// those that were created.
struct ThreadStart<R> {
    start: Start<R>,
    argument: *mut c_void,
    number: usize,
}

/// A thread-local variable that is dropped when the thread ends: by a return, `pthread_exit` or
/// cancellation.
struct ThreadEnd;

thread_local! {
    static END: ThreadEnd = const { ThreadEnd };
}

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        // SAFETY: `pthread_self` has no preconditions.
        let own = unsafe { libc::pthread_self() };
        with(|process| process.end_thread(object(Tag::ThreadEnd, own as usize), own_stack()));
    }
}

/// The function with which a thread starts: orders the thread after its creation, and calls the
/// program's function.
extern "C" fn run<R>(boxed: *mut c_void) -> R {
    // SAFETY: `create` below has made the box, for this thread alone, which takes it once.
    let ThreadStart {
        start,
        argument,
        number,
    } = *unsafe { Box::from_raw(boxed.cast::<ThreadStart<R>>()) };

    // Thread-local variables are dropped in the reverse order of their first use. The drop of `END`
    // uses `THREAD`, and must follow the destructors of the program's variables.
    THREAD.with(|_| ());
    END.with(|_| ());

    with(|process| process.begin_thread(object(Tag::ThreadStart, number)));
    start(argument)
}

/// Creates a thread by `next`, with a function that orders the thread and then calls `start`.
/// Threads that Rushmem, UCX or libfabric create are left to `next` alone.
fn create<R>(
    start: Start<R>,
    argument: *mut c_void,
    next: impl FnOnce(Start<R>, *mut c_void) -> c_int,
) -> c_int {
    static THREADS: AtomicUsize = AtomicUsize::new(1);
    if sites::is_called_by_library() {
        return next(start, argument);
    }

    private::mark_multithreaded();
    // Relaxed: the counter only gives each thread another number.
    let number = THREADS.fetch_add(1, Relaxed);
    release(object(Tag::ThreadStart, number));

    let start = Box::into_raw(Box::new(ThreadStart {
        start,
        argument,
        number,
    }));

    let status = next(run, start.cast());
    if status != 0 {
        // SAFETY: made above; no thread was created that could take it.
        drop(unsafe { Box::from_raw(start) });
    }
    status
}

/// Interposes the function of this name.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut usize,
    attributes: *const pthread_attr_t,
    start: Start<usize>,
    argument: *mut c_void,
) -> c_int {
    static NEXT: OnceLock<CreatePosix> = OnceLock::new();
    // SAFETY: pthread_create of the C library has the type of `NEXT`.
    let next = *NEXT.get_or_init(|| unsafe { next(c"pthread_create") });
    // SAFETY: the caller keeps the contract of this function; the new thread owns its argument.
    create(start, argument, |start, argument| unsafe {
        next(thread, attributes, start, argument)
    })
}

/// Interposes the function of this name.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(
    thread: *mut usize,
    start: Start<c_int>,
    argument: *mut c_void,
) -> c_int {
    static NEXT: OnceLock<CreateC> = OnceLock::new();
    // SAFETY: thrd_create of the C library has the type of `NEXT`.
    let next = *NEXT.get_or_init(|| unsafe { next(c"thrd_create") });
    // SAFETY: the caller keeps the contract of this function; the new thread owns its argument.
    create(start, argument, |start, argument| unsafe {
        next(thread, start, argument)
    })
}

around_next! {
    join_thread(0): pthread_join pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np thrd_join;
}

fn join_thread(thread: usize, next: impl FnOnce() -> usize) -> usize {
    let status = next();
    if status as c_int == 0 {
        acquire(object(Tag::ThreadEnd, thread));
    }
    status
}
