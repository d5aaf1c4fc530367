//! Orders the threads of an OpenMP program that was compiled by Clang: its run time, libomp,
//! reports events to tools by OMPT (OpenMP 5.0, chapter 4), for which it looks up
//! [`ompt_start_tool`].
#![allow(unsafe_code)]

use crate::next::{around_next, next_once};
use crate::synchronization::{Tag, acquire, object, release, with};
use crate::teams::{
    self, Dependence, TEAM, TeamMember, begin_barrier, end_barrier, of_team, own, part,
};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use rushmem_race::actors::Thread;
use rushmem_race::process::memory_order::MemoryOrder;
use rushmem_race::process::{ProcessDetector, active};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

type Callback = *const c_void;
type SetCallback = unsafe extern "C" fn(c_int, Callback) -> c_int;
type LookUp = unsafe extern "C" fn(*const c_char) -> Option<SetCallback>;
/// The word that a tool has for a team or a task.
type Data = *mut u64;

/// The result of a tool for OMPT (`ompt_start_tool_result_t`).
#[repr(C)]
pub struct Tool {
    initialize: extern "C" fn(LookUp, c_int, Data) -> c_int,
    finalize: extern "C" fn(Data),
    data: u64,
}

// Events (`ompt_callbacks_t`).
const PARALLEL_BEGIN: c_int = 3;
const PARALLEL_END: c_int = 4;
const TASK_CREATE: c_int = 5;
const TASK_SCHEDULE: c_int = 6;
const IMPLICIT_TASK: c_int = 7;
const MUTEX_RELEASED: c_int = 17;
const DEPENDENCES: c_int = 18;
const SYNC_REGION: c_int = 23;
const MUTEX_ACQUIRED: c_int = 27;
// Begin and end of a region (`ompt_scope_endpoint_t`).
const BEGIN: c_int = 1;
const END: c_int = 2;
// Regions in which threads synchronize (`ompt_sync_region_t`).
const TASK_WAIT: c_int = 5;
const TASK_GROUP: c_int = 6;
const REDUCTION: c_int = 7;
// Kinds of tasks (`ompt_task_flag_t`).
const INITIAL_TASK: c_int = 1;
const EXPLICIT_TASK: c_int = 4;
const UNDEFERRED_TASK: c_int = 1 << 27;
// Why a task is left (`ompt_task_status_t`).
const TASK_COMPLETE: c_int = 1;
// Kinds of dependences (`ompt_dependence_type_t`).
const IN: c_int = 1;
const SOURCE: c_int = 5;
const SINK: c_int = 6;
const INOUTSET: c_int = 7;

/// Returns the tool that libomp notifies of events. libomp calls this once, when it starts.
#[unsafe(no_mangle)]
pub extern "C" fn ompt_start_tool(_: c_uint, _: *const c_char) -> *mut Tool {
    Box::into_raw(Box::new(Tool {
        initialize,
        finalize,
        data: 0,
    }))
}

/// Registers the callbacks, when libomp starts. Returns 0 if libomp is not to use the tool, and 1
/// if it is (OpenMP 5.2, §19.5.1.1).
extern "C" fn initialize(look_up: LookUp, _: c_int, _: Data) -> c_int {
    let name: &CStr = c"ompt_set_callback";
    // SAFETY: libomp passes its function that looks up names, and the name ends with a null byte.
    let Some(set) = (unsafe { look_up(name.as_ptr()) }) else {
        return 0;
    };

    let callbacks: [(c_int, Callback); 9] = [
        (PARALLEL_BEGIN, parallel_begin as Callback),
        (PARALLEL_END, parallel_end as Callback),
        (TASK_CREATE, task_create as Callback),
        (TASK_SCHEDULE, task_schedule as Callback),
        (IMPLICIT_TASK, implicit_task as Callback),
        (MUTEX_RELEASED, mutex_released as Callback),
        (DEPENDENCES, dependences as Callback),
        (SYNC_REGION, sync_region as Callback),
        (MUTEX_ACQUIRED, mutex_acquired as Callback),
    ];

    for (event, callback) in callbacks {
        // The result is ignored: the order by an event that libomp does not report is not seen, and
        // all others are.
        // SAFETY: each function of the table has the type that OMPT gives the callback of its
        // event.
        unsafe { set(event, callback) };
    }

    1
}

extern "C" fn finalize(_: Data) {}

fn get(data: Data) -> usize {
    // SAFETY: null, or a word that libomp keeps for this tool alone.
    unsafe { data.as_ref() }.map_or(0, |word| *word as usize)
}

fn set(data: Data, value: usize) {
    // SAFETY: null, or a word that libomp keeps for this tool alone.
    if let Some(word) = unsafe { data.as_mut() } {
        *word = value as u64;
    }
}

extern "C" fn parallel_begin(
    _: Data,
    _: *const c_void,
    team: Data,
    _: c_uint,
    _: c_int,
    _: *const c_void,
) {
    if active().is_some() {
        set(team, teams::fork());
    }
}

/// Ends a team. Its last barrier, which is implicit, has been reported before.
extern "C" fn parallel_end(team: Data, _: Data, _: c_int, _: *const c_void) {
    teams::join(get(team));
}

thread_local! {
    /// The last undeferred task that the calling thread created: the thread waits for its end.
    static UNDEFERRED: Cell<usize> = const { Cell::new(0) };
    /// The values that `TEAM` had in the teams around the current one, the outermost first.
    static TEAMS: RefCell<Vec<TeamMember>> = RefCell::default();
    /// The explicit tasks that the calling thread has begun and not completed, the outermost first.
    static TASKS: RefCell<Vec<BegunTask>> = RefCell::default();
}

/// An explicit task that was begun.
struct BegunTask {
    /// The number that `task_create` has given it.
    number: usize,
    is_undeferred: bool,
    /// What the thread did before.
    outer: Option<Thread>,
}

extern "C" fn implicit_task(
    endpoint: c_int,
    team: Data,
    _: Data,
    _: c_uint,
    _: c_uint,
    flags: c_int,
) {
    if flags & INITIAL_TASK != 0 {
        return;
    }

    TEAMS.with_borrow_mut(|outer| {
        if endpoint == BEGIN {
            let team = get(team);
            outer.push(TEAM.replace(TeamMember::of(team)));
            acquire(of_team(Tag::TeamFork, team));
        } else {
            TEAM.set(outer.pop().unwrap_or(TeamMember::NONE));
        }
    });
}

extern "C" fn sync_region(kind: c_int, endpoint: c_int, _: Data, _: Data, _: *const c_void) {
    match (kind, endpoint) {
        (TASK_WAIT | TASK_GROUP, END) => acquire(own(Tag::Tasks)),
        (TASK_WAIT | TASK_GROUP | REDUCTION, _) => {}
        (_, BEGIN) => begin_barrier(),
        _ => end_barrier(),
    }
}

extern "C" fn mutex_acquired(_: c_int, mutex: u64, _: *const c_void) {
    acquire(mutex as usize);
}

extern "C" fn mutex_released(_: c_int, mutex: u64, _: *const c_void) {
    release(mutex as usize);
}

extern "C" fn task_create(
    _: Data,
    _: *const c_void,
    task: Data,
    flags: c_int,
    _: c_int,
    _: *const c_void,
) {
    static MADE: AtomicUsize = AtomicUsize::new(1);
    if flags & EXPLICIT_TASK == 0 {
        return;
    }

    // Relaxed: the counter only gives each task another number.
    let number = MADE.fetch_add(1, Relaxed);
    set(task, number);
    release(object(Tag::TaskStart, number));
    if flags & UNDEFERRED_TASK != 0 {
        UNDEFERRED.set(number);
    }
}

/// An address that a task depends on, or the number of an iteration (`ompt_dependence_t`).
#[repr(C)]
struct OmptDependence {
    variable: u64,
    kind: c_int,
}

impl OmptDependence {
    fn of_task(&self) -> Dependence {
        Dependence {
            addr: self.variable as usize,
            tag: match self.kind {
                IN => Tag::In,
                INOUTSET => Tag::Set,
                _ => Tag::Out,
            },
        }
    }
}

/// The dependences of tasks that are not complete, by the number of the task.
static DEPENDS: LazyLock<Mutex<HashMap<usize, Vec<Dependence>>>> = LazyLock::new(Mutex::default);

fn locked_depends() -> MutexGuard<'static, HashMap<usize, Vec<Dependence>>> {
    DEPENDS.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn dependences(task: Data, first: *const OmptDependence, n: c_int) {
    if n < 1 {
        return;
    }
    // SAFETY: libomp passes an array of `n` entries that is valid during the call.
    let all = unsafe { std::slice::from_raw_parts(first, n as usize) };

    // Of an iteration of nested loops, only the number in the outermost one is used.
    let iteration = part(Tag::Iterations, TEAM.get().team, all[0].variable as usize);
    match all[0].kind {
        SOURCE => release(iteration),
        SINK => acquire(iteration),
        _ => {
            // If the task has dependences already, these are of a later wait of the task.
            locked_depends()
                .entry(get(task))
                .or_insert_with(|| all.iter().map(OmptDependence::of_task).collect());
        }
    }
}

extern "C" fn task_schedule(prior: Data, status: c_int, next: Data) {
    let Some(process) = active() else { return };
    let prior = get(prior);
    let next = get(next);
    TASKS.with_borrow_mut(|tasks| {
        if status == TASK_COMPLETE
            && let Some(task) = tasks.pop_if(|last| last.number == prior)
        {
            task.complete(process);
        }

        // A task that is in the list continues after others that it has waited for.
        if next != 0 && tasks.iter().all(|task| task.number != next) {
            tasks.push(BegunTask::begin(next, process));
        }
    });
}

impl BegunTask {
    /// Begins the explicit task with this number on the calling thread.
    fn begin(number: usize, process: &ProcessDetector) -> BegunTask {
        let outer = process.enter_task(object(Tag::TaskStart, number));

        let depends = locked_depends().get(&number).cloned();
        for dependence in depends.unwrap_or_default() {
            dependence.begin();
        }

        BegunTask {
            number,
            is_undeferred: UNDEFERRED.get() == number,
            outer,
        }
    }

    /// Completes the task.
    fn complete(self, process: &ProcessDetector) {
        let depends = locked_depends().remove(&self.number);
        for dependence in depends.unwrap_or_default() {
            dependence.end();
        }

        let end = object(Tag::TaskEnd, self.number);
        if self.is_undeferred {
            process.release_object(end);
        }
        process.leave_task(self.outer, own(Tag::Tasks));
        // The thread that has created the task is the one that has run it.
        if self.is_undeferred {
            process.acquire_last(end);
        }
    }
}

/// An address for which a thread waits (`kmp_depend_info_t`).
#[repr(C)]
pub struct WaitedFor {
    addr: usize,
    nbytes: usize,
    flags: u8,
}

// The values of `flags` for a dependence by `in` and by `inoutset`.
const BY_IN: u8 = 1;
const BY_INOUTSET: u8 = 8;

type WaitDepends = unsafe extern "C" fn(
    *const c_void,
    c_int,
    c_int,
    *const WaitedFor,
    c_int,
    *const c_void,
    c_int,
);

/// Defines functions that interpose those of their names, which wait for the tasks that depend on
/// some addresses. OMPT does not report the end of such a wait.
macro_rules! waits {
    ($($name:ident)+) => {$(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// As that one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            place: *const c_void,
            thread: c_int,
            n: c_int,
            first: *const WaitedFor,
            n_others: c_int,
            others: *const c_void,
            is_deferred: c_int,
        ) {
            static NEXT: OnceLock<WaitDepends> = OnceLock::new();
            const NAME: &str = concat!(stringify!($name), "\0");
            // SAFETY: the function has this type; one without the last argument ignores it.
            let wait = unsafe { next_once(&NEXT, NAME) };
            // SAFETY: the caller keeps the contract of the function of this name.
            unsafe { wait(place, thread, n, first, n_others, others, is_deferred) };
            if n > 0 {
                // SAFETY: the caller passes an array of `n` entries.
                waited(unsafe { std::slice::from_raw_parts(first, n as usize) });
            }
        }
    )+};
}

waits! { __kmpc_omp_wait_deps __kmpc_omp_taskwait_deps_51 }

fn waited(all: &[WaitedFor]) {
    for WaitedFor { addr, flags, .. } in all {
        let tag = match *flags {
            BY_IN => Tag::In,
            BY_INOUTSET => Tag::Set,
            _ => Tag::Out,
        };
        Dependence { addr: *addr, tag }.begin();
    }
}

around_next! { flush(0): __kmpc_flush; }

/// Records a flush, which is a fence between threads. Flushes that name variables or an order are
/// the same call.
fn flush(_: usize, next: impl FnOnce() -> usize) -> usize {
    with(|process| process.fence(MemoryOrder::BOTH));
    next()
}
