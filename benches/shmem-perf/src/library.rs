//! The C half: the functions that call the library that is measured, as safe Rust.
//!
//! C gives a table of functions, so this half links to no library and knows none of its types. The
//! types here are those of `c/perf.h`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::AtomicU64;

/// The maximum number of bytes that a PE can publish at once: `CONTROL_BYTES`.
pub const CONTROL_BYTES: usize = 256 * 1024;
/// Bytes of the static target: `STATIC_BYTES`.
pub const STATIC_BYTES: u64 = 4 << 20;
/// Contexts or threads of a PE: `MOST_LANES`.
pub const MOST_LANES: u32 = 64;

/// One measurement at one size: `struct perf_task`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Index in [`Routines::operations`].
    pub operation: i32,
    pub peer: i32,
    /// Members of a collective: the first PEs.
    pub team_size: i32,
    pub threads: i32,
    /// Contexts of this PE; 0 is the default context.
    pub contexts: i32,
    /// 1 where the target is a static variable.
    pub is_static: i32,
    /// 1 where the target's PE computes meanwhile and calls nothing.
    pub target_computes: i32,
    pub nbytes: u64,
    /// Operations before each completion.
    pub window: u64,
    /// Turns of computing between issue and completion.
    pub compute: u64,
    /// Bytes through which buffers move, so that none is in the cache; 0: they stay where they are.
    pub off_cache: u64,
}

/// The PEs that take part in an operation: `enum kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// The PE that issues it.
    Alone,
    /// That PE and its peer, which answers.
    RoundTrip,
    /// The members of a team.
    Collective,
    /// The PE that issues it, with loads and stores on memory of its peer.
    Plain,
    /// Two PEs by loads and stores.
    PlainRoundTrip,
}

/// An operation of the table.
#[derive(Clone, Debug)]
pub struct Operation {
    pub name: String,
    /// The PEs that take part.
    pub kind: OperationKind,
    /// The smallest size; 0 where it has none.
    pub least: u64,
    /// The largest size; 0 where there is no limit.
    pub most: u64,
    /// True if its buffers hold a block for each member.
    pub blocks_by_member: bool,
    /// True if calls in a row overlap.
    pub is_rooted: bool,
    /// True if it can compute between issue and completion.
    pub overlaps: bool,
    functions: Functions,
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
            functions: Functions { run: none, follow: None, end: None },
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

/// A library before its job is joined.
pub struct Routines<'a> {
    raw: &'a RawRoutines,
    operations: Vec<Operation>,
}

/// A library whose job this process has joined, with targets allocated.
pub struct Joined<'a> {
    routines: Routines<'a>,
    /// Nanoseconds that joining took.
    pub init_ns: f64,
    nbytes: u64,
}

impl<'a> Routines<'a> {
    /// Returns the library that a table of C calls.
    pub fn new(raw: &'a RawRoutines) -> Self {
        Self { raw, operations: (0..).map_while(|index| operation(raw, index)).collect() }
    }

    /// Joins the job.
    ///
    /// # Errors
    /// One sentence if the library does not let several threads call it.
    pub fn join(self, several_threads: bool) -> Result<Joined<'a>, String> {
        // SAFETY: a library is joined once, since this takes it.
        let lasted = unsafe { (self.raw.init)(several_threads.into()) };
        if lasted < 0 {
            let why = "the library gives no SHMEM_THREAD_MULTIPLE, which several threads and --thread-multiple need";
            return Err(why.into());
        }
        Ok(Joined { routines: self, init_ns: lasted as f64, nbytes: 0 })
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

    /// Makes room for transfers of `nbytes`. All PEs call it, once.
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

    /// Allocates symmetric memory of zeros for communication beside the library. Collective.
    pub fn reserve(&self, n_words: usize) -> Option<&'static [AtomicU64]> {
        // SAFETY: the job is joined.
        let memory = unsafe { (self.routines.raw.reserve)(8 * n_words as u64) };
        // SAFETY: `n_words` aligned words of zeros that are never freed; every access to them is
        // atomic or by a network.
        (!memory.is_null()).then(|| unsafe { std::slice::from_raw_parts(memory.cast(), n_words) })
    }

    /// Leaves the job.
    pub fn finalize(self) {
        // SAFETY: the job is joined, and nothing can be called after this, which takes the library.
        unsafe { (self.routines.raw.finalize)() }
    }

    /// Ends all PEs.
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
        let (mut major, mut minor) = (0, 0);
        // SAFETY: C writes the two numbers.
        unsafe { (self.routines.raw.version)(&raw mut major, &raw mut minor) };
        format!("{major}.{minor}")
    }

    /// Returns the thread level that the library provides.
    pub fn thread_level(&self) -> String {
        // SAFETY: the job is joined.
        let text = unsafe { (self.routines.raw.thread_level)() };
        // SAFETY: a literal of C.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// Returns how PEs reach each other, a colon, and the reason, if the library says it.
    pub fn path(&self) -> Option<String> {
        // SAFETY: the job is joined.
        let text = unsafe { (self.routines.raw.path)() };
        // SAFETY: it is null or a string that stays.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// Waits for all PEs, and completes what they have issued.
    pub fn barrier(&self) {
        // SAFETY: the job is joined.
        unsafe { (self.routines.raw.barrier)() }
    }

    /// Copies bytes to symmetric memory, where other PEs can read them after a barrier.
    pub fn post(&self, bytes: &[u8]) {
        assert!(bytes.len() <= CONTROL_BYTES && self.nbytes > 0, "allocated, and room for it");
        // SAFETY: the area is allocated and has room.
        unsafe { (self.routines.raw.post)(bytes.as_ptr(), bytes.len() as u64) }
    }

    /// Returns the bytes that a PE has published.
    pub fn read(&self, pe: u32, nbytes: usize) -> Vec<u8> {
        assert!(nbytes <= CONTROL_BYTES && self.nbytes > 0 && pe < self.n_pes(), "within it");
        let mut bytes = vec![0; nbytes];
        // SAFETY: the area of that PE is allocated and at least as long; `bytes` has room.
        unsafe { (self.routines.raw.read)(pe as i32, bytes.as_mut_ptr(), nbytes as u64) };
        bytes
    }

    /// Returns true if loads and stores reach the memory of a PE.
    pub fn maps(&self, pe: u32) -> bool {
        assert!(self.nbytes > 0 && pe < self.n_pes(), "allocated, and there is such a PE");
        // SAFETY: the job is joined and targets are allocated.
        unsafe { (self.routines.raw.maps)(pe as i32) != 0 }
    }

    /// Makes the contexts and the team of a task. All PEs call it.
    ///
    /// # Errors
    /// One sentence if the library refuses.
    pub fn prepare(&self, task: &Task) -> Result<(), String> {
        self.check(task);
        // SAFETY: all that a task says is in range.
        match unsafe { (self.routines.raw.prepare)(task) } {
            0 => Ok(()),
            _ => Err(format!(
                "the library makes no {} contexts or no team of {}",
                task.contexts, task.team_size
            )),
        }
    }

    /// Runs `samples` times `batch` windows of a prepared task. Returns the nanoseconds of each
    /// sample: first those of the first thread, then those of the second one, and so on.
    pub fn run(&self, task: &Task, samples: u64, batch: u64) -> Vec<u64> {
        self.check(task);
        let mut times = vec![0; (samples * task.threads as u64) as usize];
        let run = self.operations()[task.operation as usize].functions.run;
        // SAFETY: all that a task says is in range, and there is room for the times of all threads.
        unsafe { run(task, samples, batch, times.as_mut_ptr()) };
        times
    }

    /// Answers the PE that issues until that PE calls [`end`](Self::end).
    pub fn follow(&self, task: &Task) {
        self.check(task);
        if let Some(follow) = self.operations()[task.operation as usize].functions.follow {
            // SAFETY: all that a task says is in range.
            unsafe { follow(task) }
        }
    }

    /// Makes [`follow`](Self::follow) of the peer return.
    pub fn end(&self, task: &Task) {
        self.check(task);
        if let Some(end) = self.operations()[task.operation as usize].functions.end {
            // SAFETY: all that a task says is in range.
            unsafe { end(task) }
        }
    }

    /// Fills the buffers of a task before it is measured. All PEs call it.
    pub fn fill(&self, task: &Task) {
        self.check(task);
        // SAFETY: all that a task says is in range.
        unsafe { (self.routines.raw.fill)(task) }
    }

    /// Returns the first wrong byte of the buffers of a task at this PE, which issues, receives, or
    /// both; `None` if all data was moved.
    pub fn verify(&self, task: &Task, issues: bool, receives: bool) -> Option<u64> {
        self.check(task);
        // SAFETY: all that a task says is in range.
        let wrong = unsafe { (self.routines.raw.verify)(task, issues.into(), receives.into()) };
        u64::try_from(wrong).ok()
    }

    pub fn compute(&self, turns: u64) {
        // SAFETY: it only counts.
        unsafe { (self.routines.raw.compute)(turns) }
    }

    /// Reads the clock `n` times in a row.
    pub fn read_clock(&self, n: usize) -> Vec<u64> {
        let mut readings = vec![0; n];
        // SAFETY: there is room for all readings.
        unsafe { (self.routines.raw.read_clock)(n as u64, readings.as_mut_ptr()) };
        readings
    }

    /// Binds this thread to the CPU with this index among the CPUs that it may use. Returns false if
    /// there are fewer CPUs.
    pub fn bind(&self, index: u32) -> bool {
        // SAFETY: any index is allowed.
        unsafe { (self.routines.raw.bind)(index as i32) == 0 }
    }

    /// Checks that a task stays within the allocated memory.
    fn check(&self, task: &Task) {
        let operation = &self.operations()[task.operation as usize];
        let n = self.n_pes();
        assert!((0..n as i32).contains(&task.peer), "there is such a PE");
        assert!((1..=n as i32).contains(&task.team_size), "a team of PEs of the job");
        assert!((1..=MOST_LANES as i32).contains(&task.threads), "threads");
        assert!((0..=MOST_LANES as i32).contains(&task.contexts), "contexts");
        let blocks = if operation.blocks_by_member { task.team_size as u64 } else { 1 };
        let most = task.off_cache.max(task.nbytes * blocks);
        assert!(most <= self.nbytes, "room in the targets");
        let room = if operation.name.starts_with('i') { STATIC_BYTES / 2 } else { STATIC_BYTES };
        let is_small = task.nbytes <= room && task.off_cache == 0;
        assert!(task.is_static == 0 || is_small, "room in the static target");
        let least_room = 128 * MOST_LANES as u64;
        assert!(self.nbytes >= least_room, "each thread has lines of its own");
    }
}

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
    // SAFETY: C fills it in, or says that there is none.
    if unsafe { (raw.operation)(index, &raw mut found) } != 0 {
        return None;
    }
    // SAFETY: names are literals of C.
    let name = unsafe { CStr::from_ptr(found.name) };
    Some(Operation {
        name: name.to_string_lossy().into_owned(),
        kind: match found.kind {
            0 => OperationKind::Alone,
            1 => OperationKind::RoundTrip,
            2 => OperationKind::Collective,
            3 => OperationKind::Plain,
            _ => OperationKind::PlainRoundTrip,
        },
        least: found.least.into(),
        most: found.most.into(),
        blocks_by_member: found.blocks_by_member != 0,
        is_rooted: found.is_rooted != 0,
        overlaps: found.overlaps != 0,
        functions: Functions { run: found.run?, follow: found.follow, end: found.end },
    })
}
