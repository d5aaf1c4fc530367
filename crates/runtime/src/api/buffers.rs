//! Registered buffers (`shmemx_buffer_register`): the calls, in which all PEs agree. The state of a
//! PE is in [`crate::buffers`].
#![allow(unsafe_code)]

use crate::api::heap::{AllocationRequest, allocate_block, free_block};
use crate::buffers::refusal::Refusal;
use crate::buffers::{BufferState, Change, Move};
use crate::coll::collectives::heap_barrier;
use crate::coll::entry::CollectiveEntry;
use crate::coll::heap_change::HeapChange;
use crate::own_pe::{Caller, OwnPe};
use core::ffi::{c_int, c_long, c_void};
use rushmem_communication::observers::writes;
use rushmem_heap::pages::PAGE;
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::extension_constants::SHMEMX_BUFFER_PINNED;
use rushmem_pe::job::{Job, mpi};
use rushmem_pe::memory::{checks, symmetric_location};
use rushmem_transport::Pe;
use rustix::io::Errno;
use std::ptr::null_mut;

/// The alignment that an address must have on all PEs alike: that of the largest C type.
const ALIGNMENT: usize = 16;

/// The remedy where the kernel refuses memory or a descriptor.
const LIMITS: &str =
    "raise the limits of memory, mappings and open files (ulimit -v, vm.max_map_count, ulimit -n)";

/// `shmemx_buffer_register`: makes `nbytes` bytes of the program at `addr` symmetric. All PEs pass
/// the same size; the addresses may differ. Returns `addr`, or with `SHMEMX_BUFFER_PINNED` the
/// address of the bytes in the heap if that is the same object on all PEs; null for 0 bytes, and on
/// all PEs if the memory of one of them cannot be registered.
///
/// # Safety
/// During the call no thread uses the bytes, and no PE uses a buffer that is connected with them:
/// one that has a page in common with them, or with such a buffer in turn.
pub unsafe fn register(
    caller: impl Caller,
    addr: *mut c_void,
    nbytes: usize,
    options: c_long,
) -> *mut c_void {
    let (pe, call) = caller.enter();
    let job = pe.job();
    if nbytes == 0 {
        return null_mut();
    }
    mpi::warn_if_awaited(job);

    let begin = addr.expose_provenance();
    let change = HeapChange::Register(nbytes as u64);
    let arguments = [("nbytes", nbytes as u64), ("options", options as u64)];
    heap_barrier(caller, change, &arguments);

    let mut state = pe.buffers.state();
    state.forget_unmapped(call, job);
    // The end of the last page is an address, too.
    let end = begin.checked_add(nbytes);
    let end = end.filter(|end| *end <= isize::MAX as usize);
    let plan = if options & !SHMEMX_BUFFER_PINNED != 0 {
        Err(Refusal::Option)
    } else if let Some(end) = end {
        state.plan(job, &pe.links.lock_turns, &(begin..end))
    } else {
        Err(Refusal::Inaccessible)
    };

    let is_pinned = options & SHMEMX_BUFFER_PINNED != 0;
    let of_all = gather_requests(pe, call, &request(&plan, begin, nbytes, is_pinned));
    let (Ok(plan), None) = (plan, first_refusal(&of_all)) else {
        warn_of_refusal(call, job, &of_all);
        return null_mut();
    };
    require_same(call, nbytes, is_pinned, &of_all);

    // The buffer is at the same page of the block on all PEs that need one.
    let before = of_all.iter().map(|other| other.before).max().unwrap_or(0);
    let after = of_all.iter().map(|other| other.after).max().unwrap_or(0);
    let n_users = of_all.iter().filter(|other| other.needs_block).count();
    let mut block = None;
    if n_users > 0 {
        block = allocate_pages(call, pe, (before + after) as usize);
        if block.is_none() {
            return null_mut();
        }
    }

    let in_block = before * PAGE as u64 + (begin % PAGE) as u64;
    // SAFETY: the caller promises that no thread uses the bytes and no PE a buffer that is
    // connected with them, as those in the merged runs are. The block was just allocated for this,
    // with room for the pages before and after the first page of the buffer on every PE.
    let done = unsafe {
        pe.buffers
            .carry_out(job, &mut state, &plan, block.unwrap_or(0), in_block)
    };
    let change_of_all = gather_changes(pe, call, done.as_ref().ok());
    let Ok(change_of_all) = change_of_all else {
        let failed = change_of_all.unwrap_err();
        if done.is_ok() {
            pe.buffers.take_back(job, &mut state, &plan);
        }
        if let Some(block) = block {
            free_block(call, pe.links, at_offset(job, block));
        }
        if job.me == failed {
            let why = done.expect_err("this PE has failed");
            let remedy = match why {
                Errno::NOMEM | Errno::AGAIN | Errno::MFILE => LIMITS,
                _ => "begin and end it at pages, or register it before threads start",
            };
            warning!(each: "PE {failed}: {call}: the kernel refuses to replace the pages of the buffer: {why}; {remedy}");
        }
        return null_mut();
    };

    let new = Some((begin..begin + nbytes, is_pinned));
    let unused = state.apply(&change_of_all, new, block.map(|block| (block, n_users)));
    settle(pe, call, &mut state, unused);
    let pinned = state.equal_offset(begin).filter(|_| is_pinned);
    drop(state);
    if writes::are_wanted(&job.settings) {
        symmetric_location::record_buffer(begin);
    }

    heap_barrier(caller, change, &arguments);
    match pinned {
        Some(offset) => at_offset(job, offset),
        None => addr,
    }
}

/// Warns once of the PE whose memory cannot be registered.
fn warn_of_refusal(call: Call, job: &Job, of_all: &[Request]) {
    if let Some((of, why)) = first_refusal(of_all)
        && job.me == Pe(0)
    {
        let subject = match why {
            Refusal::Option => "argument options: PE",
            _ => "argument addr: the memory of PE",
        };
        warning!(each: "{call}: {subject} {of} {}", why.words());
    }
}

/// Ends the job with an error unless all PEs register as many bytes, with the same options.
fn require_same(call: Call, nbytes: usize, is_pinned: bool, of_all: &[Request]) {
    let options = |is_pinned| c_long::from(is_pinned) * SHMEMX_BUFFER_PINNED;
    for (of, other) in of_all.iter().enumerate() {
        if other.nbytes != nbytes as u64 {
            fail!(
                call,
                "argument nbytes is {nbytes}, but on PE {of} it is {}; pass the same size on all PEs",
                other.nbytes
            );
        }
        if other.is_pinned != is_pinned {
            fail!(
                call,
                "argument options is {}, but on PE {of} it is {}; pass the same options on all PEs",
                options(is_pinned),
                options(other.is_pinned)
            );
        }
    }
}

/// Allocates a block of whole pages, and returns its offset in the heap; `None`, with a warning, if
/// there is no room, on all PEs.
fn allocate_pages(call: Call, pe: &'static OwnPe, n_pages: usize) -> Option<u64> {
    let job = pe.job();
    let nbytes = n_pages * PAGE;
    let request = AllocationRequest {
        nbytes,
        alignment: PAGE,
        for_amos: false,
        reclaims: true,
    };

    let start = allocate_block(call, pe, request);
    if start.is_none() && job.me == Pe(0) {
        warning!(
            each: "{call}: no room in the symmetric heap for the {nbytes} bytes of the buffer's pages; set a larger \
             SHMEM_SYMMETRIC_SIZE"
        );
    }
    Some((start?.addr() - job.memory.heap().addr()) as u64)
}

/// `shmemx_buffer_unregister`: ends the registration of the buffer at `addr`, the program's
/// address. The memory keeps its contents, and is private again unless another buffer is connected
/// with it. Returns 0; 1 if no buffer is registered there.
///
/// # Safety
/// No PE uses the buffer any more, and no thread uses its bytes during the call.
pub unsafe fn unregister(caller: impl Caller, addr: *mut c_void) -> c_int {
    let (pe, call) = caller.enter();
    let job = pe.job();
    heap_barrier(caller, HeapChange::Register(0), &[]);

    let mut state = pe.buffers.state();
    state.forget_unmapped(call, job);
    let number = state.number_at(addr.addr());
    let word = number.map_or(u64::MAX, |number| number as u64);
    let of_all = gather(pe, call, &[word]);
    if let Some(of) = of_all.iter().position(|other| other[0] != word) {
        fail!(
            call,
            "argument addr: this PE passes {}, but PE {of} {}; all PEs must end the registration of the same buffer",
            name(word),
            name(of_all[of][0])
        );
    }
    let Some(number) = number else { return 1 };
    if job.settings.checks() {
        require_no_lock(call, pe, addr);
    }

    // SAFETY: the caller promises that no PE uses the buffer and no thread its bytes.
    let in_heap = match unsafe { state.remove(job, number) } {
        Ok(in_heap) => in_heap,
        Err(why) => fail!(
            call,
            "argument addr: the kernel refuses private pages for the buffer at {addr:p}: {why}; {LIMITS}"
        ),
    };
    symmetric_location::forget_buffer(addr.addr());
    let change = state.change();
    let Ok(of_all) = gather_changes(pe, call, Some(&change)) else {
        unreachable!("every PE has a change");
    };
    let unused = state.apply(&of_all, None, None);
    settle(pe, call, &mut state, unused);

    match in_heap {
        Some(in_heap) => {
            pe.links.lock_turns.forget(in_heap);
            0
        }
        None => 1,
    }
}

/// Ends the job with an error if this PE holds a lock in the buffer at `addr`.
fn require_no_lock(call: Call, pe: &OwnPe, addr: *const c_void) {
    if let Some(buffer) = pe.job().map.buffers().find(addr.addr(), 1) {
        let in_heap = buffer.in_heap..buffer.in_heap + buffer.nbytes;
        if let Some(lock) = pe.links.lock_turns.held_in(in_heap) {
            fail!(
                call,
                "argument addr: this PE holds the lock at {:#x}, which is in the buffer; call shmem_clear_lock before \
                 the registration ends",
                buffer.start + (lock - buffer.in_heap)
            );
        }
    }
}

fn name(number: u64) -> String {
    match number {
        u64::MAX => "the address of no registered buffer".to_owned(),
        number => format!("buffer {number}"),
    }
}

/// Returns the address at an offset of the heap.
fn at_offset(job: &Job, offset: u64) -> *mut c_void {
    job.memory.heap().wrapping_add(offset as usize).cast()
}

/// Frees the blocks that no PE uses any more, and shows what is registered now.
fn settle(pe: &'static OwnPe, call: Call, state: &mut BufferState, unused: Vec<u64>) {
    let job = pe.job();
    pe.buffers.publish(job, state);
    for block in unused {
        free_block(call, pe.links, at_offset(job, block));
    }
    checks::forget_blocks();
}

/// What a PE wants to register.
struct Request {
    refusal: Option<Refusal>,
    alignment: u64,
    needs_block: bool,
    is_pinned: bool,
    nbytes: u64,
    /// The number of pages of the new run that are before the buffer; 0 if none is needed.
    before: u64,
    /// The number of its other pages.
    after: u64,
}

fn request(
    plan: &Result<crate::buffers::Plan, Refusal>,
    begin: usize,
    nbytes: usize,
    is_pinned: bool,
) -> Request {
    let [before, after] = plan.as_ref().map_or([0, 0], |plan| plan.pages());
    Request {
        refusal: plan.as_ref().err().copied(),
        alignment: (begin % ALIGNMENT) as u64,
        needs_block: plan.as_ref().is_ok_and(|plan| plan.needs_block()),
        is_pinned,
        nbytes: nbytes as u64,
        before,
        after,
    }
}

fn gather_requests(pe: &'static OwnPe, call: Call, own: &Request) -> Vec<Request> {
    let refusal = own.refusal.map_or(0, |refusal| refusal as u64);
    let flags = u64::from(own.is_pinned) << 1 | u64::from(own.needs_block);
    let first = refusal << 8 | own.alignment << 2 | flags;
    let words = [first, own.nbytes, own.before, own.after];
    let of_all = gather(pe, call, &words).into_iter().map(|words| Request {
        refusal: Refusal::of_number(words[0] >> 8),
        alignment: words[0] >> 2 & 0x3f,
        needs_block: words[0] & 1 != 0,
        is_pinned: words[0] & 2 != 0,
        nbytes: words[1],
        before: words[2],
        after: words[3],
    });
    of_all.collect()
}

/// Returns the first PE whose memory cannot be registered, and the reason.
fn first_refusal(of_all: &[Request]) -> Option<(usize, Refusal)> {
    let refusal = of_all
        .iter()
        .enumerate()
        .find_map(|(pe, of_pe)| Some((pe, of_pe.refusal?)));
    refusal.or_else(|| {
        // A word that is aligned here must be aligned on all PEs.
        let other = of_all
            .iter()
            .position(|of_pe| of_pe.alignment != of_all[0].alignment)?;
        Some((other, Refusal::Alignment))
    })
}

/// The bit of the first word of a change that says that the PE has failed, and those of the number
/// of its moves; the lower ones have the number of blocks that it has left.
const FAILED: u64 = 1 << 63;
const MOVES: u32 = 32;

/// Gathers the changes of all PEs; `None` stands for a failure.
///
/// # Errors
/// The first PE that has failed.
fn gather_changes(pe: &'static OwnPe, call: Call, own: Option<&Change>) -> Result<Vec<Change>, Pe> {
    let first = own.map_or(FAILED, |change| {
        (change.moves.len() as u64) << MOVES | change.left.len() as u64
    });
    let firsts = gather(pe, call, &[first]);
    if let Some(failed) = firsts.iter().position(|words| words[0] == FAILED) {
        return Err(Pe(failed as u32));
    }

    let counts = |words: &Vec<u64>| {
        [words[0] >> MOVES, words[0] & ((1 << MOVES) - 1)].map(|count| count as usize)
    };
    let most = firsts.iter().map(|words| {
        let [n_moves, n_left] = counts(words);
        1 + 3 * n_moves + n_left
    });
    let mut words = Vec::new();
    if let Some(change) = own {
        words.push(change.offset);
        let moves = change.moves.iter();
        words.extend(moves.flat_map(|moved| [moved.from, moved.nbytes, moved.to]));
        words.extend(&change.left);
    }
    words.resize(most.max().unwrap_or(1), 0);

    let changes = gather(pe, call, &words)
        .into_iter()
        .zip(&firsts)
        .map(|(words, first)| {
            let [n_moves, n_left] = counts(first);
            let (moves, rest) = words[1..].split_at(3 * n_moves);
            let moves = moves.chunks_exact(3).map(|words| Move {
                from: words[0],
                nbytes: words[1],
                to: words[2],
            });
            Change {
                offset: words[0],
                moves: moves.collect(),
                left: rest[..n_left].to_vec(),
            }
        });
    Ok(changes.collect())
}

/// Gathers the same number of words of each PE.
fn gather(pe: &'static OwnPe, call: Call, own: &[u64]) -> Vec<Vec<u64>> {
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, pe.teams.world());
    entry.require_same(&[("words", own.len() as u64)]);
    let mut of_all = vec![Vec::new(); executor.n() as usize];
    for word in own {
        for (words, theirs) in of_all.iter_mut().zip(executor.gather(*word)) {
            words.push(theirs);
        }
    }
    of_all
}
