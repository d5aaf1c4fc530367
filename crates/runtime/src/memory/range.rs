//! Runs of symmetric bytes that are checked once, so that collectives need no unsafe code.
//!
//! A [`SymmetricRange`] lies in this PE's heap, static data or internal area, and so does its image
//! on every PE of the team for which a collective works: segments have the same layout everywhere
//! and stay mapped for the life of the process. Peers may change the bytes at any time; copies and
//! combinations use the values that they find.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::memory::{address, checks};
use rushmem_transport::{Pe, RemoteAddr, Segment, mem};
use std::fmt;
use std::mem::MaybeUninit;

/// The largest scratch memory: it fits a first-level cache with the data that are read into it.
pub(crate) const SCRATCH: usize = 8 << 10;

/// Bytes of this PE's symmetric memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymmetricRange {
    /// `None` for private memory, which has no image on other PEs.
    segment: Option<Segment>,
    /// Bytes from the segment's start.
    offset: usize,
    start: *mut u8,
    nbytes: usize,
}

impl SymmetricRange {
    /// No bytes at all.
    pub(crate) const EMPTY: SymmetricRange = SymmetricRange {
        segment: Some(Segment::Internal),
        offset: 0,
        start: std::ptr::null_mut(),
        nbytes: 0,
    };

    /// Returns the `nbytes` bytes at `start`, which are `offset` bytes into their segment.
    ///
    /// # Safety
    /// They are this part of this PE's symmetric memory.
    pub(crate) unsafe fn new(
        segment: Segment,
        offset: usize,
        start: *mut u8,
        nbytes: usize,
    ) -> SymmetricRange {
        SymmetricRange { segment: Some(segment), offset, start, nbytes }
    }

    /// Calls `f` with a private copy of the bytes, to read them from until `f` returns.
    pub(crate) fn with_copy<R>(self, f: impl FnOnce(SymmetricRange) -> R) -> R {
        // Aligned like the largest elements of a strided copy.
        let mut copy = vec![0u128; self.nbytes.div_ceil(size_of::<u128>())];
        let start: *mut u8 = copy.as_mut_ptr().cast();
        // SAFETY: symmetric memory of this PE, and a private array that is at least as long.
        unsafe { mem::copy_bytes::<mem::AtomicLoads>(start, self.start, self.nbytes) };
        f(SymmetricRange { segment: None, offset: 0, start, nbytes: self.nbytes })
    }

    /// Calls `f` with uninitialized private memory of the same size, which it may use until it
    /// returns. At most [`SCRATCH`] bytes.
    pub(crate) fn with_scratch<R>(nbytes: usize, f: impl FnOnce(SymmetricRange) -> R) -> R {
        let mut scratch = [MaybeUninit::<u128>::uninit(); SCRATCH / size_of::<u128>()];
        assert!(nbytes <= SCRATCH, "{nbytes} bytes of scratch");
        f(SymmetricRange { segment: None, offset: 0, start: scratch.as_mut_ptr().cast(), nbytes })
    }

    /// Returns a range of private memory, which may be accessed as long as it exists.
    pub(crate) fn of_private(memory: &mut [MaybeUninit<u8>]) -> SymmetricRange {
        let nbytes = memory.len();
        SymmetricRange { segment: None, offset: 0, start: memory.as_mut_ptr().cast(), nbytes }
    }

    /// Copies the bytes to `dest` here, which may be private memory.
    pub(crate) fn copy_here(self, dest: SymmetricRange) {
        assert!(self.nbytes <= dest.nbytes, "{} bytes into {}", self.nbytes, dest.nbytes);
        // SAFETY: symmetric memory that is mapped here, or private memory.
        unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest.start, self.start, self.nbytes) };
    }

    /// Returns the image on `pe`, to read from, if it is mapped here.
    pub(crate) fn image(self, pe: Pe) -> Option<SymmetricRange> {
        self.on(pe).map(|start| SymmetricRange { segment: None, offset: 0, start, ..self })
    }

    /// Returns the address of the bytes in this process.
    pub(crate) fn start(self) -> *mut u8 {
        self.start
    }

    /// Returns the number of bytes.
    pub(crate) fn nbytes(self) -> usize {
        self.nbytes
    }

    /// Returns true if the two have a byte in common.
    pub(crate) fn overlaps(self, other: SymmetricRange) -> bool {
        let (a, b) = (self.start.addr(), other.start.addr());
        a < b + other.nbytes && b < a + self.nbytes
    }

    /// Returns the distance in bytes from the start of its segment, the same on every PE.
    pub(crate) fn offset(self) -> usize {
        self.offset
    }

    /// Returns true if both begin at the same byte.
    pub(crate) fn starts_with(self, other: SymmetricRange) -> bool {
        self.start == other.start
    }

    /// Returns the `nbytes` bytes from byte `at`.
    ///
    /// # Panics
    /// When they are not within.
    #[inline(always)]
    pub(crate) fn part(self, at: usize, nbytes: usize) -> SymmetricRange {
        let within = at.checked_add(nbytes).is_some_and(|end| end <= self.nbytes);
        assert!(within, "{nbytes} bytes from {at} of {}", self.nbytes);
        SymmetricRange {
            offset: self.offset + at,
            start: self.start.wrapping_add(at),
            nbytes,
            ..self
        }
    }

    /// Returns all bytes from byte `at`.
    pub(crate) fn from(self, at: usize) -> SymmetricRange {
        self.part(at, self.nbytes - at)
    }

    /// Sets the bytes, of which there are as many.
    pub(crate) fn write(self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.nbytes, "bytes that are written");
        // SAFETY: symmetric memory of this PE, and private memory.
        unsafe { mem::copy_bytes::<mem::VolatileLoads>(self.start, bytes.as_ptr(), self.nbytes) };
    }

    /// Returns the first eight bytes, as a word.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn first_word(self) -> u64 {
        assert!(self.nbytes >= size_of::<u64>(), "a word in {} bytes", self.nbytes);
        let mut word = 0_u64;
        let dest = (&raw mut word).cast();
        // SAFETY: symmetric memory of this PE, which others may write meanwhile, and a local word.
        unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest, self.start, size_of::<u64>()) };
        word
    }

    /// Sets all bytes to zero.
    pub(crate) fn clear(self) {
        if self.nbytes > 0 {
            // SAFETY: symmetric memory of this PE.
            unsafe { self.start.write_bytes(0, self.nbytes) }
        }
    }

    /// Returns the image on `pe`, if it is mapped here.
    pub(crate) fn on(self, pe: Pe) -> Option<*mut u8> {
        address::delta(self.segment(), pe.0 as i32).map(|delta| self.start.wrapping_offset(delta))
    }

    /// Returns the location of byte `at` on every PE, for a transport.
    pub(crate) fn remote(self, at: usize) -> RemoteAddr {
        RemoteAddr { segment: self.segment(), offset: (self.offset + at) as u64 }
    }

    fn segment(self) -> Segment {
        self.segment.expect("private memory has no image elsewhere")
    }
}

/// Returns this PE's copy of the symmetric bytes on which a collective works.
pub(crate) fn symmetric(
    call: Call,
    argument: &'static str,
    address: *const u8,
    nbytes: usize,
) -> SymmetricRange {
    if nbytes == 0 {
        return SymmetricRange::EMPTY;
    }
    let addr = address.addr();
    // Every PE has them, also the first one.
    let (segment, offset) = address::locate_unchecked(addr, nbytes)
        .unwrap_or_else(|| checks::require_symmetric(call, argument, addr, nbytes, 0));
    // SAFETY: that part of the segment, as was just found.
    unsafe { SymmetricRange::new(segment, offset, address.cast_mut(), nbytes) }
}

/// Prints the number of bytes and their first and last addresses.
impl fmt::Display for SymmetricRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.start.wrapping_add(self.nbytes);
        write!(f, "{} bytes from {:p} to {end:p}", self.nbytes, self.start)
    }
}
