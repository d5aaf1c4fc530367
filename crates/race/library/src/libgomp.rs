//! Orders the threads of an OpenMP program that was compiled by GCC: these functions interpose
//! those of its run time, libgomp.
//!
//! libgomp may run sections and tasks on one thread or on several. Each section and each task is an
//! actor of its own, so that the races that are found do not depend on this.
#![allow(unsafe_code)]

mod tasks;

use crate::next::{Next, around_next, next_once};
use crate::synchronization::{Tag, acquire, release, with};
use crate::teams::{self, TEAM, TeamMember, begin_barrier, end_barrier, of_team, own, part};
use core::ffi::{c_int, c_void};
use rushmem_race::process::{ProcessDetector, active};
use std::sync::OnceLock;

/// The code of a team or a task.
type Region = extern "C" fn(*mut c_void);

/// The data with which libgomp starts a team: the program's code and data, and the team's number.
#[repr(C)]
struct Forked {
    /// The first word of the data, where libgomp looks for reductions of tasks.
    reductions: usize,
    region: Region,
    data: *mut c_void,
    team: usize,
}

extern "C" fn in_team(forked: *mut c_void) {
    // SAFETY: `fork` below has made the data, and waits for all threads of the team.
    let Forked {
        region, data, team, ..
    } = unsafe { forked.cast::<Forked>().read() };

    let outer = TEAM.replace(TeamMember::of(team));
    acquire(of_team(Tag::TeamFork, team));
    region(data);
    with(ProcessDetector::end_sections);
    release(of_team(Tag::TeamJoin, team));
    TEAM.set(outer);
}

/// Defines functions that interpose those of their names, which start a team: the first argument is
/// its code, the second one its data. Each row begins with the function that returns the first word
/// of the data, as libgomp expects it.
macro_rules! parallel {
    ($($reductions:ident: $($name:ident)+;)*) => {$($(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// As that one.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name(
            region: Region, data: *mut c_void, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize,
        ) -> usize {
            static NEXT: OnceLock<Next> = OnceLock::new();
            const NAME: &str = concat!(stringify!($name), "\0");
            // SAFETY: libgomp's function of this name has these parameters.
            let next = unsafe { next_once(&NEXT, NAME) };
            let reductions = $reductions(data);
            // SAFETY: the caller keeps the contract of the function of this name.
            fork(region, data, reductions, |region, data| unsafe {
                next(region, data, c, d, e, f, g, h)
            })
        }
    )+)*};
}

parallel! {
    none: GOMP_parallel GOMP_parallel_sections
        GOMP_parallel_loop_static GOMP_parallel_loop_dynamic GOMP_parallel_loop_guided
        GOMP_parallel_loop_nonmonotonic_dynamic GOMP_parallel_loop_nonmonotonic_guided
        GOMP_parallel_loop_runtime GOMP_parallel_loop_nonmonotonic_runtime
        GOMP_parallel_loop_maybe_nonmonotonic_runtime;
    first: GOMP_parallel_reductions;
}

fn none(_: *mut c_void) -> usize {
    0
}

fn first(data: *mut c_void) -> usize {
    // SAFETY: the data of a team with reductions begins with a pointer.
    unsafe { data.cast::<usize>().read() }
}

/// Runs a team by `next`, which gets its code and its data.
fn fork(
    region: Region,
    data: *mut c_void,
    reductions: usize,
    next: impl FnOnce(usize, usize) -> usize,
) -> usize {
    if active().is_none() {
        return next(region as usize, data.expose_provenance());
    }

    let team = teams::fork();
    let mut forked = Forked {
        reductions,
        region,
        data,
        team,
    };
    // `next` returns when all threads of the team have left `in_team`, so the variable lives as
    // long as they use it.
    let result = next(
        in_team as *const () as usize,
        (&raw mut forked).expose_provenance(),
    );
    teams::join(team);
    result
}

around_next! {
    pass_barrier(0): GOMP_barrier GOMP_barrier_cancel GOMP_loop_end GOMP_loop_end_cancel
        GOMP_sections_end GOMP_sections_end_cancel GOMP_workshare_task_reduction_unregister;
    begin_section(0): GOMP_sections_start GOMP_sections_next GOMP_sections2_start;
    end_sections(0): GOMP_sections_end_nowait;
    begin_critical(0): GOMP_critical_start GOMP_atomic_start;
    end_critical(0): GOMP_critical_end GOMP_atomic_end;
    take_lock(0): GOMP_critical_name_start omp_set_lock omp_set_nest_lock omp_set_lock_
        omp_set_nest_lock_;
    test_lock(0): omp_test_lock omp_test_nest_lock omp_test_lock_ omp_test_nest_lock_;
    release_lock(0): GOMP_critical_name_end omp_unset_lock omp_unset_nest_lock omp_unset_lock_
        omp_unset_nest_lock_;
    begin_ordered(0): GOMP_ordered_start;
    end_ordered(0): GOMP_ordered_end;
    wait_for_iteration(0): GOMP_doacross_wait GOMP_doacross_ull_wait;
    post_iteration(0): GOMP_doacross_post GOMP_doacross_ull_post;
    receive_copy(0): GOMP_single_copy_start;
    provide_copy(0): GOMP_single_copy_end;
    wait_for_tasks(0): GOMP_taskwait GOMP_taskgroup_end;
}

fn pass_barrier(_: usize, next: impl FnOnce() -> usize) -> usize {
    begin_barrier();
    let result = next();
    end_barrier();
    result
}

/// Begins the section that `next` returns: its number, or 0 if none is left.
fn begin_section(_: usize, next: impl FnOnce() -> usize) -> usize {
    let section = next();
    if section as c_int != 0 {
        with(ProcessDetector::begin_section);
    } else {
        with(ProcessDetector::end_sections);
    }
    section
}

fn end_sections(_: usize, next: impl FnOnce() -> usize) -> usize {
    with(ProcessDetector::end_sections);
    next()
}

fn take_lock(lock: usize, next: impl FnOnce() -> usize) -> usize {
    let result = next();
    acquire(lock);
    result
}

fn test_lock(lock: usize, next: impl FnOnce() -> usize) -> usize {
    let is_taken = next();
    if is_taken as c_int != 0 {
        acquire(lock);
    }
    is_taken
}

fn release_lock(lock: usize, next: impl FnOnce() -> usize) -> usize {
    release(lock);
    next()
}

/// Begins a critical section without a name. All of these exclude each other, also those of
/// different teams.
fn begin_critical(_: usize, next: impl FnOnce() -> usize) -> usize {
    take_lock(of_team(Tag::Critical, 0), next)
}

fn end_critical(_: usize, next: impl FnOnce() -> usize) -> usize {
    release_lock(of_team(Tag::Critical, 0), next)
}

fn begin_ordered(_: usize, next: impl FnOnce() -> usize) -> usize {
    take_lock(own(Tag::Ordered), next)
}

fn end_ordered(_: usize, next: impl FnOnce() -> usize) -> usize {
    release_lock(own(Tag::Ordered), next)
}

/// Waits for an iteration of nested loops. Only its number in the outermost loop, `first`, is used.
fn wait_for_iteration(first: usize, next: impl FnOnce() -> usize) -> usize {
    take_lock(part(Tag::Iterations, TEAM.get().team, first), next)
}

fn post_iteration(numbers: usize, next: impl FnOnce() -> usize) -> usize {
    // SAFETY: the program passes an array of the iteration's numbers, one for each loop.
    let first = unsafe { std::ptr::with_exposed_provenance::<usize>(numbers).read() };
    release_lock(part(Tag::Iterations, TEAM.get().team, first), next)
}

/// Acquires the data that `next` returns, which another thread of the team has provided. They are
/// null for the thread that is to provide them.
fn receive_copy(_: usize, next: impl FnOnce() -> usize) -> usize {
    let data = next();
    if data != 0 {
        acquire(own(Tag::Single));
    }
    data
}

fn provide_copy(_: usize, next: impl FnOnce() -> usize) -> usize {
    release_lock(own(Tag::Single), next)
}

fn wait_for_tasks(_: usize, next: impl FnOnce() -> usize) -> usize {
    take_lock(own(Tag::Tasks), next)
}
