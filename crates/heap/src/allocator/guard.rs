//! The guard words around a block, which show that something was written beyond its ends.
//!
//! They are written and read by volatile accesses of single bytes: the heap is shared memory, and
//! AddressSanitizer replaces the functions that copy or compare memory by ones that report accesses
//! to these bytes.
#![allow(unsafe_code)]

use std::ops::RangeInclusive;

/// Bytes of the guard on each side of a block.
pub(super) const GUARD: usize = 64;

/// The pattern of guards. A guard's byte depends on its address modulo 8, so that guards need no
/// alignment.
const WORD: [u8; 8] = [0xb1, 0x0c, 0x6a, 0x5d, 0xe4, 0x97, 0xf2, 0x3c];

fn expected(address: usize) -> u8 {
    WORD[address % WORD.len()]
}

/// Writes the guard at `start`.
///
/// # Safety
/// `start` is valid for writes of [`GUARD`] bytes.
pub(super) unsafe fn write(start: *mut u8) {
    for i in 0..GUARD {
        let byte = start.wrapping_add(i);
        // SAFETY: `byte` is one of the `GUARD` bytes from `start` on, which are valid for writes by
        // contract.
        unsafe { byte.write_volatile(expected(byte.addr())) };
    }
}

/// Returns the first and the last address of the guard at `start` that were overwritten.
///
/// # Safety
/// `start` is valid for reads of [`GUARD`] bytes.
pub(super) unsafe fn overwritten(start: *const u8) -> Option<RangeInclusive<usize>> {
    let mut overwritten: Option<RangeInclusive<usize>> = None;
    for i in 0..GUARD {
        let byte = start.wrapping_add(i);
        let address = byte.addr();
        // SAFETY: `byte` is one of the `GUARD` bytes from `start` on, which are valid for reads by
        // contract.
        if unsafe { byte.read_volatile() } != expected(address) {
            let first = overwritten.map_or(address, |range| *range.start());
            overwritten = Some(first..=address);
        }
    }
    overwritten
}
