//! The allocator of the symmetric heap.
//!
//! Every PE makes the same calls in the same order on a heap of the same size and alignment, so
//! every PE gets the same offsets without communication. dlmalloc does the work. This file gives it
//! the heap once, and records the blocks in private memory, so that a pointer that is not the start
//! of a block is an error and does not corrupt the heap.
//!
//! A guarded allocator has guard words around each block, and marks what lies outside blocks for
//! the tools that report wrong accesses. dlmalloc has its own data there.
#![allow(unsafe_code)]

mod blocks;
mod guard;
mod marks;

pub use blocks::{Block, Misplaced};

use blocks::BlockList;
use dlmalloc::Dlmalloc;
use guard::GUARD;
use marks::Marks;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicBool, Ordering};

// The layout of dlmalloc's chunks, whose heads `intact` checks and whose sizes `largest_free`
// computes. dlmalloc does not export it; the tests compare what it implies with real allocations.

/// The number of bytes from the start of a chunk of dlmalloc to the memory that it hands out. The
/// first 8 of them belong to the previous chunk while that is in use.
const CHUNK_HEAD: usize = 16;
/// The bytes of a chunk that its memory cannot use.
const CHUNK_OVERHEAD: usize = 8;
/// Chunks are multiples of this size.
const CHUNK_UNIT: usize = 16;
/// Maximum number of bytes by which a chunk in use is larger than its memory needs.
const CHUNK_SPARE: usize = 32;
/// The smallest size of a chunk.
const SMALLEST_CHUNK: usize = 32;
/// The bits of a chunk's head, behind its size, and two of them.
const CHUNK_FLAGS: usize = 7;
const IS_PREVIOUS_USED: usize = 1;
const IS_USED: usize = 2;
/// The bytes at the end of the heap that dlmalloc does not hand out: the 80 of its
/// `top_foot_size`, and a unit, since its last chunk is never used up.
const END: usize = 80 + CHUNK_UNIT;

/// The allocator of one PE's symmetric heap.
pub struct Allocator {
    heap: Dlmalloc<SingleRange>,
    base: *mut u8,
    nbytes: usize,
    max_alignment: usize,
    blocks: BlockList,
    guards: Option<Guards>,
}

/// The numbers of bytes that a chunk has for guards; 0 without guards.
struct GuardSizes {
    /// In front of the block.
    front: usize,
    /// Behind the block.
    tail: usize,
}

/// The guards of an allocator.
struct Guards {
    marks: Marks,
    /// The address from which the next check of guards begins.
    next: usize,
}

// SAFETY: `base` and dlmalloc's pointers are into the heap, which the allocator has for itself by
// the contract of `new`, on whatever thread it is used.
unsafe impl Send for Allocator {}

/// The reason why a block cannot be freed, reallocated or released.
#[derive(Debug)]
pub enum Unusable {
    /// The pointer is not the start of an allocated block.
    NotABlockStart,
    /// This PE has released the block by this routine.
    Released(Block, &'static str),
    /// A store beyond the end of a block has changed dlmalloc's data beside this block.
    Damaged(Block),
}

/// The word before the memory of a chunk of dlmalloc.
struct ChunkHead {
    nbytes: usize,
    is_used: bool,
    is_previous_used: bool,
}

/// The kind of an address of the heap.
#[derive(Debug)]
pub enum AddressKind {
    /// The start of a block.
    Block,
    /// Within a block, behind its start.
    Inside(Block),
    /// In no block.
    Free,
}

/// A guard that is not as it was written.
#[derive(Debug)]
pub struct Overwritten {
    block: Block,
    bytes: RangeInclusive<usize>,
}

/// Describes the overwritten bytes.
impl fmt::Display for Overwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = &self.block;
        let first = *self.bytes.start();
        let nbytes = self.bytes.end() - first + 1;
        write!(f, "{nbytes} bytes at {first:#x} were overwritten, ")?;

        match first.checked_sub(block.end()) {
            Some(0) => write!(f, "at the end of {block}"),
            Some(by) => write!(f, "{by} bytes past the end of {block}"),
            None => write!(
                f,
                "{} bytes before the start of {block}",
                block.start.addr() - first
            ),
        }
    }
}

impl Allocator {
    /// Returns an allocator of the `nbytes` bytes at `base`, which every PE aligns to
    /// `max_alignment`. Blocks with a larger alignment would not be symmetric, so they cannot be
    /// allocated.
    ///
    /// # Safety
    /// The range is valid for reads and writes as long as the allocator lives, and nothing but the
    /// allocator and the users of its blocks accesses it.
    pub unsafe fn new(base: *mut u8, nbytes: usize, max_alignment: usize) -> Allocator {
        let heap = Dlmalloc::new_with_allocator(SingleRange {
            base,
            nbytes,
            taken: AtomicBool::new(false),
        });
        Allocator {
            heap,
            base,
            nbytes,
            max_alignment,
            blocks: BlockList::default(),
            guards: None,
        }
    }

    /// Returns the allocator with guards around the blocks that it will allocate.
    pub fn guarded(mut self) -> Allocator {
        let marks = Marks::find();
        marks.forbid(self.base, self.nbytes);
        self.guards = Some(Guards { marks, next: 0 });
        self
    }

    /// Allocates a block of `nbytes` bytes for `routine`, aligned to `alignment` or 16, whichever
    /// is more. Returns `None` if there is no room, or if the alignment is too large or not a power
    /// of two.
    pub fn allocate(
        &mut self,
        routine: &'static str,
        nbytes: usize,
        alignment: usize,
    ) -> Option<*mut u8> {
        if nbytes > self.nbytes || alignment > self.max_alignment || !alignment.is_power_of_two() {
            return None;
        }

        let alignment = alignment.max(CHUNK_UNIT);
        let guards = self.guard_sizes(alignment);
        let whole = guards.front + nbytes + guards.tail;
        // SAFETY: dlmalloc's memory, the heap, is valid by the contract of `new`, and `alignment`
        // is a power of two, as checked above.
        let base = self.unreported(|heap| unsafe { heap.c_memalign(alignment, whole) });
        if base.is_null() {
            return None;
        }

        let start = base.wrapping_add(guards.front);
        // A request that fails gets no number: it fails on every PE, so the numbers stay equal.
        let number = self.blocks.next_number();
        self.record(Block {
            start,
            nbytes,
            front: guards.front,
            number,
            allocated_by: routine,
            released_by: None,
        });
        Some(start)
    }

    /// Records a block that was just allocated, and writes its guards.
    fn record(&mut self, block: Block) {
        if let Some(Guards { marks, .. }) = &self.guards {
            let before = block.start.wrapping_sub(GUARD);
            let after = block.start.wrapping_add(block.nbytes);

            // The guards, too: only the first bytes of a large heap were forbidden with it.
            marks.forbid(before, GUARD + block.nbytes + GUARD);
            marks.permit(block.start, block.nbytes);

            marks.unreported(|| {
                // SAFETY: `guard_sizes` has made room for a guard in front of the block.
                unsafe { guard::write(before) };
                // SAFETY: `guard_sizes` has made room for a guard behind the block.
                unsafe { guard::write(after) };
            });
        }
        self.blocks.insert(block);
    }

    /// Returns the number of bytes that the users of all blocks have requested.
    pub fn in_use(&self) -> usize {
        self.blocks.from(0).map(|block| block.nbytes).sum()
    }

    /// Returns the size of a block that can be allocated now, aligned to 16 bytes; 0 if there is no
    /// room. A block that is up to 32 bytes larger may fit, too: dlmalloc does not tell the exact
    /// sizes of its chunks.
    pub fn largest_free(&self) -> usize {
        let guards = self.guard_sizes(CHUNK_UNIT);

        // The gaps between chunks in use. Every chunk is taken to be as large as it can be, so the
        // gap behind it may be larger than computed, but never smaller.
        let mut largest_gap = 0;
        let mut gap_start = self.base.addr();
        for block in self.blocks.from(0) {
            let chunk_start = block.start.addr() - block.front - CHUNK_HEAD;
            largest_gap = largest_gap.max(chunk_start.saturating_sub(gap_start));

            let whole = block.front + block.nbytes + guards.tail;
            let chunk = (whole + CHUNK_OVERHEAD).next_multiple_of(CHUNK_UNIT) + CHUNK_SPARE;
            gap_start = chunk_start + chunk;
        }

        let end = (self.base.addr() + self.nbytes).saturating_sub(END);
        largest_gap = largest_gap.max(end.saturating_sub(gap_start));

        let chunk = largest_gap / CHUNK_UNIT * CHUNK_UNIT;
        chunk.saturating_sub(CHUNK_OVERHEAD + guards.front + guards.tail)
    }

    fn guard_sizes(&self, alignment: usize) -> GuardSizes {
        if self.guards.is_none() {
            return GuardSizes { front: 0, tail: 0 };
        }

        // The block begins behind the front guard, so only a multiple of the alignment keeps the
        // block aligned. Alignments are powers of two, as is `GUARD`.
        GuardSizes {
            front: GUARD.max(alignment),
            tail: GUARD,
        }
    }

    /// Returns the kind of an address of the heap.
    pub fn kind(&self, address: *const u8) -> AddressKind {
        match self.blocks.up_to(address.addr()) {
            Some(block) if block.start.addr() == address.addr() => AddressKind::Block,
            Some(block) if address.addr() < block.end() => AddressKind::Inside(block.clone()),
            _ => AddressKind::Free,
        }
    }

    /// Returns the offsets in the heap of the block that contains the byte at `address`.
    pub fn block_around(&self, address: usize) -> Option<Range<usize>> {
        let block = self.blocks.up_to(address)?;
        if address >= block.end() {
            return None;
        }
        let base = self.base.addr();
        Some(block.start.addr() - base..block.end() - base)
    }

    /// Returns the addresses of the block that contains the `nbytes` bytes at `address`. `nbytes`
    /// is at least 1.
    ///
    /// # Errors
    /// When they do not lie in one block.
    pub fn holding(&self, address: usize, nbytes: usize) -> Result<Range<usize>, Misplaced> {
        self.blocks.holding(address, nbytes)
    }

    /// Changes the size of a block for `routine`, and moves its contents if necessary. Returns the
    /// new start. Returns `None` if there is no room; the block is then unchanged.
    ///
    /// # Errors
    /// When `block` is not the start of a block, or dlmalloc's data beside it are damaged.
    pub fn reallocate(
        &mut self,
        routine: &'static str,
        block: *mut u8,
        nbytes: usize,
    ) -> Result<Option<*mut u8>, Unusable> {
        let old = self.intact(block)?;
        if nbytes > self.nbytes {
            return Ok(None);
        }

        // dlmalloc's block has the guards around the user's bytes, too.
        let base = old.start.wrapping_sub(old.front);
        let whole = old.front + nbytes + self.guard_sizes(CHUNK_UNIT).tail;

        // dlmalloc copies the block with its guards by memcpy, which AddressSanitizer replaces by a
        // function that checks each byte.
        let copies_are_seen = self
            .guards
            .as_ref()
            .is_some_and(|guards| guards.marks.copies_are_seen());
        if copies_are_seen {
            self.each_gap(Marks::unpoison);
        }
        // SAFETY: `base` was returned by dlmalloc for this block and not freed since: `old` is in
        // the list of blocks, and `intact` has found dlmalloc's data beside it undamaged.
        let moved = self.unreported(|heap| unsafe { heap.c_realloc(base, whole) });
        if copies_are_seen {
            self.each_gap(Marks::poison);
        }

        if moved.is_null() {
            return Ok(None);
        }

        self.remove(&old, routine);
        // The number stays: on every PE it is the same block, wherever it lies now.
        let start = moved.wrapping_add(old.front);
        self.record(Block {
            start,
            nbytes,
            allocated_by: routine,
            ..old
        });
        Ok(Some(start))
    }

    /// Frees a block for `routine`. Returns its size in bytes.
    ///
    /// # Errors
    /// When `block` is not the start of a block, or dlmalloc's data beside it are damaged.
    pub fn free(&mut self, routine: &'static str, block: *mut u8) -> Result<usize, Unusable> {
        let block = self.intact(block)?;
        self.remove(&block, routine);

        // SAFETY: dlmalloc has returned this address for the block, which `intact` has found in the
        // list of blocks, with undamaged data beside it. `remove` has taken it from the list, so it
        // is freed once.
        self.unreported(|heap| unsafe { heap.c_free(block.start.wrapping_sub(block.front)) });
        Ok(block.nbytes)
    }

    /// Records that this PE has released a block by `routine`. The block stays allocated.
    ///
    /// # Errors
    /// When `block` is not the start of a block, or was released before.
    pub fn release(&mut self, routine: &'static str, block: *mut u8) -> Result<(), Unusable> {
        self.require_unreleased(block)?;
        let block = self.blocks.at_mut(block.addr());
        block.ok_or(Unusable::NotABlockStart)?.released_by = Some(routine);
        Ok(())
    }

    /// Checks that this PE has not released the block that starts at an address, if there is one.
    ///
    /// # Errors
    /// When it has.
    pub fn require_unreleased(&self, block: *const u8) -> Result<(), Unusable> {
        if let Some(block) = self.blocks.at(block.addr())
            && let Some(released_by) = block.released_by
        {
            return Err(Unusable::Released(block.clone(), released_by));
        }
        Ok(())
    }

    /// Returns the addresses of all blocks, in the order of addresses, and whether this PE has
    /// released them. All PEs have the same blocks in the same order.
    pub fn releases(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        self.blocks
            .from(0)
            .map(|block| (block.addresses(), block.released_by.is_some()))
    }

    /// Returns the block that starts at an address. dlmalloc must not follow what a store beyond
    /// the end of a block has written, so the heads of the block's chunk and of the next one are
    /// checked.
    fn intact(&self, start: *mut u8) -> Result<Block, Unusable> {
        let block = self
            .blocks
            .at(start.addr())
            .ok_or(Unusable::NotABlockStart)?;
        let memory = block.start.wrapping_sub(block.front);
        let tail = self.guard_sizes(CHUNK_UNIT).tail;
        let needed = (block.front + block.nbytes + tail + CHUNK_OVERHEAD)
            .next_multiple_of(CHUNK_UNIT)
            .max(SMALLEST_CHUNK);

        let head = self.chunk_head(memory.wrapping_sub(CHUNK_OVERHEAD));
        if !head.is_used || !(needed..=needed + CHUNK_SPARE).contains(&head.nbytes) {
            return Err(Unusable::Damaged(block.clone()));
        }

        // Read only now: with a wrong size the next head could be outside the heap.
        let next = memory.wrapping_add(head.nbytes);
        let next_head = self.chunk_head(next.wrapping_sub(CHUNK_OVERHEAD));
        let end = self.base.addr() + self.nbytes;
        if !next_head.is_previous_used || next_head.nbytes > end.saturating_sub(next.addr()) {
            return Err(Unusable::Damaged(block.clone()));
        }

        Ok(block.clone())
    }

    fn chunk_head(&self, head: *mut u8) -> ChunkHead {
        let read = || {
            // SAFETY: an aligned word of the heap, which the allocator has for itself. A program
            // that writes beyond its block may change it at any time.
            unsafe { head.cast::<usize>().read_volatile() }
        };
        let word = match &self.guards {
            Some(guards) => guards.marks.unreported(read),
            None => read(),
        };
        ChunkHead {
            nbytes: word & !CHUNK_FLAGS,
            is_used: word & IS_USED != 0,
            is_previous_used: word & IS_PREVIOUS_USED != 0,
        }
    }

    /// Removes a block from the allocated ones. With guards, forbids accesses to it, and remembers
    /// that `routine` has freed it.
    fn remove(&mut self, block: &Block, routine: &'static str) {
        self.blocks.remove(block.start.addr());
        if let Some(Guards { marks, .. }) = &self.guards {
            marks.forbid(block.start, block.nbytes);
            self.blocks.remember(block.clone(), routine);
        }
    }

    /// Returns the guard of the block that starts at an address, if it was overwritten.
    pub fn overwritten_at(&self, start: *const u8) -> Option<Overwritten> {
        self.overwritten_guard(self.blocks.at(start.addr())?)
    }

    /// Checks the guards of the next `n` blocks: each call continues where the last one ended, and
    /// the first block follows the last one. Returns the first guard that was overwritten, if any;
    /// `None` also if the allocator has no guards.
    pub fn overwritten(&mut self, n: usize) -> Option<Overwritten> {
        let next = self.guards.as_ref()?.next;
        let mut round = self.blocks.from(next).chain(self.blocks.from(0));

        // No block twice: the round of a heap with few blocks would begin again.
        let n = n.min(self.blocks.len());
        let found = round
            .clone()
            .take(n)
            .find_map(|block| self.overwritten_guard(block));

        let next = round.nth(n).map_or(0, |block| block.start.addr());
        self.guards.as_mut()?.next = next;
        found
    }

    fn overwritten_guard(&self, block: &Block) -> Option<Overwritten> {
        let Guards { marks, .. } = self.guards.as_ref()?;
        let before = block.start.wrapping_sub(GUARD);
        let after = block.start.wrapping_add(block.nbytes);

        let bytes = marks.unreported(|| {
            // Most faults write beyond the end, so the guard there is reported if both are damaged.
            // SAFETY: the allocator has written this guard when it recorded the block.
            let behind = unsafe { guard::overwritten(after) };
            // SAFETY: as the other guard.
            behind.or_else(|| unsafe { guard::overwritten(before) })
        })?;
        Some(Overwritten {
            block: block.clone(),
            bytes,
        })
    }

    /// Calls dlmalloc. Valgrind does not report its accesses to its own data, which are outside
    /// blocks.
    fn unreported<R>(&mut self, act: impl FnOnce(&mut Dlmalloc<SingleRange>) -> R) -> R {
        match &self.guards {
            Some(guards) => guards.marks.unreported(|| act(&mut self.heap)),
            None => act(&mut self.heap),
        }
    }

    /// Calls `mark` for each range of the heap that is outside blocks.
    fn each_gap(&self, mark: fn(&Marks, *const u8, usize)) {
        let Some(Guards { marks, .. }) = &self.guards else {
            return;
        };
        let mut gap = self.base;
        for block in self.blocks.from(0) {
            mark(marks, gap, block.start.addr() - gap.addr());
            gap = block.start.wrapping_add(block.nbytes);
        }
        mark(marks, gap, self.base.addr() + self.nbytes - gap.addr());
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        if let Some(Guards { marks, .. }) = &self.guards {
            marks.permit(self.base, self.nbytes);
        }
    }
}

/// The source of dlmalloc's memory: one range, which it gets once.
struct SingleRange {
    base: *mut u8,
    nbytes: usize,
    taken: AtomicBool,
}

// SAFETY: `base` is only passed on to dlmalloc; the range belongs to the allocator alone by the
// contract of `Allocator::new`.
unsafe impl Send for SingleRange {}

// SAFETY: the range is valid by the contract of `Allocator::new` and returned once. No part of it
// is taken back, and `allocates_zeros` returns false, so its contents may be anything.
unsafe impl dlmalloc::Allocator for SingleRange {
    fn alloc(&self, nbytes: usize) -> (*mut u8, usize, u32) {
        // The size first: a request that is refused leaves the range to the next one.
        // Relaxed: the allocator is used by one thread at a time.
        if nbytes > self.nbytes || self.taken.swap(true, Ordering::Relaxed) {
            return (std::ptr::null_mut(), 0, 0);
        }
        // The start, the size, and no flags.
        (self.base, self.nbytes, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        false
    }

    fn page_size(&self) -> usize {
        4096
    }
}

#[cfg(test)]
#[expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof serves them all"
)]
mod tests;
