//! Tasks of an OpenMP program that was compiled by GCC, with their dependences.
#![allow(unsafe_code)]

use super::Region;
use crate::next::{around_next, next, next_once};
use crate::synchronization::{Tag, acquire, object, release, with};
use crate::teams::{Dependence, TEAM, TeamMember, of_team, own};
use core::ffi::{c_int, c_long, c_uint, c_void};
use rushmem_race::process::active;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type GompTask = unsafe extern "C" fn(
    Region,
    *mut c_void,
    Option<CopyArguments>,
    c_long,
    c_long,
    bool,
    c_uint,
    *const usize,
    c_int,
    *mut c_void,
);
/// The last three arguments are the start and end of the loop, and the step.
type GompTaskLoop = unsafe extern "C" fn(
    Region,
    *mut c_void,
    Option<CopyArguments>,
    c_long,
    c_long,
    c_uint,
    usize,
    c_int,
    usize,
    usize,
    usize,
);
type CopyArguments = extern "C" fn(*mut c_void, *mut c_void);

// Flags of a task (gomp-constants.h).
const DEPENDS: c_uint = 1 << 3;
const IS_DEFERRED: c_uint = 1 << 10;
const HAS_NO_GROUP: c_uint = 1 << 11;
const HAS_REDUCTION: c_uint = 1 << 12;
const HAS_EVENT: c_uint = 1 << 13;

/// The code of a task, and the arguments with which the program creates it.
#[derive(Clone, Copy)]
struct TaskCode {
    region: Region,
    data: *mut c_void,
    copy: Option<CopyArguments>,
    nbytes: usize,
}

/// A task: its code, its copy of the arguments, and its dependences.
struct OpenMpTask {
    region: Region,
    arguments: Box<[u128]>,
    has_event: bool,
    is_deferred: bool,
    depends: Vec<Dependence>,
    team: TeamMember,
    number: usize,
}

impl OpenMpTask {
    /// Makes a task with its own copy of the arguments, and orders it after the accesses of the
    /// calling thread so far.
    fn new(code: TaskCode) -> OpenMpTask {
        static TASKS: AtomicUsize = AtomicUsize::new(1);
        let TaskCode {
            region,
            data,
            copy,
            nbytes,
        } = code;

        // Words of 16 bytes, the largest alignment of arguments.
        let mut arguments = vec![0u128; nbytes.div_ceil(16)].into_boxed_slice();
        let own: *mut c_void = arguments.as_mut_ptr().cast();
        match copy {
            Some(copy) => copy(own, data),
            // SAFETY: the arguments of the program's task, and a copy of that size.
            None => unsafe { std::ptr::copy_nonoverlapping(data.cast::<u8>(), own.cast(), nbytes) },
        }

        // Relaxed: the counter only gives each task another number.
        let number = TASKS.fetch_add(1, Relaxed);
        release(object(Tag::TaskStart, number));
        OpenMpTask {
            region,
            arguments,
            has_event: false,
            is_deferred: true,
            depends: Vec::new(),
            team: TEAM.get(),
            number,
        }
    }

    /// Runs the task, after `first` has replaced the first words of its arguments.
    fn run(mut self, first: &[usize]) {
        let own = self.arguments.as_mut_ptr().cast();
        // SAFETY: the arguments begin with these words, which libgomp would write.
        unsafe { std::ptr::copy_nonoverlapping(first.as_ptr(), own, first.len()) };

        let outer = TEAM.replace(self.team);
        let start = object(Tag::TaskStart, self.number);
        let thread = active().and_then(|process| process.enter_task(start));
        for dependence in &self.depends {
            dependence.begin();
        }

        (self.region)(self.arguments.as_mut_ptr().cast());

        for dependence in &self.depends {
            dependence.end();
        }
        if !self.is_deferred {
            release(object(Tag::TaskEnd, self.number));
        }
        with(|process| process.leave_task(thread, of_team(Tag::Tasks, self.team.team)));
        TEAM.set(outer);
    }
}

/// The arguments that libgomp copies for a task. If the task has an event, libgomp writes it to the
/// first word.
#[repr(C)]
struct Arguments {
    event: usize,
    task: *mut OpenMpTask,
}

extern "C" fn run_task(arguments: *mut c_void) {
    // SAFETY: libgomp passes a copy of the arguments that `GOMP_task` below has passed to it.
    let Arguments { event, task } = unsafe { arguments.cast::<Arguments>().read() };
    // SAFETY: a box of `GOMP_task`, which is taken once, since a task runs once.
    let task = *unsafe { Box::from_raw(task) };
    let first = if task.has_event { &[event][..] } else { &[] };
    task.run(first);
}

/// Interposes the function of this name.
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
    depends: *const usize,
    priority: c_int,
    event: *mut c_void,
) {
    static NEXT: OnceLock<GompTask> = OnceLock::new();
    // SAFETY: `GOMP_task` of libgomp has the type of `NEXT`.
    let next = *NEXT.get_or_init(|| unsafe { next(c"GOMP_task") });

    if active().is_none() || alignment as usize > align_of::<u128>() {
        // SAFETY: the caller keeps the contract of this function.
        return unsafe {
            next(
                region,
                data,
                copy,
                nbytes,
                alignment,
                is_deferred,
                flags,
                depends,
                priority,
                event,
            )
        };
    }

    let mut task = OpenMpTask::new(TaskCode {
        region,
        data,
        copy,
        nbytes: nbytes as usize,
    });
    task.has_event = flags & HAS_EVENT != 0;
    task.is_deferred = is_deferred;
    if flags & DEPENDS != 0 {
        // SAFETY: the flag says that the program passes an array of libgomp's form.
        task.depends = unsafe { dependences(depends) };
    }

    let number = task.number;
    let mut arguments = Arguments {
        event: 0,
        task: Box::into_raw(Box::new(task)),
    };
    // SAFETY: the caller keeps the contract of this function. In place of the program's task,
    // libgomp runs `run_task` with a copy of `arguments`.
    unsafe {
        next(
            run_task,
            (&raw mut arguments).cast(),
            None,
            size_of::<Arguments>() as c_long,
            align_of::<Arguments>() as c_long,
            is_deferred,
            flags,
            depends,
            priority,
            event,
        );
    }

    // libgomp has run the task before it returned.
    if !is_deferred {
        with(|process| process.acquire_last(object(Tag::TaskEnd, number)));
    }
}

/// The arguments that libgomp copies for each task of a loop. It writes the bounds of the task's
/// part of the loop to the first two words.
#[repr(C)]
struct LoopArguments {
    bounds: [usize; 2],
    reductions: usize,
    /// The code of the loop's tasks, from which `make_loop_task` makes `task`.
    code: *const TaskCode,
    task: *mut OpenMpTask,
}

/// Makes a task of a loop, when libgomp copies the arguments `of_loop` for it.
extern "C" fn make_loop_task(arguments: *mut c_void, of_loop: *mut c_void) {
    // SAFETY: a pointer to the arguments that `run_loop` below has passed to libgomp.
    let of_loop = unsafe { of_loop.cast::<LoopArguments>().read() };
    // SAFETY: a variable of `run_loop`, which has not returned yet.
    let task = OpenMpTask::new(unsafe { of_loop.code.read() });
    let task = LoopArguments {
        task: Box::into_raw(Box::new(task)),
        ..of_loop
    };
    // SAFETY: libgomp has allocated the size that `run_loop` has passed for the copy.
    unsafe { arguments.cast::<LoopArguments>().write(task) };
}

extern "C" fn run_loop_task(arguments: *mut c_void) {
    // SAFETY: `make_loop_task` has written the copy that libgomp passes.
    let LoopArguments { bounds, task, .. } = unsafe { arguments.cast::<LoopArguments>().read() };
    // SAFETY: a box of `make_loop_task`, which is taken once, since a task runs once.
    unsafe { Box::from_raw(task) }.run(&bounds);
}

/// Creates the tasks of a loop by `next`, which gets their code and arguments.
fn run_loop(
    code: TaskCode,
    alignment: c_long,
    flags: c_uint,
    next: impl FnOnce(Region, *mut c_void, Option<CopyArguments>, c_long, c_long),
) {
    if active().is_none() || alignment as usize > align_of::<u128>() {
        return next(
            code.region,
            code.data,
            code.copy,
            code.nbytes as c_long,
            alignment,
        );
    }

    let reductions = if flags & HAS_REDUCTION == 0 {
        0
    } else {
        // SAFETY: with this flag, the data have the word of the reductions behind the two bounds.
        unsafe { code.data.cast::<usize>().wrapping_add(2).read() }
    };
    let mut arguments = LoopArguments {
        bounds: [0; 2],
        reductions,
        code: &raw const code,
        task: std::ptr::null_mut(),
    };
    next(
        run_loop_task,
        (&raw mut arguments).cast(),
        Some(make_loop_task),
        size_of::<LoopArguments>() as c_long,
        align_of::<LoopArguments>() as c_long,
    );

    // Without deferral or with a group, libgomp has waited for the tasks before it returned.
    if flags & HAS_NO_GROUP == 0 || flags & IS_DEFERRED == 0 {
        acquire(own(Tag::Tasks));
    }
}

/// Defines functions that interpose those of their names, which make the tasks of a loop.
macro_rules! task_loops {
    ($($name:ident)+) => {$(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// As that one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            region: Region,
            data: *mut c_void,
            copy: Option<CopyArguments>,
            nbytes: c_long,
            alignment: c_long,
            flags: c_uint,
            n: usize,
            priority: c_int,
            start: usize,
            end: usize,
            step: usize,
        ) {
            static NEXT: OnceLock<GompTaskLoop> = OnceLock::new();
            const NAME: &str = concat!(stringify!($name), "\0");
            // SAFETY: libgomp's function of this name has the type of `NEXT`.
            let task_loop = unsafe { next_once(&NEXT, NAME) };
            let code = TaskCode { region, data, copy, nbytes: nbytes as usize };
            run_loop(code, alignment, flags, |region, data, copy, nbytes, alignment| {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe {
                    task_loop(
                        region, data, copy, nbytes, alignment, flags, n, priority, start, end, step,
                    )
                }
            });
        }
    )+};
}

task_loops! { GOMP_taskloop GOMP_taskloop_ull }

around_next! {
    wait_for_dependences(0): GOMP_taskwait_depend;
    fulfill_event(0): omp_fulfill_event omp_fulfill_event_;
}

fn wait_for_dependences(depends: usize, next: impl FnOnce() -> usize) -> usize {
    // SAFETY: the program passes an array of libgomp's form.
    let depends = unsafe { dependences(std::ptr::with_exposed_provenance(depends)) };
    let result = next();
    for dependence in depends {
        dependence.begin();
    }
    result
}

/// Releases the accesses before the event of a task: a task is complete only when its code has run
/// and its event is fulfilled.
fn fulfill_event(_: usize, next: impl FnOnce() -> usize) -> usize {
    release(own(Tag::Tasks));
    next()
}

/// Returns the dependences of a task from an array of libgomp, which has one of two forms:
///
/// - the number of addresses, the number of those with `out` or `inout`, and the addresses, those
///   with `out` or `inout` first;
/// - 0, the number of all entries, the numbers of those with `out` or `inout`, with `mutexinoutset`
///   and with `in`, the addresses in this order, and pointers to objects of `omp_depend_t`.
///
/// # Safety
/// The array has this form.
unsafe fn dependences(depends: *const usize) -> Vec<Dependence> {
    /// The numbers at the start of the array.
    struct Head {
        n: usize,
        n_out: usize,
        n_in: usize,
        /// The number of words before the addresses.
        nwords: usize,
    }

    // SAFETY: by contract the array has all words that its form has; only these are read below.
    let word = |array: *const usize, i: usize| unsafe { array.wrapping_add(i).read() };
    let n_plain = word(depends, 0);
    let head = if n_plain == 0 {
        Head {
            n: word(depends, 1),
            n_out: word(depends, 2) + word(depends, 3),
            n_in: word(depends, 4),
            nwords: 5,
        }
    } else {
        let n_out = word(depends, 1);
        Head {
            n: n_plain,
            n_out,
            n_in: n_plain - n_out,
            nwords: 2,
        }
    };

    let mut all = Vec::new();
    for i in 0..head.n {
        let addr = word(depends, head.nwords + i);
        let dependence = if i < head.n_out {
            Dependence {
                addr,
                tag: Tag::Out,
            }
        } else if i < head.n_out + head.n_in {
            Dependence { addr, tag: Tag::In }
        } else {
            let depend_object = std::ptr::with_exposed_provenance(addr);
            Dependence {
                addr: word(depend_object, 0),
                // The kinds of omp_depend_t (gomp-constants.h), from 1: in, out, inout,
                // mutexinoutset, inoutset.
                tag: match word(depend_object, 1) {
                    1 => Tag::In,
                    5 => Tag::Set,
                    _ => Tag::Out,
                },
            }
        };
        all.push(dependence);
    }
    all
}
