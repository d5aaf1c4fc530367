//! The checks of `SHMEM_CHECK` that use the table of the heap's blocks and their guards.
//!
//! Allocation is symmetric, so the own table describes the blocks of every PE.

use crate::call::{Call, fail, thread};
use crate::job::Job;
use rushmem_heap::Overwritten;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The number of blocks that were freed or moved.
static ENDED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last two blocks that this thread found, each as its start and end, and [`ENDED`] then.
    static LAST: Cell<[(usize, usize, u64); 2]> = const { Cell::new([(0, 0, 0); 2]) };
}

/// The last two blocks that were found by a thread that was alone, each as its start and end.
static KNOWN: [[AtomicUsize; 2]; 2] = [const { [const { AtomicUsize::new(0) }; 2] }; 2];

/// Records that a block was freed or moved, or that the allocator is a new one.
pub(crate) fn end() {
    ENDED.fetch_add(1, Relaxed);
    KNOWN.as_flattened().iter().for_each(|bound| bound.store(0, Relaxed));
}

/// Returns true if the calling thread is alone in the library, and `nbytes` bytes at `addr` lie in
/// one of the last two blocks that were found.
#[inline(always)]
pub(crate) fn are_known(addr: usize, nbytes: usize) -> bool {
    let is_within = |[start, end]: &[AtomicUsize; 2]| {
        let (start, end) = (start.load(Relaxed), end.load(Relaxed));
        addr >= start && addr < end && nbytes <= end - addr
    };
    thread::is_alone() && (is_within(&KNOWN[0]) || is_within(&KNOWN[1]))
}

/// Ends the job with an error unless `nbytes` bytes at `addr`, which is in the heap, lie in one
/// block. `argument` is the name that the address has in the call. If it is one of the last
/// two blocks, neither the allocator's lock nor its table is needed.
#[inline(always)]
pub(crate) fn require(call: Call, job: &Job, argument: &str, addr: usize, nbytes: usize) {
    let ended = ENDED.load(Relaxed);
    let is_within = |(start, end, at): (usize, usize, u64)| {
        at == ended && addr >= start && addr < end && nbytes <= end - addr
    };
    let [newer, older] = LAST.get();
    if is_within(newer) || is_within(older) {
        return;
    }
    find(call, job, argument, (addr, nbytes), (ended, newer));
}

/// Works as [`require`], of a block that is neither of the last two, the newer of which is given.
#[cold]
#[inline(never)]
fn find(
    call: Call,
    job: &Job,
    argument: &str,
    (addr, nbytes): (usize, usize),
    (ended, newer): (u64, (usize, usize, u64)),
) {
    let held = job.allocator().as_ref().map(|allocator| allocator.hold(addr, nbytes));
    match held {
        // Cause: the access leaves its block, or the block was freed; `SHMEM_CHECK=1` finds it.
        // Remedy: correct the count, or free the block later.
        Some(Err(why)) => {
            fail!(call, "argument {argument}: {nbytes} bytes at {addr:#x} {why}");
        }
        Some(Ok(block)) => {
            LAST.set([(block.start, block.end, ended), newer]);
            if thread::is_alone() {
                for (older, newer) in KNOWN[1].iter().zip(&KNOWN[0]) {
                    older.store(newer.load(Relaxed), Relaxed);
                }
                KNOWN[0][0].store(block.start, Relaxed);
                KNOWN[0][1].store(block.end, Relaxed);
            }
        }
        None => {}
    }
}

/// Ends the job with an error if a guard was overwritten, of some of the blocks in turn.
pub(crate) fn require_some_guards(call: Call, job: &Job) {
    require_guards(call, job, AT_ONCE);
}

/// With `SHMEM_CHECK`, ends the job with an error if a guard was overwritten.
pub(crate) fn check_all_guards(call: Call, job: &Job) {
    if job.settings.checks() {
        require_guards(call, job, usize::MAX);
    }
}

fn require_guards(call: Call, job: &Job, n: usize) {
    let overwritten = job.allocator().as_mut().and_then(|allocator| allocator.overwritten(n));
    refuse(call, overwritten);
}

/// Works as [`require_some_guards`], of the block that starts at an address.
pub(crate) fn require_guard(call: Call, job: &Job, start: *const u8) {
    let overwritten = job.allocator().as_ref().and_then(|it| it.overwritten_at(start));
    refuse(call, overwritten);
}

fn refuse(call: Call, overwritten: Option<Overwritten>) {
    if let Some(overwritten) = overwritten {
        // Cause: the program has written outside of a block, as in `block[n] = 0`; `SHMEM_CHECK=1`
        // finds it.
        fail!(
            call,
            "{overwritten}; run the program with SHMEM_CHECK=1 under valgrind, or compile it with \
             -fsanitize=address, to see where this is done"
        );
    }
}

/// The blocks whose guards a barrier reads.
const AT_ONCE: usize = 1024;
