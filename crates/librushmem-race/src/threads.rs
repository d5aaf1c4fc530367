//! Orders the threads of a program: their start and end, mutexes, conditions, barriers, semaphores.
//!
//! Threads may be started by a library, such as that of C++; so these functions stand before those
//! of the C library for the whole process. Of the others only the program's own calls count, which
//! are linked to these by `--wrap`.
#![allow(unsafe_code)]

use crate::next::{before_next, next};
use core::ffi::{c_int, c_void};
use libc::{pthread_attr_t, pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_t, sem_t};
use rushmem_race::process::active;
use rushmem_race::{private, sites};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int;

/// Objects by which threads synchronize, apart from addresses.
#[derive(Clone, Copy)]
enum ThreadObject {
    Start = 1,
    End = 2,
}

fn object(kind: ThreadObject, number: usize) -> usize {
    (kind as usize) << 60 | number & ((1 << 60) - 1)
}

fn acquire(object: usize) {
    if let Some(process) = active() {
        process.acquire(object);
    }
}

fn release(object: usize) {
    if let Some(process) = active() {
        process.release_object(object);
    }
}

/// Returns what is released when the calling thread ends.
fn own_end() -> usize {
    // SAFETY: names the calling thread.
    let own = unsafe { libc::pthread_self() };
    object(ThreadObject::End, own as usize)
}

/// Returns the mutex of a lock of C++ (`std::unique_lock`), which is its first member.
fn mutex_of(lock: *mut *mut c_void) -> usize {
    // SAFETY: the program waits with this lock.
    unsafe { lock.read() }.addr()
}

/// The function that a new thread runs.
struct ThreadStart {
    start: Start,
    argument: *mut c_void,
    number: usize,
}

extern "C" fn run(task: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` below, for this thread alone.
    let ThreadStart { start, argument, number } =
        *unsafe { Box::from_raw(task.cast::<ThreadStart>()) };
    acquire(object(ThreadObject::Start, number));
    let result = start(argument);
    release(own_end());
    result
}

/// Stands before the function of this name.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    static NEXT: OnceLock<Create> = OnceLock::new();
    static THREADS: AtomicUsize = AtomicUsize::new(1);
    // SAFETY: the function has this type.
    let next = *NEXT.get_or_init(|| unsafe { next(c"pthread_create") });
    if active().is_none() || sites::library_calls() {
        // SAFETY: the same contract.
        return unsafe { next(thread, attributes, start, argument) };
    }
    private::have_threads();
    let number = THREADS.fetch_add(1, Relaxed);
    release(object(ThreadObject::Start, number));
    let task = Box::into_raw(Box::new(ThreadStart { start, argument, number }));
    // SAFETY: the same contract; the new thread owns its task.
    let status = unsafe { next(thread, attributes, run, task.cast()) };
    if status != 0 {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(task) });
    }
    status
}

before_next! {
    pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int
        {} then (_status) { acquire(object(ThreadObject::End, thread as usize)) }
    __wrap_pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int
        {} then (_status) { acquire(mutex.addr()) }
    __wrap_pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int
        {} then (status) { if *status == 0 { acquire(mutex.addr()) } }
    __wrap_pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int
        { release(mutex.addr()) } then () {}
    __wrap_pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int
        { release(mutex.addr()) } then (_status) { acquire(mutex.addr()) }
    __wrap_pthread_cond_timedwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const libc::timespec
    ) -> c_int
        { release(mutex.addr()) } then (_status) { acquire(mutex.addr()) }
    __wrap_pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: c_int,
        until: *const libc::timespec
    ) -> c_int
        { release(mutex.addr()) } then (_status) { acquire(mutex.addr()) }
    __wrap_pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const libc::timespec) -> c_int
        {} then (status) { if *status == 0 { acquire(mutex.addr()) } }
    __wrap_pthread_rwlock_rdlock(lock: *mut c_void) -> c_int
        {} then (_status) { acquire(lock.addr()) }
    __wrap_pthread_rwlock_wrlock(lock: *mut c_void) -> c_int
        {} then (_status) { acquire(lock.addr()) }
    __wrap_pthread_rwlock_unlock(lock: *mut c_void) -> c_int
        { release(lock.addr()) } then () {}
    __wrap_pthread_spin_lock(lock: *mut c_void) -> c_int
        {} then (_status) { acquire(lock.addr()) }
    __wrap_pthread_spin_unlock(lock: *mut c_void) -> c_int
        { release(lock.addr()) } then () {}
    __wrap_sem_trywait(semaphore: *mut sem_t) -> c_int
        {} then (status) { if *status == 0 { acquire(semaphore.addr()) } }
    __wrap_sem_timedwait(semaphore: *mut sem_t, until: *const libc::timespec) -> c_int
        {} then (status) { if *status == 0 { acquire(semaphore.addr()) } }
    __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
        condition: *mut c_void, lock: *mut *mut c_void
    )
        { release(mutex_of(lock)) } then () { acquire(mutex_of(lock)) }
    __wrap_pthread_exit(result: *mut c_void)
        { release(own_end()) } then () {}
    __wrap_pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int
        { release(barrier.addr()) } then (_status) { acquire(barrier.addr()) }
    __wrap_sem_post(semaphore: *mut sem_t) -> c_int
        { release(semaphore.addr()) } then () {}
    __wrap_sem_wait(semaphore: *mut sem_t) -> c_int
        {} then (_status) { acquire(semaphore.addr()) }
}
