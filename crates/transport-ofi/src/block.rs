//! Memory that libfabric reads and writes, divided into cells of equal size. A block gives away
//! only addresses; its owner knows which cells libfabric uses.
#![allow(unsafe_code)]

use rushmem_transport::LocalBuf;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Cells that were zeroed when they were allocated.
pub(crate) struct CellBlock {
    base: *mut u8,
    layout: Layout,
    /// The length of a cell in bytes is two to this power.
    shift: u32,
}

// SAFETY: the block owns the memory at `base`, and nothing else frees it. It gives away only
// addresses, and whoever accesses a cell proves that no other thread uses this cell.
unsafe impl Send for CellBlock {}

impl CellBlock {
    /// Returns `n` zeroed cells of `cell` bytes, rounded up to a power of two of at least 64. `n`
    /// is not 0.
    pub(crate) fn new(n: usize, cell: usize) -> CellBlock {
        // A power of two, so that a shift finds the cell of an address. At least 64, on which
        // atomic operations rely: they store three words in a cell.
        let cell = cell.next_power_of_two().max(64);

        // The default alignment of the system's allocator. For a larger one, `alloc_zeroed` would
        // write zeros and so touch all pages.
        let layout = Layout::from_size_align(n * cell, 16).expect("cells that fit in memory");
        assert!(layout.size() > 0, "cells that are not empty");

        // SAFETY: the size of `layout` is not 0, as asserted above.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }

        CellBlock {
            base,
            layout,
            shift: cell.ilog2(),
        }
    }

    pub(crate) fn whole(&self) -> LocalBuf {
        LocalBuf {
            base: self.base,
            nbytes: self.layout.size(),
        }
    }

    #[inline]
    pub(crate) fn cell(&self, i: u32) -> LocalBuf {
        let offset = (i as usize) << self.shift;
        debug_assert!(offset < self.layout.size(), "a cell of the block");
        LocalBuf {
            base: self.base.wrapping_add(offset),
            nbytes: 1 << self.shift,
        }
    }

    /// Returns the cell that contains an address; `None` for an address outside.
    #[inline]
    pub(crate) fn index(&self, address: *const u8) -> Option<u32> {
        let offset = address.addr().checked_sub(self.base.addr())?;
        if offset >= self.layout.size() {
            return None;
        }
        Some((offset >> self.shift) as u32)
    }
}

impl Drop for CellBlock {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated `base` with `layout`, and only this drop frees it.
        unsafe { dealloc(self.base, self.layout) };
    }
}
