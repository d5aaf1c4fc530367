//! The memory of a PE's segment: zeroed, and not resident until it is written.
#![allow(unsafe_code)]

use rushmem_transport::mem::{self, Amo};
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// The default alignment of the system's allocator. For a larger one, `alloc_zeroed` would write
/// zeros and so touch all pages.
const ALIGNMENT: usize = 16;

/// Owned memory that peers read and write. Every access of this PE is checked to lie within it.
pub(crate) struct PeMemory {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: `base` is an address of memory that this owns, which is valid on all threads.
unsafe impl Send for PeMemory {}
// SAFETY: all accesses through a shared reference are those of `mem`, which other threads and
// processes may make to the same memory at the same time.
unsafe impl Sync for PeMemory {}

impl PeMemory {
    pub(crate) fn new(nbytes: usize) -> PeMemory {
        let layout = Layout::from_size_align(nbytes, ALIGNMENT).expect("a sane size");
        // SAFETY: the size of `layout` is not zero: every case has memory.
        let base = unsafe { alloc_zeroed(layout) };
        assert!(!base.is_null(), "{nbytes} bytes of memory");
        PeMemory { base, layout }
    }

    pub(crate) fn nbytes(&self) -> usize {
        self.layout.size()
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Returns the address of a range, which must be within the memory.
    fn address(&self, offset: usize, nbytes: usize) -> *mut u8 {
        let end = offset.checked_add(nbytes);
        assert!(
            end.is_some_and(|end| end <= self.nbytes()),
            "in the segment"
        );
        self.base.wrapping_add(offset)
    }

    pub(crate) fn read(&self, offset: usize, nbytes: usize) -> Vec<u8> {
        let from = self.address(offset, nbytes);
        let mut bytes = vec![0; nbytes];
        // SAFETY: `from` was checked to be within the memory; the vector has as many bytes.
        unsafe { mem::copy_bytes::<mem::AtomicLoads>(bytes.as_mut_ptr(), from, nbytes) };
        bytes
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.address(offset, bytes.len());
        // SAFETY: `to` was checked to be within the memory.
        unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, bytes.as_ptr(), bytes.len()) };
    }

    /// Returns the address of a word, which is aligned and within the memory.
    pub(crate) fn word<T: Amo>(&self, offset: usize) -> *mut T {
        let word = self.address(offset, size_of::<T>());
        assert!(
            word.addr().is_multiple_of(size_of::<T>()),
            "an aligned word"
        );
        word.cast()
    }
}

impl Drop for PeMemory {
    fn drop(&mut self) {
        // SAFETY: `base` was allocated with this layout.
        unsafe { dealloc(self.base, self.layout) };
    }
}
