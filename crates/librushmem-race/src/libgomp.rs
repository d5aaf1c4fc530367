//! Orders the threads of an OpenMP program that was compiled by GCC: these functions stand before
//! those of its run time, libgomp.
//!
//! Sections and tasks may run on one thread or on several. Each is an actor of its own, so that
//! what is found does not depend on how they were distributed.
#![allow(unsafe_code)]

use crate::next::{before_next, next};
use crate::teams::{
    self, TEAM, TeamObject, acquire, barrier_begins, barrier_ends, object, of_team, release, with,
};
use core::ffi::{c_int, c_long, c_uint, c_void};
use rushmem_race::process::{ProcessDetector, active};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type Region = extern "C" fn(*mut c_void);
type Parallel = unsafe extern "C" fn(Region, *mut c_void, c_uint, c_uint);
type ParallelSections = unsafe extern "C" fn(Region, *mut c_void, c_uint, c_uint, c_uint);

struct Forked {
    region: Region,
    data: *mut c_void,
    team: usize,
}

extern "C" fn in_team(forked: *mut c_void) {
    // SAFETY: the thread that forks waits for all of them.
    let Forked { region, data, team } = unsafe { forked.cast::<Forked>().read() };
    let outer = TEAM.replace((team, 0));
    acquire(object(TeamObject::Fork, team, 0));
    region(data);
    with(ProcessDetector::end_sections);
    release(object(TeamObject::Join, team, 0));
    TEAM.set(outer);
}

fn fork(region: Region, data: *mut c_void, run: impl FnOnce(Region, *mut c_void)) {
    if active().is_none() {
        return run(region, data);
    }
    let team = teams::fork();
    let mut forked = Forked { region, data, team };
    run(in_team, (&raw mut forked).cast());
    acquire(object(TeamObject::Join, team, 0));
    acquire(object(TeamObject::Tasks, team, 0));
}

/// Stands before the function of this name.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_parallel(
    region: Region,
    data: *mut c_void,
    n: c_uint,
    flags: c_uint,
) {
    static NEXT: OnceLock<Parallel> = OnceLock::new();
    // SAFETY: the function has this type.
    let next = *NEXT.get_or_init(|| unsafe { next(c"GOMP_parallel") });
    // SAFETY: the same contract.
    fork(region, data, |region, data| unsafe { next(region, data, n, flags) });
}

/// Stands before the function of this name.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_parallel_sections(
    region: Region,
    data: *mut c_void,
    n: c_uint,
    count: c_uint,
    flags: c_uint,
) {
    static NEXT: OnceLock<ParallelSections> = OnceLock::new();
    // SAFETY: the function has this type.
    let next = *NEXT.get_or_init(|| unsafe { next(c"GOMP_parallel_sections") });
    // SAFETY: the same contract.
    fork(region, data, |region, data| unsafe { next(region, data, n, count, flags) });
}

/// Functions that begin a team, each with what it has between its first two arguments and the end.
macro_rules! teams {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// Stands before the function of this name.
        ///
        /// # Safety
        /// As that one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(region: Region, data: *mut c_void, $($argument: $type),*) {
            type Function = unsafe extern "C" fn(Region, *mut c_void, $($type),*);
            static NEXT: OnceLock<Function> = OnceLock::new();
            const NAME: &str = concat!(stringify!($name), "\0");
            let next = *NEXT.get_or_init(|| {
                let name = core::ffi::CStr::from_bytes_with_nul(NAME.as_bytes());
                // SAFETY: the function has this type.
                unsafe { next(name.unwrap_or_default()) }
            });
            // SAFETY: the same contract.
            fork(region, data, |region, data| unsafe { next(region, data, $($argument),*) });
        }
    )*};
}

teams! {
    GOMP_parallel_loop_static(n: c_uint, from: c_long, to: c_long, by: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_dynamic(n: c_uint, from: c_long, to: c_long, by: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_guided(n: c_uint, from: c_long, to: c_long, by: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_nonmonotonic_dynamic(n: c_uint, from: c_long, to: c_long, by: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_nonmonotonic_guided(n: c_uint, from: c_long, to: c_long, by: c_long, chunk: c_long, flags: c_uint);
    GOMP_parallel_loop_runtime(n: c_uint, from: c_long, to: c_long, by: c_long, flags: c_uint);
    GOMP_parallel_loop_nonmonotonic_runtime(n: c_uint, from: c_long, to: c_long, by: c_long, flags: c_uint);
    GOMP_parallel_loop_maybe_nonmonotonic_runtime(n: c_uint, from: c_long, to: c_long, by: c_long, flags: c_uint);
}

before_next! {
    GOMP_barrier_cancel() -> bool { barrier_begins() } then (_cancelled) { barrier_ends() }
    GOMP_loop_end_cancel() -> bool { barrier_begins() } then (_cancelled) { barrier_ends() }
    GOMP_sections_end_cancel() -> bool { barrier_begins() } then (_cancelled) { barrier_ends() }
    GOMP_barrier() { barrier_begins() } then () { barrier_ends() }
    GOMP_loop_end() { barrier_begins() } then () { barrier_ends() }
    GOMP_sections_start(count: c_uint) -> c_uint
        {} then (section) { with(|process| process.begin_section(*section != 0)) }
    GOMP_sections_next() -> c_uint
        {} then (section) { with(|process| process.begin_section(*section != 0)) }
    GOMP_sections_end() { barrier_begins() } then () { barrier_ends() }
    GOMP_sections_end_nowait() { with(ProcessDetector::end_sections) } then () {}
    GOMP_critical_start() {} then () { acquire(of_team(TeamObject::Critical)) }
    GOMP_critical_end() { release(of_team(TeamObject::Critical)) } then () {}
    GOMP_critical_name_start(name: *mut c_void) {} then () { acquire(name.addr()) }
    GOMP_critical_name_end(name: *mut c_void) { release(name.addr()) } then () {}
    GOMP_atomic_start() {} then () { acquire(of_team(TeamObject::Critical)) }
    GOMP_atomic_end() { release(of_team(TeamObject::Critical)) } then () {}
    GOMP_ordered_start() {} then () { acquire(of_team(TeamObject::Ordered)) }
    GOMP_ordered_end() { release(of_team(TeamObject::Ordered)) } then () {}
    GOMP_single_copy_start() -> *mut c_void
        {} then (data) { if !data.is_null() { acquire(of_team(TeamObject::Single)) } }
    GOMP_single_copy_end(data: *mut c_void) { release(of_team(TeamObject::Single)) } then () {}
    GOMP_taskwait() {} then () { acquire(of_team(TeamObject::Tasks)) }
    GOMP_taskgroup_end() {} then () { acquire(of_team(TeamObject::Tasks)) }
    omp_set_lock(lock: *mut c_void) {} then () { acquire(lock.addr()) }
    omp_unset_lock(lock: *mut c_void) { release(lock.addr()) } then () {}
    omp_test_lock(lock: *mut c_void) -> c_int
        {} then (taken) { if *taken != 0 { acquire(lock.addr()) } }
}

type GompTask = unsafe extern "C" fn(
    Region,
    *mut c_void,
    Option<CopyArguments>,
    c_long,
    c_long,
    bool,
    c_uint,
    *mut *mut c_void,
    c_int,
    *mut c_void,
);
type CopyArguments = extern "C" fn(*mut c_void, *mut c_void);

/// A task: its function, its arguments, and the clock of its creator.
struct OpenMpTask {
    region: Region,
    data: Box<[u128]>,
    team: (usize, usize),
    number: usize,
}

extern "C" fn run_task(task: *mut c_void) {
    // SAFETY: libgomp passes a copy of the word that holds the pointer.
    let task = unsafe { task.cast::<*mut OpenMpTask>().read() };
    // SAFETY: the task runs once.
    let mut task = *unsafe { Box::from_raw(task) };
    let outer = TEAM.replace(task.team);
    let thread = active().and_then(|process| process.enter_task(task.number));
    (task.region)(task.data.as_mut_ptr().cast());
    with(|process| process.leave_task(thread, object(TeamObject::Tasks, task.team.0, 0)));
    TEAM.set(outer);
}

/// The task has an event of the program, for which its arguments must stay where they are.
const DETACHED: c_uint = 64;

/// Stands before the function of this name.
///
/// # Safety
/// As that one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_task(
    region: Region,
    data: *mut c_void,
    copy: Option<CopyArguments>,
    nbytes: c_long,
    alignment: c_long,
    is_deferred: bool,
    flags: c_uint,
    depend: *mut *mut c_void,
    priority: c_int,
    detach: *mut c_void,
) {
    static NEXT: OnceLock<GompTask> = OnceLock::new();
    static TASKS: AtomicUsize = AtomicUsize::new(1);
    // SAFETY: the function has this type.
    let next = *NEXT.get_or_init(|| unsafe { next(c"GOMP_task") });
    if active().is_none() || flags & DETACHED != 0 || alignment as usize > align_of::<u128>() {
        // SAFETY: the same contract.
        return unsafe {
            next(
                region,
                data,
                copy,
                nbytes,
                alignment,
                is_deferred,
                flags,
                depend,
                priority,
                detach,
            )
        };
    }
    let mut own = vec![0u128; (nbytes as usize).div_ceil(16)].into_boxed_slice();
    match copy {
        Some(copy) => copy(own.as_mut_ptr().cast(), data),
        // SAFETY: the arguments of the program's task.
        None => unsafe {
            std::ptr::copy_nonoverlapping(
                data.cast::<u8>(),
                own.as_mut_ptr().cast(),
                nbytes as usize,
            )
        },
    }
    let number = TASKS.fetch_add(1, Relaxed);
    with(|process| process.make_task(number));
    let task = Box::into_raw(Box::new(OpenMpTask { region, data: own, team: TEAM.get(), number }));
    let (mut argument, size) = (task, size_of::<*mut OpenMpTask>() as c_long);
    // SAFETY: the same contract; the arguments are one word.
    unsafe {
        next(
            run_task,
            (&raw mut argument).cast(),
            None,
            size,
            size,
            is_deferred,
            flags,
            depend,
            priority,
            detach,
        )
    }
}
