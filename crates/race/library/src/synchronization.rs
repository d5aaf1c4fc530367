//! Orders the threads of a program by the routines with which they synchronize: locks, conditions,
//! barriers, semaphores, and initialization that is done once.
//!
//! Threads synchronize by objects: accesses of one thread before it releases an object are ordered
//! before those of another thread after it has acquired the object. An object of the program, such
//! as a mutex, is identified by its address. The others are identified by a tag and a number.
//!
//! Only calls by the program itself count. `oshcc --race` links them to the functions here, by the
//! linker's option `--wrap` for each name.
//!
//! A new routine is a row here and a name in `crates/shmem-c/wrappers/oshcc`, or a row in
//! `libgomp.rs` or `threads.rs`. It needs a case in `crates/race/detector/tests/programs` and a
//! line in the table of docs/races.md.
#![allow(unsafe_code)]

use crate::next::{around_next, next};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use rushmem_race::process::{ProcessDetector, active};
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

/// The tags of objects that are not identified by an address of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The start of a thread; the number counts the threads that were created.
    ThreadStart = 1,
    /// The end of a thread; the number is its `pthread_t`.
    ThreadEnd,
    /// A pipe or eventfd; the number is its inode.
    Pipe,
    /// All sockets.
    Socket,
    /// The start of a team of OpenMP.
    TeamFork,
    /// The end of a team of OpenMP.
    TeamJoin,
    /// A barrier of a team.
    Barrier,
    /// The start of a task; the number counts the tasks that were created.
    TaskStart,
    /// The completed tasks of a team.
    Tasks,
    /// The end of a task for which the thread that creates it waits.
    TaskEnd,
    /// Critical sections without a name.
    Critical,
    /// The ordered part of a loop of a team.
    Ordered,
    /// Iterations of a loop of a team, on which other iterations depend.
    Iterations,
    /// The object by which one thread of a team copies data to the others (`copyprivate`).
    Single,
    /// Tasks that depend on an address by `in`; the number is the address.
    In,
    /// Tasks that depend on an address by `out`, `inout` or `mutexinoutset`.
    Out,
    /// Tasks that depend on an address by `inoutset`.
    Set,
}

/// Bits of an object for the number. Addresses of a program have fewer bits.
const NUMBER_BITS: u32 = 56;
const _: () = assert!((Tag::Set as usize) < 1 << (usize::BITS - NUMBER_BITS));

/// Returns the object of a tag and the lower bits of a number.
pub fn object(tag: Tag, number: usize) -> usize {
    (tag as usize) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1)
}

/// Calls the detector, if it is active.
pub fn with(f: impl FnOnce(&ProcessDetector)) {
    if let Some(process) = active() {
        f(process);
    }
}

/// Orders the calling thread after the threads that have released an object.
pub fn acquire(object: usize) {
    with(|process| process.acquire(object));
}

/// Orders the accesses of the calling thread so far before those of threads that acquire the object
/// from now on.
pub fn release(object: usize) {
    with(|process| process.release_object(object));
}

around_next! {
    take_lock(0): __wrap_pthread_mutex_lock __wrap_pthread_mutex_trylock
        __wrap_pthread_mutex_timedlock __wrap_pthread_mutex_clocklock
        __wrap_pthread_rwlock_rdlock __wrap_pthread_rwlock_tryrdlock
        __wrap_pthread_rwlock_timedrdlock __wrap_pthread_rwlock_clockrdlock
        __wrap_pthread_spin_lock __wrap_pthread_spin_trylock __wrap_sem_wait __wrap_sem_trywait
        __wrap_sem_timedwait __wrap_sem_clockwait __wrap_mtx_lock __wrap_mtx_trylock
        __wrap_mtx_timedlock;
    take_for_writing(0): __wrap_pthread_rwlock_wrlock __wrap_pthread_rwlock_trywrlock
        __wrap_pthread_rwlock_timedwrlock __wrap_pthread_rwlock_clockwrlock;
    release_read_write_lock(0): __wrap_pthread_rwlock_unlock;
    release_lock(0): __wrap_pthread_mutex_unlock __wrap_pthread_spin_unlock __wrap_sem_post
        __wrap_mtx_unlock __wrap___cxa_guard_release __wrap___cxa_guard_abort;
    wait_for_condition(1): __wrap_pthread_cond_wait __wrap_pthread_cond_timedwait
        __wrap_pthread_cond_clockwait __wrap_cnd_wait __wrap_cnd_timedwait;
    wait_for_condition_in_cxx(1): __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE;
    pass_barrier(0): __wrap_pthread_barrier_wait;
    acquire_after(0): __wrap___cxa_guard_acquire;
}

/// Acquires the lock if the routine returns 0 or `EOWNERDEAD`: the caller then has the lock, too,
/// since its former owner has died.
fn take_lock(lock: usize, next: impl FnOnce() -> usize) -> usize {
    let result = next();
    if matches!(result as c_int, 0 | libc::EOWNERDEAD) {
        acquire(lock);
    }
    result
}

fn release_lock(lock: usize, next: impl FnOnce() -> usize) -> usize {
    release(lock);
    next()
}

thread_local! {
    /// The read-write locks that the calling thread holds for writing.
    static HELD_FOR_WRITING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Returns the object at which readers release a read-write lock. A reader acquires only the lock
/// itself, which writers release, since readers do not exclude each other. The second word of the
/// lock stands for the readers, also of other PEs if the lock is in symmetric memory.
fn readers_of(lock: usize) -> usize {
    lock + size_of::<usize>()
}

/// Acquires a read-write lock for writing if the routine returns 0: after its last writer and all
/// readers.
fn take_for_writing(lock: usize, next: impl FnOnce() -> usize) -> usize {
    let result = take_lock(lock, next);
    if result as c_int == 0 {
        acquire(readers_of(lock));
        // A thread that ends may have dropped the list already. Its locks then count as the
        // writer's when they are released.
        let _ = HELD_FOR_WRITING.try_with(|held| held.borrow_mut().push(lock));
    }
    result
}

/// Releases a read-write lock: to readers and writers if the calling thread holds it for writing,
/// otherwise to writers alone.
fn release_read_write_lock(lock: usize, next: impl FnOnce() -> usize) -> usize {
    let object = if end_writing(lock) {
        lock
    } else {
        readers_of(lock)
    };
    release_lock(object, next)
}

/// Removes a lock from those that the calling thread holds for writing. Returns false if it is not
/// among them.
fn end_writing(lock: usize) -> bool {
    let removed = HELD_FOR_WRITING.try_with(|held| {
        let mut held = held.borrow_mut();
        let index = held.iter().position(|other| *other == lock)?;
        Some(held.swap_remove(index))
    });
    // A thread that ends drops the list before the locks of later destructors. These count as the
    // writer's.
    removed.map_or(true, |lock| lock.is_some())
}

fn acquire_after(object: usize, next: impl FnOnce() -> usize) -> usize {
    let result = next();
    acquire(object);
    result
}

fn pass_barrier(barrier: usize, next: impl FnOnce() -> usize) -> usize {
    release(barrier);
    acquire_after(barrier, next)
}

unsafe extern "C" {
    fn _pthread_cleanup_push(
        handler: *mut CleanupHandler,
        f: extern "C" fn(usize),
        argument: usize,
    );
    fn _pthread_cleanup_pop(handler: *mut CleanupHandler, runs: c_int);
}

/// A handler that runs if the thread is canceled (`struct _pthread_cleanup_buffer` of the C
/// library).
#[repr(C)]
struct CleanupHandler {
    f: usize,
    argument: usize,
    canceltype: c_int,
    previous: usize,
}

extern "C" fn retake_mutex(mutex: usize) {
    acquire(mutex);
}

/// Waits for a condition. The wait releases the mutex, and the thread holds it again afterward,
/// also if the thread is canceled.
fn wait_for_condition(mutex: usize, next: impl FnOnce() -> usize) -> usize {
    release(mutex);

    let mut handler = MaybeUninit::uninit();
    // SAFETY: the variable is not moved until the handler is removed below; a cancellation runs it
    // while this frame exists.
    unsafe { _pthread_cleanup_push(handler.as_mut_ptr(), retake_mutex, mutex) };

    let result = next();
    // SAFETY: removes the handler that was pushed last on this thread, and runs it.
    unsafe { _pthread_cleanup_pop(handler.as_mut_ptr(), 1) };
    result
}

/// Waits for a condition with a lock of C++ (`std::unique_lock`), whose first member points to the
/// mutex.
fn wait_for_condition_in_cxx(lock: usize, next: impl FnOnce() -> usize) -> usize {
    // SAFETY: the caller passes a `std::unique_lock`, whose first member is a pointer.
    let mutex = unsafe { std::ptr::with_exposed_provenance::<usize>(lock).read() };
    wait_for_condition(mutex, next)
}

type Initialize = extern "C" fn();
type Once = unsafe extern "C" fn(*mut c_void, Initialize) -> c_int;

/// The arguments of `pthread_once` or `call_once`.
struct Initialization {
    flag: usize,
    f: Initialize,
}

thread_local! {
    /// The arguments that the calling thread has passed last, until the function runs.
    static ONCE: Cell<Option<Initialization>> = const { Cell::new(None) };
}

/// Runs the function that the calling thread has passed, and releases the flag.
extern "C" fn initialize() {
    if let Some(Initialization { flag, f }) = ONCE.take() {
        f();
        release(flag);
    }
}

/// Calls `pthread_once` or `call_once`, and acquires the flag: another thread may have run the
/// function.
fn once(
    name: &core::ffi::CStr,
    next_once: &OnceLock<Once>,
    flag: *mut c_void,
    f: Initialize,
) -> c_int {
    // SAFETY: the two functions that are named below have this type; the result of `call_once` is
    // not used.
    let next = *next_once.get_or_init(|| unsafe { next(name) });

    ONCE.set(Some(Initialization {
        flag: flag.addr(),
        f,
    }));
    // SAFETY: the flag is the caller's; the call runs `initialize` on this thread, or not at all.
    let result = unsafe { next(flag, initialize) };
    acquire(flag.addr());
    result
}

/// Wraps `pthread_once` for the program.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_pthread_once(flag: *mut c_void, f: Initialize) -> c_int {
    static NEXT: OnceLock<Once> = OnceLock::new();
    once(c"pthread_once", &NEXT, flag, f)
}

/// Wraps `call_once` for the program.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_call_once(flag: *mut c_void, f: Initialize) {
    static NEXT: OnceLock<Once> = OnceLock::new();
    once(c"call_once", &NEXT, flag, f);
}
