//! Ranges of symmetric bytes, which are checked once, so that collectives need no unsafe code.
//!
//! A [`SymmetricRange`] is in this PE's heap, static data or internal area, and its image is in the
//! same segment of every other PE: segments have the same layout on all PEs and are mapped for the
//! life of the process. Peers may change the bytes at any time; copies and combinations use the
//! values that they find. A range may also be private memory, which has no image. The copies to
//! other PEs are in `net::copy` of `communication`.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::job::{Job, permission};
use crate::memory::buffers::NUMBER;
use crate::memory::constants::SOURCE;
use crate::memory::images::Images;
use crate::memory::{address, checks, constants, statics};
use rushmem_transport::{Pe, RemoteAddr, Segment, mem};
use std::fmt;
use std::mem::MaybeUninit;

/// Maximum number of bytes of scratch memory: it fits a first-level cache together with its
/// operands.
pub const SCRATCH: usize = 8 << 10;

/// Bytes that are mapped in this process: of this PE's symmetric memory, of private memory, or of a
/// peer's memory (an [`image`](SymmetricRange::image)).
#[derive(Clone, Copy, Debug)]
pub struct SymmetricRange {
    /// Where its images on other PEs are; `None` for private memory, or an image on another PE.
    images: Option<&'static Images>,
    /// Bytes from the segment's start, or for a constant from the program's load address; in a
    /// registered buffer that is at different offsets of the heaps, its
    /// [`place_on_all_pes`](crate::memory::buffers::Buffer::place_on_all_pes). Has no meaning for
    /// private memory.
    offset: usize,
    start: *mut u8,
    nbytes: usize,
}

/// A constant of the program is its own image: it is equal on all PEs. So is a range of no bytes.
static OF_CONSTANTS: Images = Images::of_constants();

impl SymmetricRange {
    /// Returns a range of no bytes. No constant, since Rust 1.88 has none that refer to atomics.
    #[inline(always)]
    pub fn empty() -> SymmetricRange {
        SymmetricRange {
            images: Some(&OF_CONSTANTS),
            offset: 0,
            start: std::ptr::null_mut(),
            nbytes: 0,
        }
    }

    /// Creates a range of `nbytes` bytes at `start`, `offset` bytes from the start of the segment
    /// that has these images.
    ///
    /// # Safety
    /// The bytes are this part of that segment.
    pub unsafe fn new(
        images: &'static Images,
        offset: usize,
        start: *mut u8,
        nbytes: usize,
    ) -> SymmetricRange {
        SymmetricRange {
            images: Some(images),
            offset,
            start,
            nbytes,
        }
    }

    /// Calls `f` with a private copy of the bytes, which is valid until `f` returns.
    #[inline(never)] // A caller that needs no copy would have the large frame, too.
    pub fn with_copy<R>(self, f: impl FnOnce(SymmetricRange) -> R) -> R {
        // Aligned as the largest elements of a strided copy.
        let mut scratch = [MaybeUninit::<u128>::uninit(); SCRATCH / size_of::<u128>()];
        let mut allocated = Vec::new();
        let memory = if self.nbytes <= SCRATCH {
            scratch.as_mut_slice()
        } else {
            allocated.resize(
                self.nbytes.div_ceil(size_of::<u128>()),
                MaybeUninit::uninit(),
            );
            allocated.as_mut_slice()
        };

        let copy = SymmetricRange {
            images: None,
            offset: 0,
            start: memory.as_mut_ptr().cast(),
            nbytes: self.nbytes,
        };
        self.copy_here(copy);
        f(copy)
    }

    /// Calls `f` with `nbytes` bytes of uninitialized private memory, at most [`SCRATCH`], which is
    /// valid until `f` returns.
    pub fn with_scratch<R>(nbytes: usize, f: impl FnOnce(SymmetricRange) -> R) -> R {
        let mut scratch = [MaybeUninit::<u128>::uninit(); SCRATCH / size_of::<u128>()];
        assert!(nbytes <= SCRATCH, "{nbytes} bytes of scratch");
        f(SymmetricRange {
            images: None,
            offset: 0,
            start: scratch.as_mut_ptr().cast(),
            nbytes,
        })
    }

    /// Creates a range of private memory. The caller must not use it after the end of `memory`.
    pub fn of_private(memory: &mut [MaybeUninit<u8>]) -> SymmetricRange {
        let nbytes = memory.len();
        SymmetricRange {
            images: None,
            offset: 0,
            start: memory.as_mut_ptr().cast(),
            nbytes,
        }
    }

    /// Copies the bytes to the start of `dest`, which is mapped here.
    ///
    /// # Panics
    /// If `dest` is shorter.
    pub fn copy_here(self, dest: SymmetricRange) {
        assert!(
            self.nbytes <= dest.nbytes,
            "{} bytes into {}",
            self.nbytes,
            dest.nbytes
        );
        // SAFETY: both ranges are mapped here; the assertion shows that `dest` is long enough.
        unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest.start, self.start, self.nbytes) };
    }

    /// Returns the image on `pe` as a range to read from, if it is mapped here.
    ///
    /// # Panics
    /// If the range is private memory or an image.
    #[inline]
    pub fn image(self, pe: Pe) -> Option<SymmetricRange> {
        self.on(pe).map(|start| SymmetricRange {
            images: None,
            offset: 0,
            start,
            ..self
        })
    }

    /// Returns the address of the bytes in this process.
    #[inline]
    pub fn start(self) -> *mut u8 {
        self.start
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn nbytes(self) -> usize {
        self.nbytes
    }

    /// Returns true if the two ranges have a byte in common, or one is an empty part within the
    /// other.
    pub fn overlaps(self, other: SymmetricRange) -> bool {
        let start = self.start.addr();
        let other_start = other.start.addr();
        start < other_start + other.nbytes && other_start < start + self.nbytes
    }

    /// Returns the distance in bytes from the start of its segment to the range, or for a
    /// registered buffer a number that no other place has; the same on every PE. Has no meaning for
    /// private memory.
    #[inline]
    pub fn offset(self) -> usize {
        self.offset
    }

    /// Returns true if both begin at the same byte.
    pub fn starts_with(self, other: SymmetricRange) -> bool {
        self.start == other.start
    }

    /// Returns the `nbytes` bytes from byte `first`.
    ///
    /// # Panics
    /// If they are not within the range.
    #[inline(always)]
    pub fn part(self, first: usize, nbytes: usize) -> SymmetricRange {
        let within = first
            .checked_add(nbytes)
            .is_some_and(|end| end <= self.nbytes);
        assert!(within, "{nbytes} bytes from {first} of {}", self.nbytes);
        SymmetricRange {
            offset: self.offset + first,
            start: self.start.wrapping_add(first),
            nbytes,
            ..self
        }
    }

    /// Returns all bytes from byte `first`.
    #[inline]
    pub fn from(self, first: usize) -> SymmetricRange {
        self.part(first, self.nbytes - first)
    }

    /// Stores `bytes` in the range.
    ///
    /// # Panics
    /// If their number is not that of the range.
    pub fn write(self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.nbytes, "bytes that are written");
        // SAFETY: the range is mapped here; the assertion shows that the slice has as many bytes.
        unsafe { mem::copy_bytes::<mem::VolatileLoads>(self.start, bytes.as_ptr(), self.nbytes) };
    }

    /// Returns the first eight bytes as a word.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn first_word(self) -> u64 {
        assert!(
            self.nbytes >= size_of::<u64>(),
            "a word in {} bytes",
            self.nbytes
        );
        let mut word = 0_u64;
        let dest = (&raw mut word).cast();
        // SAFETY: the assertion shows that the range has a word; the destination is a local one.
        unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest, self.start, size_of::<u64>()) };
        word
    }

    /// Sets all bytes to zero.
    pub fn clear(self) {
        // Copied, since a plain write would be a data race with an access by a peer.
        static ZEROS: [u8; 4096] = [0; 4096];

        for offset in (0..self.nbytes).step_by(ZEROS.len()) {
            let nbytes = ZEROS.len().min(self.nbytes - offset);
            self.part(offset, nbytes).write(&ZEROS[..nbytes]);
        }
    }

    /// Returns a pointer to the image on `pe`, if it is mapped here.
    ///
    /// # Panics
    /// If the range is private memory or an image.
    #[inline]
    pub fn on(self, pe: Pe) -> Option<*mut u8> {
        let images = self.images.expect("a range without an image elsewhere");
        images
            .delta(pe)
            .map(|delta| self.start.wrapping_offset(delta))
    }

    /// Returns the location of the first byte on `pe` for a transport.
    ///
    /// # Panics
    /// If the range has no segment.
    #[inline]
    pub fn remote(self, pe: Pe) -> RemoteAddr {
        let images = self.images.expect("a range without an image elsewhere");
        let offset = match images.offset_on(pe) {
            Some(start) => start + self.offset % (1 << NUMBER),
            None => self.offset,
        };
        RemoteAddr {
            segment: images.segment.expect("constants are on every PE"),
            offset: offset as u64,
        }
    }
}

/// Returns the range of an argument of a routine; an empty one at no address for 0 bytes. Ends the
/// job with an error if the bytes are not symmetric. The argument `source`, which a routine only
/// reads, may also be a constant.
#[inline]
pub fn symmetric(
    job: &Job,
    call: Call,
    argument: &'static str,
    address: *const u8,
    nbytes: usize,
) -> SymmetricRange {
    match job.map.offset_in_heap(address.addr(), nbytes) {
        Some(offset) if nbytes > 0 => {
            let images = job.images(Segment::Heap);
            // SAFETY: the bytes are at this offset of the heap.
            unsafe { SymmetricRange::new(images, offset, address.cast_mut(), nbytes) }
        }
        _ => symmetric_elsewhere(job, call, argument, address, nbytes),
    }
}

/// Returns the range of an argument that is not in the heap, or is while accesses are observed. One
/// function for all of this, so that an argument in the heap takes a few compares.
#[inline(never)]
fn symmetric_elsewhere(
    job: &Job,
    call: Call,
    argument: &'static str,
    address: *const u8,
    nbytes: usize,
) -> SymmetricRange {
    if nbytes == 0 {
        return SymmetricRange::empty();
    }
    if let Some((segment, offset)) = job.map.locate(address.addr(), nbytes) {
        let images = job.images(segment);
        // SAFETY: the bytes were just located in the segment.
        return unsafe { SymmetricRange::new(images, offset, address.cast_mut(), nbytes) };
    }

    let constant = || (argument == SOURCE).then(|| constant(job, address, nbytes))?;
    registered(job, call, address, nbytes)
        .or_else(constant)
        .unwrap_or_else(|| require_symmetric(job, call, argument, address, nbytes))
}

/// Returns a number that identifies the symmetric byte at an address, the same on all PEs; `None`
/// if there is none. The byte behind an object has one, too.
pub fn place_on_all_pes(job: &Job, address: *const u8) -> Option<usize> {
    let addr = address.addr();
    match job.map.buffers().find(addr, 0) {
        Some(buffer) if !buffer.is_same_on_all() => Some(buffer.place_on_all_pes(addr)),
        _ => address::locate(addr, 0).map(|(_, offset)| offset),
    }
}

/// Returns true if [`symmetric`] has a range for these bytes.
pub fn is_symmetric(job: &Job, address: *const u8, nbytes: usize) -> bool {
    let addr = address.addr();
    nbytes == 0
        || job.map.locate(addr, nbytes).is_some()
        // The map of the PE is empty while accesses are observed.
        || address::locate(addr, nbytes).is_some()
}

/// Returns the range of these bytes, in the heap, if they are in a registered buffer.
fn registered(job: &Job, call: Call, address: *const u8, nbytes: usize) -> Option<SymmetricRange> {
    let buffer = job.map.buffers().find(address.addr(), nbytes)?;
    permission::check(call, job);

    let in_heap = buffer.in_heap + (address.addr() - buffer.start);
    Some(SymmetricRange {
        images: Some(buffer.images),
        offset: if buffer.is_same_on_all() {
            in_heap - job.memory.heap().addr()
        } else {
            buffer.place_on_all_pes(address.addr())
        },
        start: std::ptr::with_exposed_provenance_mut(in_heap),
        nbytes,
    })
}

/// Returns the range of these bytes if they are constants of the program.
fn constant(job: &Job, address: *const u8, nbytes: usize) -> Option<SymmetricRange> {
    let addr = address.addr();
    constants::are_equal(job, addr, nbytes).then(|| SymmetricRange {
        images: Some(&OF_CONSTANTS),
        offset: addr - statics::own().load_address(),
        start: address.cast_mut(),
        nbytes,
    })
}

/// Returns the range of these bytes, also while accesses are observed. Ends the job with an error
/// if they are not symmetric.
fn require_symmetric(
    job: &Job,
    call: Call,
    argument: &'static str,
    address: *const u8,
    nbytes: usize,
) -> SymmetricRange {
    // Names PE 0, which exists in every job, so the check never fails because of the PE.
    let (segment, offset) = checks::require_symmetric(call, argument, address.addr(), nbytes, 0);
    // SAFETY: the bytes were just located in the segment.
    unsafe { SymmetricRange::new(job.images(segment), offset, address.cast_mut(), nbytes) }
}

/// Prints the number of bytes, the address of the first one, and the address behind the last one.
impl fmt::Display for SymmetricRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.start.wrapping_add(self.nbytes);
        write!(f, "{} bytes from {:p} to {end:p}", self.nbytes, self.start)
    }
}
