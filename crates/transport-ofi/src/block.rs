//! Memory that libfabric reads and writes, divided into cells of equal size. A block gives away
//! only addresses; its owner knows which cells libfabric uses.
//!
//! A block has pages of its own: a NIC that has pinned them goes on to use them where the program
//! registers a buffer beside them, whose pages the heap replaces.
#![allow(unsafe_code)]

use rushmem_transport::LocalBuf;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::null_mut;

/// Cells that were zeroed when they were allocated.
pub(crate) struct CellBlock {
    base: *mut u8,
    nbytes: usize,
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
        let nbytes = n * cell;
        assert!(nbytes > 0, "cells that are not empty");

        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice, which replaces none.
        let mapped = unsafe { mmap_anonymous(null_mut(), nbytes, protection, MapFlags::PRIVATE) };
        let base = mapped.expect("memory for cells").cast();

        CellBlock {
            base,
            nbytes,
            shift: cell.ilog2(),
        }
    }

    pub(crate) fn whole(&self) -> LocalBuf {
        LocalBuf {
            base: self.base,
            nbytes: self.nbytes,
        }
    }

    #[inline]
    pub(crate) fn cell(&self, i: u32) -> LocalBuf {
        let offset = (i as usize) << self.shift;
        debug_assert!(offset < self.nbytes, "a cell of the block");
        LocalBuf {
            base: self.base.wrapping_add(offset),
            nbytes: 1 << self.shift,
        }
    }

    /// Returns the cell that contains an address; `None` for an address outside.
    #[inline]
    pub(crate) fn index(&self, address: *const u8) -> Option<u32> {
        let offset = address.addr().checked_sub(self.base.addr())?;
        if offset >= self.nbytes {
            return None;
        }
        Some((offset >> self.shift) as u32)
    }
}

impl Drop for CellBlock {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped these bytes, and only this drop unmaps them.
        let unmapped = unsafe { munmap(self.base.cast(), self.nbytes) };
        debug_assert!(unmapped.is_ok(), "a mapping");
    }
}
