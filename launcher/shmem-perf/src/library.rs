//! A safe interface to the C half, which calls the OpenSHMEM library under test.
//!
//! The C half passes a table of functions, so the Rust half links to no OpenSHMEM library and needs
//! none of its types. The types here mirror those of `c/perf.h`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::AtomicU64;

/// The maximum number of bytes that a PE can publish at once: `CONTROL_BYTES` of `perf.h`.
pub const CONTROL_BYTES: usize = 256 * 1024;
/// The size of the static target in bytes: `STATIC_BYTES` of `perf.h`.
pub const STATIC_BYTES: u64 = 4 << 20;
/// The maximum number of contexts of a PE, and of threads: `MOST_LANES` of `perf.h`.
pub const MOST_LANES: u32 = 64;

/// One measurement at one size: `struct perf_task`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Index in [`Routines::operations`].
    pub operation: i32,
    pub peer: i32,
    /// The number of members of a collective; these are the first PEs.
    pub team_size: i32,
    pub threads: i32,
    /// The number of contexts that this PE creates; 0: it uses the default context.
    pub contexts: i32,
    /// 1 if the target is a static variable, 0 if it is on the symmetric heap.
    pub is_static: i32,
    /// 1 if the target PE computes meanwhile and calls no routine of the library.
    pub target_computes: i32,
    pub nbytes: u64,
    /// The number of operations that are issued before the benchmark waits for their completion.
    pub window: u64,
    /// Iterations of the loop of `perf_compute` between issue and completion.
    pub compute: u64,
    /// Bytes of memory through which the buffer advances from one operation to the next, so that it
    /// is not in the cache; 0: all operations use the same buffer.
    pub off_cache: u64,
}

/// The PEs that take part in an operation: `enum kind` of `perf.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// The PE that issues it.
    Alone,
    /// The PE that issues it and its peer, which answers.
    RoundTrip,
    /// The members of a team.
    Collective,
    /// A floor: the PE that issues it accesses memory of its peer by loads and stores.
    Plain,
    /// A floor: a round trip by loads and stores.
    PlainRoundTrip,
}

impl OperationKind {
    /// Returns the kind of a number of `enum kind`; `None` if the header has no such number.
    fn of_c(number: i32) -> Option<Self> {
        match number {
            0 => Some(Self::Alone),
            1 => Some(Self::RoundTrip),
            2 => Some(Self::Collective),
            3 => Some(Self::Plain),
            4 => Some(Self::PlainRoundTrip),
            _ => None,
        }
    }
}

/// An operation of the table.
#[derive(Clone, Debug)]
pub struct Operation {
    pub name: String,
    pub kind: OperationKind,
    /// The smallest size in bytes; 0 if the operation has no size.
    pub least: u64,
    /// The largest size in bytes; 0 if there is no limit, or no size.
    pub most: u64,
    /// True if the buffers hold a block for each member of the team.
    pub blocks_by_member: bool,
    /// True if a member may return before the others have entered, so that calls in a row overlap.
    pub is_rooted: bool,
    /// True if the operation can be started, a computation done, and the operation completed then.
    pub overlaps: bool,
    functions: Functions,
}

impl Operation {
    /// Returns the largest size in bytes for which there is room in the static target.
    pub fn most_static_bytes(&self) -> u64 {
        // Strided operations, whose names begin so, write every other word.
        if self.name.starts_with('i') {
            STATIC_BYTES / 2
        } else {
            STATIC_BYTES
        }
    }
}

#[cfg(test)]
impl Operation {
    /// Returns an operation that cannot be run.
    pub fn named(name: &str, kind: OperationKind, least: u64, most: u64) -> Self {
        unsafe extern "C" fn none(_: *const Task, _: u64, _: u64, _: *mut u64) {}
        Self {
            name: name.into(),
            kind,
            least,
            most,
            blocks_by_member: false,
            is_rooted: false,
            overlaps: false,
            functions: Functions {
                run: none,
                follow: None,
                end: None,
            },
        }
    }
}

type Run = unsafe extern "C" fn(*const Task, u64, u64, *mut u64);
type OnTask = unsafe extern "C" fn(*const Task);

#[derive(Clone, Copy, Debug)]
struct Functions {
    run: Run,
    follow: Option<OnTask>,
    end: Option<OnTask>,
}

#[repr(C)]
struct RawOperation {
    name: *const c_char,
    kind: i32,
    least: u32,
    most: u32,
    blocks_by_member: i32,
    is_rooted: i32,
    overlaps: i32,
    moves: i32,
    run: Option<Run>,
    follow: Option<OnTask>,
    end: Option<OnTask>,
}

/// `struct perf_library`.
#[repr(C)]
pub struct RawRoutines {
    init: unsafe extern "C" fn(i32) -> i64,
    thread_level: unsafe extern "C" fn() -> *const c_char,
    allocate: unsafe extern "C" fn(u64) -> i32,
    reserve: unsafe extern "C" fn(u64) -> *mut c_void,
    finalize: unsafe extern "C" fn(),
    exit_all: unsafe extern "C" fn(i32),
    my_pe: unsafe extern "C" fn() -> i32,
    n_pes: unsafe extern "C" fn() -> i32,
    name: unsafe extern "C" fn(*mut c_char),
    version: unsafe extern "C" fn(*mut i32, *mut i32),
    path: unsafe extern "C" fn() -> *const c_char,
    barrier: unsafe extern "C" fn(),
    post: unsafe extern "C" fn(*const u8, u64),
    read: unsafe extern "C" fn(i32, *mut u8, u64),
    maps: unsafe extern "C" fn(i32) -> i32,
    operation: unsafe extern "C" fn(i32, *mut RawOperation) -> i32,
    prepare: unsafe extern "C" fn(*const Task) -> i32,
    fill: unsafe extern "C" fn(*const Task),
    verify: unsafe extern "C" fn(*const Task, i32, i32) -> i64,
    compute: unsafe extern "C" fn(u64),
    read_clock: unsafe extern "C" fn(u64, *mut u64),
    bind: unsafe extern "C" fn(i32) -> i32,
}

/// A library before [`join`](Self::join), which initializes it.
pub struct Routines<'a> {
    raw: &'a RawRoutines,
    operations: Vec<Operation>,
}

/// A library that is initialized, so that this process is a PE of its job.
pub struct Joined<'a> {
    routines: Routines<'a>,
    /// Nanoseconds that `shmem_init` or `shmem_init_thread` took.
    pub init_ns: f64,
    /// The size of the buffers in bytes; 0 before [`allocate`](Self::allocate).
    nbytes: u64,
}

impl<'a> Routines<'a> {
    /// Wraps the C half's table of functions, and reads its table of operations.
    pub fn new(raw: &'a RawRoutines) -> Self {
        Self {
            raw,
            operations: (0..).map_while(|index| operation(raw, index)).collect(),
        }
    }

    /// Initializes the library, with `SHMEM_THREAD_MULTIPLE` if `several_threads`.
    ///
    /// # Errors
    /// One sentence if the library does not provide that thread level.
    pub fn join(self, several_threads: bool) -> Result<Joined<'a>, String> {
        // SAFETY: the library is initialized only once: `entry` makes one `Routines`, and this
        // consumes it.
        let lasted = unsafe { (self.raw.init)(several_threads.into()) };
        if lasted < 0 {
            let why = "the library gives no SHMEM_THREAD_MULTIPLE, which several threads and --thread-multiple need";
            return Err(why.into());
        }
        Ok(Joined {
            routines: self,
            init_ns: lasted as f64,
            nbytes: 0,
        })
    }
}

impl Joined<'_> {
    pub fn operations(&self) -> &[Operation] {
        &self.routines.operations
    }

    pub fn my_pe(&self) -> u32 {
        // SAFETY: the job is joined.
        unsafe { (self.routines.raw.my_pe)() }.unsigned_abs()
    }

    pub fn n_pes(&self) -> u32 {
        // SAFETY: the job is joined.
        unsafe { (self.routines.raw.n_pes)() }.unsigned_abs()
    }

    /// Allocates buffers for transfers of up to `nbytes`. All PEs call it, once.
    ///
    /// # Errors
    /// One sentence if the symmetric heap is too small.
    pub fn allocate(&mut self, nbytes: u64) -> Result<(), String> {
        assert_eq!(self.nbytes, 0, "once");
        // SAFETY: the job is joined.
        if unsafe { (self.routines.raw.allocate)(nbytes) } != 0 {
            return Err(format!(
                "the symmetric heap has no room for transfers of {nbytes} bytes: a larger heap (SHMEM_SYMMETRIC_SIZE) \
                 or smaller sizes are needed"
            ));
        }
        self.nbytes = nbytes;
        Ok(())
    }

    /// Allocates `n_words` zeroed words of symmetric memory for communication without the library.
    /// Returns `None` if the symmetric heap is too small. All PEs call it.
    pub fn reserve(&self, n_words: usize) -> Option<&'static [AtomicU64]> {
        // SAFETY: the job is joined.
        let memory = unsafe { (self.routines.raw.reserve)(8 * n_words as u64) };
        if memory.is_null() {
            return None;
        }
        // SAFETY: `memory` points to `n_words` aligned words of zeros that are never freed, and
        // every access to them is atomic or by a network.
        Some(unsafe { std::slice::from_raw_parts(memory.cast(), n_words) })
    }

    /// Finalizes the library.
    pub fn finalize(self) {
        // SAFETY: the job is joined, and nothing can be called after this, which takes the library.
        unsafe { (self.routines.raw.finalize)() }
    }

    /// Ends the job with an exit status, by `shmem_global_exit`.
    pub fn exit_all(&self, status: i32) {
        // SAFETY: the job is joined.
        unsafe { (self.routines.raw.exit_all)(status) }
    }

    pub fn name(&self) -> String {
        let mut text = [0u8; 256];
        // SAFETY: C writes at most 256 bytes, the last of them 0.
        unsafe { (self.routines.raw.name)(text.as_mut_ptr().cast()) };
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..end]).into_owned()
    }

    pub fn standard(&self) -> String {
        let mut major = 0;
        let mut minor = 0;
        // SAFETY: C writes the two numbers.
        unsafe { (self.routines.raw.version)(&raw mut major, &raw mut minor) };
        format!("{major}.{minor}")
    }

    /// Returns the thread level that the library provides, such as `multiple`.
    pub fn thread_level(&self) -> String {
        // SAFETY: the job is joined.
        let text = unsafe { (self.routines.raw.thread_level)() };
        // SAFETY: `text` points to a string literal of C.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }

    /// Returns the path between PEs, a colon, and the reason for its choice; `None` if the library
    /// has no `shmemx_transport`.
    pub fn path(&self) -> Option<String> {
        // SAFETY: the job is joined.
        let text = unsafe { (self.routines.raw.path)() };
        if text.is_null() {
            return None;
        }
        // SAFETY: `text` points to a string that is valid until the end of the process.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }

    /// Calls `shmem_barrier_all`.
    pub fn barrier(&self) {
        // SAFETY: the job is joined.
        unsafe { (self.routines.raw.barrier)() }
    }

    /// Publishes bytes in symmetric memory, where other PEs can [`read`](Self::read) them after a
    /// barrier.
    pub fn post(&self, bytes: &[u8]) {
        assert!(
            bytes.len() <= CONTROL_BYTES && self.nbytes > 0,
            "allocated, and room for it"
        );
        // SAFETY: the area is allocated and has room.
        unsafe { (self.routines.raw.post)(bytes.as_ptr(), bytes.len() as u64) }
    }

    /// Returns the first `nbytes` bytes of the area in which `pe` publishes.
    pub fn read(&self, pe: u32, nbytes: usize) -> Vec<u8> {
        assert!(
            nbytes <= CONTROL_BYTES && self.nbytes > 0 && pe < self.n_pes(),
            "within it"
        );
        let mut bytes = vec![0; nbytes];
        // SAFETY: the area of that PE is allocated and at least as long; `bytes` has room.
        unsafe { (self.routines.raw.read)(pe as i32, bytes.as_mut_ptr(), nbytes as u64) };
        bytes
    }

    /// Returns true if this PE can access the symmetric heap of `pe` by loads and stores.
    pub fn maps(&self, pe: u32) -> bool {
        assert!(
            self.nbytes > 0 && pe < self.n_pes(),
            "allocated, and there is such a PE"
        );
        // SAFETY: the job is joined and targets are allocated.
        unsafe { (self.routines.raw.maps)(pe as i32) != 0 }
    }

    /// Creates the contexts and the team of a task in place of the ones before. All PEs call it.
    ///
    /// # Errors
    /// One sentence if the library cannot create them.
    pub fn prepare(&self, task: &Task) -> Result<(), String> {
        self.check(task);
        // SAFETY: `check` has verified that the task is in range.
        match unsafe { (self.routines.raw.prepare)(task) } {
            0 => Ok(()),
            _ => Err(format!(
                "the library makes no {} contexts or no team of {}",
                task.contexts, task.team_size
            )),
        }
    }

    /// Runs a prepared task: `samples` times `batch` windows. Returns the nanoseconds of each
    /// sample: first those of the first thread, then those of the second one, and so on.
    pub fn run(&self, task: &Task, samples: u64, batch: u64) -> Vec<u64> {
        self.check(task);
        let mut times = vec![0; (samples * task.threads as u64) as usize];
        let run = self.operations()[task.operation as usize].functions.run;
        // SAFETY: `check` has verified that the task is in range, and there is room for the times
        // of all threads.
        unsafe { run(task, samples, batch, times.as_mut_ptr()) };
        times
    }

    /// Performs the peer's part of a task: answers round trips, or computes if the task says so,
    /// until the PE that issues calls [`end`](Self::end). Returns at once for other tasks.
    pub fn follow(&self, task: &Task) {
        self.check(task);
        if let Some(follow) = self.operations()[task.operation as usize].functions.follow {
            // SAFETY: `check` has verified that the task is in range.
            unsafe { follow(task) }
        }
    }

    /// Makes [`follow`](Self::follow) return on the peer, if it has not returned at once.
    pub fn end(&self, task: &Task) {
        self.check(task);
        if let Some(end) = self.operations()[task.operation as usize].functions.end {
            // SAFETY: `check` has verified that the task is in range.
            unsafe { end(task) }
        }
    }

    /// Fills the buffers of a task with the values that [`verify`](Self::verify) expects at its
    /// start.
    pub fn fill(&self, task: &Task) {
        self.check(task);
        // SAFETY: `check` has verified that the task is in range.
        unsafe { (self.routines.raw.fill)(task) }
    }

    /// Checks the buffers of a task on this PE, which issues, receives, or both. Returns the offset
    /// in bytes of the first wrong word; `None` if all are right, or not checked, as what several
    /// threads fetch.
    pub fn verify(&self, task: &Task, issues: bool, receives: bool) -> Option<u64> {
        self.check(task);
        // SAFETY: `check` has verified that the task is in range.
        let wrong = unsafe { (self.routines.raw.verify)(task, issues.into(), receives.into()) };
        u64::try_from(wrong).ok()
    }

    pub fn compute(&self, turns: u64) {
        // SAFETY: the function only runs an empty loop.
        unsafe { (self.routines.raw.compute)(turns) }
    }

    /// Reads the clock `n` times in a row.
    pub fn read_clock(&self, n: usize) -> Vec<u64> {
        let mut readings = vec![0; n];
        // SAFETY: there is room for all readings.
        unsafe { (self.routines.raw.read_clock)(n as u64, readings.as_mut_ptr()) };
        readings
    }

    /// Binds this thread to a CPU. Returns false if the kernel refuses.
    pub fn bind(&self, cpu: u32) -> bool {
        // SAFETY: any number is allowed.
        unsafe { (self.routines.raw.bind)(cpu as i32) == 0 }
    }

    /// Panics unless a task is for this job and stays within the allocated memory.
    fn check(&self, task: &Task) {
        let operation = &self.operations()[task.operation as usize];

        let n = self.n_pes();
        assert!((0..n as i32).contains(&task.peer), "there is such a PE");
        assert!(
            (1..=n as i32).contains(&task.team_size),
            "a team of PEs of the job"
        );
        assert!((1..=MOST_LANES as i32).contains(&task.threads), "threads");
        assert!((0..=MOST_LANES as i32).contains(&task.contexts), "contexts");

        let blocks = if operation.blocks_by_member {
            task.team_size as u64
        } else {
            1
        };
        let most = task.off_cache.max(task.nbytes * blocks);
        assert!(most <= self.nbytes, "room in the targets");

        let is_small = task.nbytes <= operation.most_static_bytes() && task.off_cache == 0;
        assert!(task.is_static == 0 || is_small, "room in the static target");

        let least_room = 128 * MOST_LANES as u64;
        assert!(
            self.nbytes >= least_room,
            "each thread has lines of its own"
        );
    }
}

/// Reads an entry of the C half's table of operations; `None` after the last one.
///
/// # Panics
/// If the entry is not one that `perf.h` describes: both halves are built together, so one of them
/// is wrong.
fn operation(raw: &RawRoutines, index: i32) -> Option<Operation> {
    let mut found = RawOperation {
        name: std::ptr::null(),
        kind: 0,
        least: 0,
        most: 0,
        blocks_by_member: 0,
        is_rooted: 0,
        overlaps: 0,
        moves: 0,
        run: None,
        follow: None,
        end: None,
    };
    // SAFETY: C fills in the operation, or returns -1 if there is none of this index.
    if unsafe { (raw.operation)(index, &raw mut found) } != 0 {
        return None;
    }

    // SAFETY: the name of an entry is a string literal of C.
    let name = unsafe { CStr::from_ptr(found.name) };
    let name = name.to_string_lossy().into_owned();
    let kind = OperationKind::of_c(found.kind);
    let Some((kind, run)) = kind.zip(found.run) else {
        panic!("{name} has kind {}, and run is {:?}", found.kind, found.run);
    };

    Some(Operation {
        name,
        kind,
        least: found.least.into(),
        most: found.most.into(),
        blocks_by_member: found.blocks_by_member != 0,
        is_rooted: found.is_rooted != 0,
        overlaps: found.overlaps != 0,
        functions: Functions {
            run,
            follow: found.follow,
            end: found.end,
        },
    })
}
