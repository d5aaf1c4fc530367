//! Who hands out the symmetric heap.
//!
//! Every PE makes the same calls in the same order on a heap of the same size and alignment, so every
//! PE gets the same offsets without a word to the others. dlmalloc does the work; this file hands it
//! the heap once and keeps, in private memory, what is handed out, so that a pointer that is no
//! block's start is an error and not a broken heap.
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
    /// there is no room.
    pub fn allocate(&mut self, nbytes: usize, alignment: usize) -> Option<*mut u8> {
        if nbytes > self.nbytes || alignment > self.max_alignment {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Heap {
        memory: Vec<u128>,
        allocator: Allocator,
        base: usize,
    }

    fn heap(nbytes: usize) -> Heap {
        let mut memory = vec![0u128; nbytes / 16];
        let base = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the vector lives beside the allocator and is not touched otherwise.
        let allocator = unsafe { Allocator::new(base, nbytes, 4096) };
        Heap { memory, allocator, base: base.addr() }
    }

    #[test]
    fn the_whole_heap_can_be_one_block() {
        let mut h = heap(1 << 20);
        let block = h.allocator.allocate((1 << 20) - 4096, 16).expect("room");
        assert_eq!(h.allocator.allocate(1 << 20, 16), None);
        assert_eq!(h.allocator.allocate(usize::MAX - 8, 16), None);
        h.allocator.free(block).expect("a block");
        assert!(h.allocator.allocate((1 << 20) - 4096, 16).is_some());
        assert_eq!(h.allocator.allocate(1, 8192), None);
    }

    #[test]
    fn foreign_and_freed_pointers_are_refused() {
        let mut h = heap(1 << 16);
        let block = h.allocator.allocate(100, 16).expect("room");
        assert_eq!(h.allocator.free(block.wrapping_add(16)), Err(NotABlock));
        assert_eq!(h.allocator.reallocate(block.wrapping_add(1), 5), Err(NotABlock));
        assert_eq!(h.allocator.free(block), Ok(100));
        assert_eq!(h.allocator.free(block), Err(NotABlock));
    }

    #[test]
    fn an_address_has_a_place() {
        let mut h = heap(1 << 16);
        let block = h.allocator.allocate(100, 16).expect("room");
        assert_eq!(h.allocator.place(block), Place::Block);
        assert_eq!(h.allocator.place(block.wrapping_add(99)), Place::Inside);
        assert_eq!(h.allocator.place(block.wrapping_add(100)), Place::Free);
        assert_eq!(h.allocator.place(block.wrapping_sub(1)), Place::Free);
        h.allocator.free(block).expect("a block");
        assert_eq!(h.allocator.place(block), Place::Free);
    }

    #[test]
    fn a_heap_of_nothing_gives_nothing() {
        // SAFETY: no byte of the empty range is ever accessed.
        let mut a = unsafe { Allocator::new(std::ptr::dangling_mut(), 0, 16) };
        assert_eq!(a.allocate(1, 16), None);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Allocate(usize, u32),
        Reallocate(usize, usize),
        Free(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (1..6000usize, 0..13u32).prop_map(|(n, a)| Op::Allocate(n, a)),
            (any::<usize>(), 1..6000usize).prop_map(|(i, n)| Op::Reallocate(i, n)),
            any::<usize>().prop_map(Op::Free),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

        /// Two PEs that make the same calls get the same offsets; blocks never overlap, are
        /// aligned, and keep their contents.
        #[test]
        fn offsets_are_symmetric(ops in proptest::collection::vec(op(), 1..60)) {
            let mut pes = [heap(256 << 10), heap(256 << 10)];
            // Offsets agree where bases agree modulo the largest alignment asked for.
            let skew = pes[0].base % 4096 != pes[1].base % 4096;
            let mut live: Vec<(usize, usize, u8)> = Vec::new();
            for (step, op) in ops.into_iter().enumerate() {
                let mark = step as u8;
                match op {
                    Op::Allocate(n, log) => {
                        let alignment = if skew { 16 } else { 1 << log };
                        let got = pes.each_mut().map(|h| {
                            h.allocator.allocate(n, alignment).map(|p| p.addr() - h.base)
                        });
                        prop_assert_eq!(got[0], got[1]);
                        let Some(offset) = got[0] else { continue };
                        prop_assert!((pes[0].base + offset).is_multiple_of(alignment));
                        for &(o, len, _) in &live {
                            prop_assert!(offset + n <= o || o + len <= offset);
                        }
                        fill(&mut pes[0], offset, n, mark);
                        live.push((offset, n, mark));
                    }
                    Op::Reallocate(i, n) if !live.is_empty() => {
                        let i = i % live.len();
                        let (offset, len, mark) = live[i];
                        let got = pes.each_mut().map(|h| {
                            let block = std::ptr::with_exposed_provenance_mut(h.base + offset);
                            h.allocator.reallocate(block, n).expect("live").map(|p| p.addr() - h.base)
                        });
                        prop_assert_eq!(got[0], got[1]);
                        let Some(offset) = got[0] else { continue };
                        check(&mut pes[0], offset, n.min(len), mark);
                        fill(&mut pes[0], offset, n, mark);
                        live[i] = (offset, n, mark);
                    }
                    Op::Free(i) if !live.is_empty() => {
                        let (offset, len, mark) = live.swap_remove(i % live.len());
                        check(&mut pes[0], offset, len, mark);
                        for h in &mut pes {
                            let block = std::ptr::with_exposed_provenance_mut(h.base + offset);
                            h.allocator.free(block).expect("live");
                        }
                    }
                    Op::Reallocate(..) | Op::Free(_) => {}
                }
            }
        }
    }

    fn fill(h: &mut Heap, offset: usize, n: usize, mark: u8) {
        let base = h.memory.as_mut_ptr().cast::<u8>();
        // SAFETY: a live block of the vector that holds the heap.
        unsafe { base.add(offset).write_bytes(mark, n) }
    }

    fn check(h: &mut Heap, offset: usize, n: usize, mark: u8) {
        let base = h.memory.as_mut_ptr().cast::<u8>();
        for i in offset..offset + n {
            // SAFETY: a live block of the vector that holds the heap.
            assert_eq!(unsafe { base.add(i).read() }, mark);
        }
    }
}
