//! The symmetric memory of a PE. Code of the engine and of the simulated network writes to it by
//! its address; checks read it between two such accesses.
#![allow(unsafe_code)]

use rushmem_transport::segments::heap_blocks::{ENTRY, TABLE};
use rushmem_transport::{LocalBuf, Pe, RemoteAddr, Segment};

/// Bytes of the heap.
pub const HEAP: usize = 64 << 10;
/// Bytes at the start of the heap that nobody changes.
pub const CONSTANT: usize = 4 << 10;
/// Bytes of the library's segment before its table of keys.
pub const FLAGS: usize = 8 << 10;
/// Bytes of the static segment.
pub const STATIC: usize = 8 << 10;
/// Bytes of the first block of a heap with keys.
pub const FIRST_BLOCK: usize = 8 << 10;
/// The number of blocks after the first: four for each doubling.
const FURTHER_BLOCKS: usize = 4 * (HEAP / FIRST_BLOCK).ilog2() as usize;

/// Returns the number of bytes of a segment.
pub fn nbytes(segment: Segment) -> usize {
    match segment {
        Segment::Heap => HEAP,
        Segment::Internal => FLAGS + TABLE,
        Segment::Static => STATIC,
    }
}

/// Returns a byte that depends on all bits of both numbers.
pub fn mix(salt: u64, index: u64) -> u8 {
    let salted = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index;
    (salted.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 56) as u8
}

/// Returns the byte at an offset of the part of a PE's heap that nobody changes.
pub fn constant(pe: Pe, offset: u64) -> u8 {
    mix(1 + u64::from(pe.0), offset)
}

/// Bytes of a key.
const KEY: usize = 24;

/// Returns the key of a block of a segment of a PE.
pub fn key(pe: Pe, segment: Segment, index: usize) -> [u8; KEY] {
    let salt = 100 + u64::from(pe.0) * 1000 + 300 * segment as u64 + index as u64;
    std::array::from_fn(|at| mix(salt, at as u64))
}

/// Returns the entry of a block in the table of keys of a PE: that block sizes have no limit, the
/// length of the key, and the key.
fn entry(pe: Pe, index: usize) -> Vec<u8> {
    let start = [63, KEY as u8, 0];
    [&start[..], &key(pe, Segment::Heap, index)].concat()
}

/// The segments of one PE.
pub struct Memory(Vec<*mut [u64]>);

impl Memory {
    /// Returns the memory of a PE, which is 0 except its constant part and its table of keys.
    pub fn new(pe: Pe) -> Memory {
        let all = Segment::ALL.map(|segment| vec![0u64; nbytes(segment) / 8].into_boxed_slice());
        let memory = Memory(all.into_iter().map(Box::into_raw).collect());

        for offset in 0..CONSTANT as u64 {
            memory.set(at(Segment::Heap, offset), &[constant(pe, offset)]);
        }

        for index in 1..=FURTHER_BLOCKS {
            let offset = FLAGS + (index - 1) * ENTRY;
            memory.set(at(Segment::Internal, offset as u64), &entry(pe, index));
        }

        memory
    }

    /// Returns a range by its address in this process.
    pub fn range(&self, at: RemoteAddr, nbytes: usize) -> LocalBuf {
        let segment = self.0[at.segment as usize];
        assert!(at.offset as usize + nbytes <= 8 * segment.len());

        LocalBuf {
            base: segment.cast::<u8>().wrapping_add(at.offset as usize),
            nbytes,
        }
    }

    /// Returns the bytes of a range. The caller uses them before any other code runs.
    pub fn bytes(&self, at: RemoteAddr, nbytes: usize) -> &[u8] {
        let range = self.range(at, nbytes);

        // SAFETY: `base` points to `nbytes` initialized bytes of a segment, which lives as long as
        // this. Nothing writes to them as long as the caller uses them.
        unsafe { std::slice::from_raw_parts(range.base, nbytes) }
    }

    /// Stores bytes.
    pub fn set(&self, at: RemoteAddr, bytes: &[u8]) {
        let range = self.range(at, bytes.len());
        // SAFETY: a slice is valid for reads of its length. `base` points to as many bytes of a
        // segment, to which no reference exists.
        unsafe { std::ptr::copy(bytes.as_ptr(), range.base, bytes.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for segment in self.0.drain(..) {
            // SAFETY: `segment` was made by `Box::into_raw`, and nothing else frees it.
            drop(unsafe { Box::from_raw(segment) });
        }
    }
}

/// Returns an address.
pub fn at(segment: Segment, offset: u64) -> RemoteAddr {
    RemoteAddr { segment, offset }
}

/// Returns the bytes of local memory. The caller uses them before any other code runs.
///
/// # Safety
/// The memory is valid for reads.
pub unsafe fn local_bytes<'a>(memory: LocalBuf) -> &'a [u8] {
    match memory.nbytes {
        0 => &[],
        // SAFETY: `base` is valid for reads of `nbytes` bytes by contract. The caller uses them
        // before any code could write them.
        nbytes => unsafe { std::slice::from_raw_parts(memory.base, nbytes) },
    }
}

/// Stores bytes to local memory.
///
/// # Safety
/// The memory is valid for writes of that many bytes.
pub unsafe fn set_local(base: *mut u8, bytes: &[u8]) {
    // SAFETY: a slice is valid for reads of its length, and `base` for writes of as many bytes by
    // contract.
    unsafe { std::ptr::copy(bytes.as_ptr(), base, bytes.len()) };
}
