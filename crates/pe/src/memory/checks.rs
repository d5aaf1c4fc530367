//! The checks of addresses. If an access cannot be made, a message says why. With `SHMEM_CHECK`,
//! three more things are checked: that an access stays within one block of the heap or one static
//! variable, that the guards around blocks are intact, and that the pages of private buffers are
//! accessible.
//!
//! Allocation is symmetric, so this PE's table of blocks describes those of every PE, and all PEs
//! have the same static variables. A page of a private buffer is checked once. If the program
//! unmaps or protects the page later, an access to it is a fault without a message.

use crate::call::{Call, fail, thread};
use crate::job::{self, Job, permission};
use crate::memory::accessible::{LocalAccess, TOO_MANY_ELEMENTS, is_mapped, require_accessible};
use crate::memory::{address, constants, shortage, statics, symmetric_location};
use core::ffi::c_int;
use rushmem_heap::{Misplaced, Overwritten};
use rushmem_transport::{LocalBuf, Pe, RemoteAddr, Segment};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Returns the segment and the offset of `nbytes` bytes at `addr`. Ends the job with an error if
/// they are not symmetric, if there is no PE `pe`, or if `SHMEM_CHECK` finds a mistake in the
/// access or in the thread that calls. `argument` is the name that the address has in the call.
#[inline]
pub(crate) fn require_symmetric(
    call: Call,
    argument: &'static str,
    addr: usize,
    nbytes: usize,
    pe: c_int,
) -> (Segment, usize) {
    permission::check(call, job::require(call));
    require_bytes(call, argument, addr, nbytes, pe)
}

/// Returns the segment and the offset of `nbytes` bytes at `addr`. Ends the job with an error if
/// they are not symmetric, if there is no PE `pe`, or if `SHMEM_CHECK` finds a mistake in the
/// access. Does not check the calling thread.
#[inline]
pub fn require_bytes(
    call: Call,
    argument: &'static str,
    addr: usize,
    nbytes: usize,
    pe: c_int,
) -> (Segment, usize) {
    let (segment, offset) = address::locate_on(addr, nbytes, pe)
        .unwrap_or_else(|| refuse(call, argument, addr, nbytes, pe));
    let job = job::require(call);
    if job.settings.checks() {
        require_object(call, job, argument, segment, addr, nbytes);
    }
    (segment, offset)
}

/// Returns the location of `nbytes` symmetric bytes at `addr` for a transport. Ends the job with an
/// error if they are not symmetric, if there is no PE `pe`, or if `pe`'s copy is not mapped here
/// and no network is open. `argument` is the name of the address in the call.
#[cold]
#[inline(never)]
pub fn require_remote(
    call: Call,
    argument: &'static str,
    addr: usize,
    nbytes: usize,
    pe: c_int,
    is_network_open: bool,
) -> RemoteAddr {
    call.require_no_exit();

    let found = address::locate_on(addr, nbytes, pe)
        .filter(|(segment, _)| is_network_open || address::delta(*segment, pe).is_some());
    let Some((segment, offset)) = found else {
        refuse(call, argument, addr, nbytes, pe)
    };
    RemoteAddr {
        segment,
        offset: offset as u64,
    }
}

/// Ends the job with an error unless the word of `nbytes` bytes at `addr` is naturally aligned.
#[inline(always)]
pub fn require_aligned(call: Call, argument: &'static str, addr: usize, nbytes: usize) {
    if !addr.is_multiple_of(nbytes) {
        refuse_misaligned(call, argument, addr, nbytes);
    }
}

#[cold]
#[inline(never)]
fn refuse_misaligned(call: Call, argument: &'static str, addr: usize, nbytes: usize) -> ! {
    fail!(
        call,
        "argument {argument}: {addr:#x} is not aligned to the {nbytes} bytes of its type; align it to its size"
    );
}

/// Ends the job with a message that says why an access cannot be made.
#[cold]
#[inline(never)]
pub fn refuse(call: Call, argument: &'static str, addr: usize, nbytes: usize, pe: c_int) -> ! {
    call.require_no_exit();
    let job = job::require(call);
    if pe < 0 || pe as u32 >= job.n_pes {
        fail!(
            call,
            "argument pe is {}, but PEs are numbered 0 to {}",
            call.written(pe),
            job.n_pes - 1
        );
    }

    if nbytes > isize::MAX as usize {
        fail!(call, "argument {argument}: {TOO_MANY_ELEMENTS}");
    }

    let heap = job.memory.heap().addr();
    let heap_bytes = job.memory.layout().heap_bytes();
    if addr.wrapping_sub(heap) < job.memory.layout().stride() {
        fail!(
            call,
            "argument {argument}: {nbytes} bytes at {addr:#x} reach beyond the symmetric heap \
             ({heap_bytes} bytes at {heap:#x}); check the count and the offset"
        );
    }

    if let Some(buffer) = job.map.buffers().find(addr, 1) {
        fail!(
            call,
            "argument {argument}: {nbytes} bytes at {addr:#x} reach beyond the registered buffer of {} bytes at {:#x}{}; \
             check the count",
            buffer.nbytes,
            buffer.start,
            symmetric_location::registered_at(buffer.start)
        );
    }

    let first = statics::own().start();
    let static_bytes = statics::own().nbytes();
    if statics::own().contains(addr.wrapping_sub(first), 1) {
        fail!(
            call,
            "argument {argument}: {nbytes} bytes at {addr:#x} reach beyond the static data of the \
             program ({static_bytes} bytes at {first:#x}); check the count"
        );
    }

    let of_other_pe = if job.has_equal_heap_addresses {
        ""
    } else {
        "; the heap has another address on other PEs, so a pointer from there is not valid here"
    };
    if let Some(why) = constants::refusal(call, job, argument, addr, nbytes) {
        fail!(call, "argument {argument}: {addr:#x} {why}");
    }
    if let Some(OwnedByOther { owner, own }) = owner_of(job, addr) {
        fail!(
            call,
            "argument {argument}: {addr:#x} is memory of PE {owner}; pass the address of the same object on this PE \
             ({own:#x}) instead of what shmem_ptr returns, or check the offset"
        );
    }
    if !shortage::is_near_null(addr) && !is_mapped(addr) {
        fail!(
            call,
            "argument {argument}: {addr:#x} is not symmetric, and the PE has no memory there; check the pointer and \
             the offset{of_other_pe}"
        );
    }

    let declare = if call.is_fortran() {
        "give it the attribute SAVE"
    } else {
        "declare it static"
    };
    fail!(
        call,
        "argument {argument}: {addr:#x} is not symmetric; use shmem_malloc, or {declare}{}{of_other_pe}",
        shortage::before_null(addr)
    );
}

/// An object of another PE whose memory is mapped here.
pub struct OwnedByOther {
    /// The PE that has the object.
    pub owner: Pe,
    /// The address of this PE's copy of the object.
    pub own: usize,
}

/// Returns the other PE whose memory is mapped at `addr`, and the address of this PE's copy of the
/// same object; `None` if no memory of another PE is there.
pub fn owner_of(job: &Job, addr: usize) -> Option<OwnedByOther> {
    let heap = job.memory.heap().addr();
    let slice_bytes = job.memory.layout().stride();
    let first_static = statics::own().start();

    for owner in (0..job.n_pes).map(Pe).filter(|pe| *pe != job.me) {
        let on_this_pe = |segment| {
            let delta = address::delta(segment, owner.0 as c_int)?;
            Some(addr.wrapping_sub(delta as usize))
        };
        if let Some(own) = on_this_pe(Segment::Heap)
            && own.wrapping_sub(heap) < slice_bytes
        {
            return Some(OwnedByOther { owner, own });
        }
        if let Some(own) = on_this_pe(Segment::Static)
            && statics::own().contains(own.wrapping_sub(first_static), 1)
        {
            return Some(OwnedByOther { owner, own });
        }
    }
    None
}

/// Ends the job with an error if local bytes begin in the heap or in a static variable and are not
/// within one block or that variable, or if their first or last byte is not accessible.
#[inline]
pub fn check_local(call: Call, access: LocalAccess, local: LocalBuf) {
    if local.nbytes == 0 {
        return;
    }

    let addr = local.base.addr();
    if let Some(segment) = address::observed_segment(addr) {
        let job = job::require(call);
        let argument = access.argument_name();
        let is_in_object = require_object(call, job, argument, segment, addr, local.nbytes);
        if is_in_object {
            return;
        }
    }

    if !is_known_accessible(access, local) {
        require_accessible(call, access, local);
        remember_accessible(access, local);
    }
}

/// Returns true if there are no bytes, or [`check_local`] is known to accept them, since it has
/// lately accepted bytes of the same object or pages. After false they may be right, too.
#[inline(always)]
pub fn is_known_local(access: LocalAccess, local: LocalBuf) -> bool {
    if local.nbytes == 0 {
        return true;
    }

    let addr = local.base.addr();
    match address::observed_segment(addr) {
        Some(_) => is_known_object(addr, local.nbytes),
        None => is_known_accessible(access, local),
    }
}

/// The bounds of an object. Both are 0 before one is found, so that it contains no address.
struct KnownObject {
    start: AtomicUsize,
    end: AtomicUsize,
}

/// The last two objects, the newer one first, that a thread has found while no other thread was in
/// the library. Without them, each access searches the blocks under the lock of the allocator: an
/// 8-byte put with `SHMEM_CHECK` takes some 80 ns more, beside the 4 ns of one without. Relaxed: a
/// thread reads them only while it is alone in the library, so the program has ordered it after the
/// threads that stored them.
static KNOWN: [KnownObject; 2] = [const { KnownObject::none() }; 2];

impl KnownObject {
    const fn none() -> KnownObject {
        KnownObject {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        }
    }

    fn set(&self, object: Range<usize>) {
        self.start.store(object.start, Relaxed);
        self.end.store(object.end, Relaxed);
    }

    /// Returns true if `nbytes` bytes at `addr` are in the object.
    #[inline(always)]
    fn contains(&self, addr: usize, nbytes: usize) -> bool {
        let start = self.start.load(Relaxed);
        let end = self.end.load(Relaxed);
        addr >= start && addr < end && nbytes <= end - addr
    }
}

/// Forgets the last objects, after one was freed or moved, or the allocator was replaced.
pub fn forget_blocks() {
    for known in &KNOWN {
        known.set(0..0);
    }
}

/// Returns true if `nbytes` bytes at `addr` are within one of the last two objects that were found,
/// and the calling thread is alone in the library.
#[inline(always)]
pub fn is_known_object(addr: usize, nbytes: usize) -> bool {
    thread::is_alone() && (KNOWN[0].contains(addr, nbytes) || KNOWN[1].contains(addr, nbytes))
}

/// Ends the job with an error unless `nbytes` bytes at `addr`, which is in this segment, are within
/// one object: a block of the heap or a static variable. Returns false if no object is known there,
/// as in the static data of a program without a symbol table. `argument` is the name of the address
/// in the call.
#[inline(always)]
fn require_object(
    call: Call,
    job: &Job,
    argument: &str,
    segment: Segment,
    addr: usize,
    nbytes: usize,
) -> bool {
    is_known_object(addr, nbytes) || find_object(call, job, argument, segment, addr, nbytes)
}

/// The slow part of [`require_object`]: searches for the object. Remembers it for
/// [`is_known_object`].
#[cold]
#[inline(never)]
fn find_object(
    call: Call,
    job: &Job,
    argument: &str,
    segment: Segment,
    addr: usize,
    nbytes: usize,
) -> bool {
    if nbytes > isize::MAX as usize {
        fail!(call, "argument {argument}: {TOO_MANY_ELEMENTS}");
    }

    let registered = held_by_buffer(job, addr, nbytes);
    let held = match segment {
        Segment::Heap if registered.is_some() => registered,
        Segment::Heap => job.allocator().as_ref().map(|allocator| {
            match allocator.holding(addr, nbytes) {
                // The program made the request before it released the block.
                Err(Misplaced::Released(block, _)) if thread::request_call().is_some() => {
                    Ok(block.addresses())
                }
                held => held.map_err(|why| why.to_string()),
            }
        }),
        Segment::Static => statics::variable_holding(addr, nbytes),
        Segment::Internal => None,
    };
    let object = match held {
        None => return false,
        Some(Ok(object)) => object,
        Some(Err(why)) => fail!(
            call,
            "argument {argument}: {nbytes} bytes at {addr:#x} {why}"
        ),
    };

    // Other threads could free the block while this one records it.
    if thread::is_alone() {
        let [newer, older] = &KNOWN;
        older.set(newer.start.load(Relaxed)..newer.end.load(Relaxed));
        newer.set(object);
    }
    true
}

/// Returns the addresses in the heap of the registered buffer that contains the byte there at
/// `addr`, and is at the same offset on all PEs. Returns `None` if there is none: the block around
/// the byte is then the object. The error completes a sentence as that of
/// [`statics::variable_holding`].
fn held_by_buffer(job: &Job, addr: usize, nbytes: usize) -> Option<Result<Range<usize>, String>> {
    let buffers = job.map.buffers();
    if !buffers.are_any() {
        return None;
    }
    let buffer = buffers
        .find_in_heap(addr)
        .filter(|buffer| buffer.is_same_on_all())?;
    let end = buffer.in_heap + buffer.nbytes;
    if nbytes <= end - addr {
        return Some(Ok(buffer.in_heap..end));
    }
    Some(Err(format!(
        "reach {} bytes past the end of the registered buffer of {} bytes, {:#x} in the program{}",
        nbytes - (end - addr),
        buffer.nbytes,
        buffer.start,
        symmetric_location::registered_at(buffer.start)
    )))
}

/// With `SHMEM_CHECK`, ends the job with an error if the guard of any block was overwritten.
pub fn check_all_guards(call: Call, job: &Job) {
    if job.settings.checks() {
        require_guards(call, job, usize::MAX);
    }
}

/// Ends the job with an error if a guard was overwritten. Each call reads the guards of the next
/// `n` blocks.
pub fn require_guards(call: Call, job: &Job, n: usize) {
    let overwritten = job
        .allocator()
        .as_mut()
        .and_then(|allocator| allocator.overwritten(n));
    refuse_guard(call, overwritten);
}

/// Ends the job with an error if the guard of the block at `start` was overwritten.
pub fn require_guard(call: Call, job: &Job, start: *const u8) {
    let overwritten = job
        .allocator()
        .as_ref()
        .and_then(|heap| heap.overwritten_at(start));
    refuse_guard(call, overwritten);
}

fn refuse_guard(call: Call, overwritten: Option<Overwritten>) {
    if let Some(overwritten) = overwritten {
        fail!(
            call,
            "{overwritten}; run the program with SHMEM_CHECK=1 under valgrind, or compile it with \
             -fsanitize=address, to see where this is done"
        );
    }
}

/// Maximum number of blocks whose guards a barrier reads, so that a program with many blocks does
/// not spend its time there. The next barrier goes on with the blocks after them.
pub const GUARDS_PER_BARRIER: usize = 1024;

/// The smallest unit in bytes in which the kernel protects memory.
const PAGE: usize = 4096;
/// The number of pages that are remembered: 64 MiB, if they are contiguous.
const REMEMBERED: usize = 1 << 14;

/// The accessible pages, in the encoding of [`entry`]. Without them, a put from private memory
/// makes a system call, which takes 1 us. All entries are zero at first, so the table takes memory
/// only where it is used. Relaxed: an entry is one number, whichever thread has stored it.
static PAGES: [AtomicUsize; REMEMBERED] = [const { AtomicUsize::new(0) }; REMEMBERED];

/// Returns true if the pages of the first and the last byte are remembered as accessible by
/// `access`.
#[inline(always)]
fn is_known_accessible(access: LocalAccess, local: LocalBuf) -> bool {
    let [first, last] = ends(local);
    let is_known = |page: usize| {
        let known = PAGES[page % REMEMBERED].load(Relaxed);
        // For a read, the low bit does not matter, so it is set.
        known | usize::from(access == LocalAccess::Read) == entry(page, true)
    };
    is_known(first) && (first == last || is_known(last))
}

/// Records that `access` can access the pages of the first and the last byte. A page takes the
/// place of another one that was remembered in its entry.
fn remember_accessible(access: LocalAccess, local: LocalBuf) {
    for page in ends(local) {
        PAGES[page % REMEMBERED].store(entry(page, access == LocalAccess::Write), Relaxed);
    }
}

/// Returns the numbers of the pages of the first and the last byte.
#[inline(always)]
fn ends(local: LocalBuf) -> [usize; 2] {
    let first = local.base.addr();
    let last = first.wrapping_add(local.nbytes - 1);
    [first / PAGE, last / PAGE]
}

/// Returns the entry of an accessible page: its number plus 1, since 0 is an unused entry, and a
/// low bit that is 1 if the page can be written.
#[inline(always)]
fn entry(page: usize, is_writable: bool) -> usize {
    (page + 1) << 1 | usize::from(is_writable)
}
