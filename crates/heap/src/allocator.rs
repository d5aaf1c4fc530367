//! The allocator of the symmetric heap.
//!
//! Every PE makes the same calls in the same order on a heap of the same size and alignment, so every PE gets the
//! same offsets without communication. dlmalloc does the work. This file gives it the heap once, and records the
//! blocks in private memory, so that a pointer that is not the start of a block is an error and does not corrupt
//! the heap.
#![allow(unsafe_code)]

use dlmalloc::Dlmalloc;
use std::collections::BTreeMap;

/// The allocator of one PE's symmetric heap.
pub struct Allocator {
    heap: Dlmalloc<Once>,
    nbytes: usize,
    max_alignment: usize,
    /// The blocks' starts and sizes, by address.
    blocks: BTreeMap<usize, (*mut u8, usize)>,
}

// SAFETY: the pointers are into the heap, which the allocator has for itself by its contract.
unsafe impl Send for Allocator {}

/// The pointer is not the start of an allocated block.
#[derive(Debug, PartialEq, Eq)]
pub struct NotABlock;

/// What an address of the heap is.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// The start of a block.
    Block,
    /// Within a block.
    Inside,
    /// In no block.
    Free,
}

impl Allocator {
    /// An allocator of the `nbytes` bytes at `base`, which every PE aligns to `max_alignment`: what
    /// is asked to be aligned to more would not be symmetric and is not to be had.
    ///
    /// # Safety
    /// The range is valid for reads and writes as long as the allocator lives, and nothing but the
    /// allocator and the users of its blocks accesses it.
    pub unsafe fn new(base: *mut u8, nbytes: usize, max_alignment: usize) -> Allocator {
        let heap = Dlmalloc::new_with_allocator(Once { base, nbytes, taken: false.into() });
        Allocator { heap, nbytes, max_alignment, blocks: BTreeMap::new() }
    }

    /// A block of `nbytes` bytes, aligned to `alignment` (a power of two) and to 16; `None` when
    /// there is no room, or the alignment is no power of two.
    pub fn allocate(&mut self, nbytes: usize, alignment: usize) -> Option<*mut u8> {
        if nbytes > self.nbytes || alignment > self.max_alignment || !alignment.is_power_of_two() {
            return None;
        }
        // SAFETY: the heap is valid by the contract of `new`, the alignment is a power of two.
        let block = unsafe { self.heap.c_memalign(alignment.max(16), nbytes) };
        if block.is_null() {
            return None;
        }
        self.blocks.insert(block.addr(), (block, nbytes));
        Some(block)
    }

    /// Bytes of all blocks.
    pub fn in_use(&self) -> usize {
        self.blocks.values().map(|&(_, nbytes)| nbytes).sum()
    }

    /// What `address` is.
    pub fn place(&self, address: *const u8) -> Place {
        match self.blocks.range(..=address.addr()).next_back() {
            Some((&start, _)) if start == address.addr() => Place::Block,
            Some((&start, &(_, nbytes))) if address.addr() < start + nbytes => Place::Inside,
            _ => Place::Free,
        }
    }

    /// Change the size of a block, moving its contents if need be; `Ok(None)` when there is no room,
    /// and the block is then as it was.
    ///
    /// # Errors
    /// When `block` is not the start of a block.
    pub fn reallocate(
        &mut self,
        block: *mut u8,
        nbytes: usize,
    ) -> Result<Option<*mut u8>, NotABlock> {
        let &(block, _) = self.blocks.get(&block.addr()).ok_or(NotABlock)?;
        if nbytes > self.nbytes {
            return Ok(None);
        }
        // SAFETY: a block of this heap, as just checked.
        let moved = unsafe { self.heap.c_realloc(block, nbytes) };
        if moved.is_null() {
            return Ok(None);
        }
        self.blocks.remove(&block.addr());
        self.blocks.insert(moved.addr(), (moved, nbytes));
        Ok(Some(moved))
    }

    /// Give a block back; its size.
    ///
    /// # Errors
    /// When `block` is not the start of a block.
    pub fn free(&mut self, block: *mut u8) -> Result<usize, NotABlock> {
        let (block, nbytes) = self.blocks.remove(&block.addr()).ok_or(NotABlock)?;
        // SAFETY: a block of this heap that was not freed yet, as just checked.
        unsafe { self.heap.c_free(block) };
        Ok(nbytes)
    }
}

/// A source of memory that has one range to give, once.
struct Once {
    base: *mut u8,
    nbytes: usize,
    taken: std::sync::atomic::AtomicBool,
}

// SAFETY: the pointer is only handed on; the range is the allocator's alone by its contract.
unsafe impl Send for Once {}

// SAFETY: the range is valid by the contract of `Allocator::new` and handed out once; nothing is
// taken back, and pages are zero or not: `allocates_zeros` says that they may not be.
unsafe impl dlmalloc::Allocator for Once {
    fn alloc(&self, nbytes: usize) -> (*mut u8, usize, u32) {
        let taken = self.taken.swap(true, std::sync::atomic::Ordering::Relaxed);
        if taken || nbytes > self.nbytes {
            return (std::ptr::null_mut(), 0, 0);
        }
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
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one proof serves them all")]
mod tests;
