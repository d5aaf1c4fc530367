//! Runs of symmetric bytes that were checked once, so that collectives need no unsafe code.
//!
//! A [`Range`] lies in this PE's heap or internal area, and so does its image on every PE of the team
//! that a collective works for: segments are laid out alike everywhere and stay mapped for the life
//! of the process. What peers do to the bytes meanwhile is theirs; copies and combinations take them
//! as they come.

use crate::address;
use crate::combine::Combine;
use rushmem_transport::{Pe, mem};

/// Bytes of this PE's symmetric memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    start: *mut u8,
    nbytes: usize,
}

impl Range {
    /// No bytes at all.
    pub(crate) const EMPTY: Range = Range { start: std::ptr::null_mut(), nbytes: 0 };

    /// The `nbytes` bytes at `start`.
    ///
    /// # Safety
    /// They lie in one segment of this PE's symmetric memory, or there are none.
    pub(crate) unsafe fn new(start: *mut u8, nbytes: usize) -> Range {
        Range { start, nbytes }
    }

    /// Whether both begin at the same byte.
    pub(crate) fn starts_with(self, other: Range) -> bool {
        self.start == other.start
    }

    /// The `nbytes` bytes from byte `at`.
    ///
    /// # Panics
    /// When they are not within.
    pub(crate) fn part(self, at: usize, nbytes: usize) -> Range {
        let within = at.checked_add(nbytes).is_some_and(|end| end <= self.nbytes);
        assert!(within, "{nbytes} bytes from {at} of {}", self.nbytes);
        Range { start: self.start.wrapping_add(at), nbytes }
    }

    /// All bytes from byte `at`.
    pub(crate) fn from(self, at: usize) -> Range {
        self.part(at, self.nbytes - at)
    }

    /// Copy the bytes to the same place of `dest` on `pe`, which may be this PE.
    pub(crate) fn copy_to(self, pe: Pe, dest: Range) {
        assert!(self.nbytes <= dest.nbytes, "{} bytes into {}", self.nbytes, dest.nbytes);
        // SAFETY: both are symmetric memory of this PE or its image on a mapped one; `copy_bytes`
        // allows overlap.
        unsafe { mem::copy_bytes(dest.on(pe), self.start, self.nbytes) }
    }

    /// Copy `nelems` elements of `elem_bytes` bytes, `sst` elements apart here and `dst` at `dest` on
    /// `pe`.
    pub(crate) fn copy_strided_to(
        self,
        pe: Pe,
        dest: Range,
        (dst, sst): (usize, usize),
        nelems: usize,
        elem_bytes: usize,
    ) {
        let needed = |stride: usize| nelems.saturating_sub(1) * stride * elem_bytes + elem_bytes;
        if nelems == 0 {
            return;
        }
        assert!(needed(dst) <= dest.nbytes && needed(sst) <= self.nbytes, "a stride too far");
        let (to, from) = (dest.on(pe), self.start.cast_const());
        macro_rules! of {
            ($t:ty) => {
                // SAFETY: symmetric memory of this PE and its image on a mapped one, long enough for
                // the last element.
                unsafe {
                    let (dst, sst) = (dst as isize, sst as isize);
                    mem::copy_strided::<$t>(to.cast(), from.cast(), dst, sst, 1, nelems)
                }
            };
        }
        match elem_bytes {
            1 => of!(u8),
            2 => of!(u16),
            4 => of!(u32),
            8 => of!(u64),
            16 => of!(u128),
            _ => unreachable!("elements of {elem_bytes} bytes"),
        }
    }

    /// Set all bytes to zero.
    pub(crate) fn clear(self) {
        if self.nbytes > 0 {
            // SAFETY: symmetric memory of this PE.
            unsafe { self.start.write_bytes(0, self.nbytes) }
        }
    }

    /// Combine `left` and `right` element by element into this; it may be one of them.
    pub(crate) fn combine(self, op: &Combine, left: Range, right: Range) {
        let nelems = self.nbytes / op.elem_bytes;
        assert!(left.nbytes >= self.nbytes && right.nbytes >= self.nbytes, "operands too short");
        let (dest, left, right) = (self.start.cast(), left.start.cast(), right.start.cast());
        // SAFETY: symmetric memory of this PE, `nelems` elements each; aligned as the type of the
        // user's arrays, landings to a cache line.
        unsafe { (op.f)(dest, left, right, nelems) }
    }

    fn on(self, pe: Pe) -> *mut u8 {
        let delta = address::delta(pe.0 as i32).expect("every PE of a one-node job is mapped");
        self.start.wrapping_offset(delta)
    }
}
