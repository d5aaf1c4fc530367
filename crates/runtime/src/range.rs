//! Runs of symmetric bytes that were checked once, so that collectives need no unsafe code.
//!
//! A [`Range`] lies in this PE's heap, static data or internal area, and so does its image on every PE of the team
//! that a collective works for: segments are laid out alike everywhere and stay mapped for the life
//! of the process. What peers do to the bytes meanwhile is theirs; copies and combinations take them
//! as they come.

use crate::address;
use crate::combine::Combine;
use crate::ctx::Handle;
use crate::{neighbour, network};
use core::ffi::c_int;
use rushmem_transport::{Completion, LocalBuf, Pe, Put, RemoteAddr, Segment, mem};
use std::fmt;

/// Bytes of this PE's symmetric memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// `None` for private memory, which has no image anywhere and is read alone.
    segment: Option<Segment>,
    /// Bytes from the segment's start.
    offset: usize,
    start: *mut u8,
    nbytes: usize,
}

impl Range {
    /// No bytes at all.
    pub(crate) const EMPTY: Range = Range {
        segment: Some(Segment::Internal),
        offset: 0,
        start: std::ptr::null_mut(),
        nbytes: 0,
    };

    /// The `nbytes` bytes at `start`, which are `offset` bytes into their segment.
    ///
    /// # Safety
    /// They are that part of this PE's symmetric memory.
    pub(crate) unsafe fn new(
        segment: Segment,
        offset: usize,
        start: *mut u8,
        nbytes: usize,
    ) -> Range {
        Range { segment: Some(segment), offset, start, nbytes }
    }

    /// Call `f` with a private copy of the bytes, to read them from until `f` returns.
    pub(crate) fn with_copy<R>(self, f: impl FnOnce(Range) -> R) -> R {
        // As far aligned as the largest elements of a strided copy.
        let mut copy = vec![0u128; self.nbytes.div_ceil(size_of::<u128>())];
        let start: *mut u8 = copy.as_mut_ptr().cast();
        // SAFETY: symmetric memory of this PE, and a private array that is at least as long.
        unsafe { mem::copy_bytes(start, self.start, self.nbytes) };
        f(Range { segment: None, offset: 0, start, nbytes: self.nbytes })
    }

    /// Whether both have a byte in common.
    pub(crate) fn overlaps(self, other: Range) -> bool {
        let (a, b) = (self.start.addr(), other.start.addr());
        a < b + other.nbytes && b < a + self.nbytes
    }

    /// Bytes from the start of its segment: the same on every PE.
    pub(crate) fn offset(self) -> usize {
        self.offset
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
        Range { offset: self.offset + at, start: self.start.wrapping_add(at), nbytes, ..self }
    }

    /// All bytes from byte `at`.
    pub(crate) fn from(self, at: usize) -> Range {
        self.part(at, self.nbytes - at)
    }

    /// Copy the bytes to the same place of `dest` on `pe`, which may be this PE.
    pub(crate) fn copy_to(self, pe: Pe, dest: Range) {
        assert!(self.nbytes <= dest.nbytes, "{} bytes into {}", self.nbytes, dest.nbytes);
        match dest.on(pe) {
            // SAFETY: symmetric memory of this PE and of a mapped one; `copy_bytes` allows overlap.
            Some(to) => unsafe { mem::copy_bytes(to, self.start, self.nbytes) },
            // SAFETY: symmetric memory of this PE.
            None => unsafe { put(pe, dest.remote(0), self.start, self.nbytes) },
        }
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
        let from = self.start.cast_const();
        let Some(to) = dest.on(pe) else {
            for i in 0..nelems {
                let to = dest.remote(i * dst * elem_bytes);
                let from = from.wrapping_add(i * sst * elem_bytes);
                // SAFETY: an element of symmetric memory of this PE.
                unsafe { put(pe, to, from, elem_bytes) };
            }
            return;
        };
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

    /// The image on `pe`, where that is mapped here.
    fn on(self, pe: Pe) -> Option<*mut u8> {
        address::delta(self.segment(), pe.0 as i32).map(|delta| self.start.wrapping_offset(delta))
    }

    fn remote(self, at: usize) -> RemoteAddr {
        RemoteAddr { segment: self.segment(), offset: (self.offset + at) as u64 }
    }

    fn segment(self) -> Segment {
        self.segment.expect("private memory is read alone")
    }
}

/// How many bytes, from where to where.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.start.wrapping_add(self.nbytes);
        write!(f, "{} bytes from {:p} to {end:p}", self.nbytes, self.start)
    }
}

/// Copy to memory of `pe` that is not mapped here.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes.
unsafe fn put(pe: Pe, dest: RemoteAddr, source: *const u8, nbytes: usize) {
    match neighbour::way(network::LIBRARY, pe.0 as c_int, dest) {
        // SAFETY: valid by contract.
        Some(way) => unsafe { way.put(Handle::DEFAULT, source, nbytes) },
        None => {
            let source = LocalBuf::source(source, nbytes);
            let put = Put { dest, source, completion: Completion::Now };
            // SAFETY: valid by contract.
            network::on_library(|endpoint| unsafe { endpoint.put(pe, put) })
        }
    }
}
