//! The interface between the runtime and the detector.
//!
//! The runtime opens the detector's library if `SHMEM_CHECK` is `races`, and gets a [`Detector`]
//! from it. The types have the layout of C, since Rust's may differ between two libraries.
#![allow(unsafe_code)]

use core::ffi::c_int;

/// The symbol of the library at which a [`Detector`] is.
pub const SYMBOL: &[u8] = b"rushmem_race_detector\0";
/// The version of this interface. The runtime uses no library of another version.
pub const VERSION: u32 = 8;
/// The context of an order of the operations on all contexts.
pub const ALL_CONTEXTS: u64 = u64::MAX;
/// The file name by which the runtime opens the library.
pub const LIBRARY: &str = "librushmem-race.so.1";

/// The functions of the detector that the runtime calls.
#[repr(C)]
#[derive(Debug)]
pub struct Detector {
    /// [`VERSION`] of its build.
    pub version: u32,
    /// Creates the memory that the detectors of all PEs share. Returns its file descriptor, or a
    /// negated error number.
    pub create: extern "C" fn(&DetectorOpening) -> c_int,
    /// Maps that memory, which process `pid` has as file descriptor `fd`, and starts the detection.
    /// After a finalize, only resumes the detection. Returns 0, or an error number.
    pub attach: extern "C" fn(&DetectorOpening, pid: u32, fd: c_int) -> c_int,
    /// An access to symmetric memory begins.
    pub begin: extern "C" fn(&CheckedAccess),
    /// The call of the access returns.
    pub end: extern "C" fn(&CheckedAccess),
    /// A fence, a quiet or a flush on context `ctx`, or on [`ALL_CONTEXTS`]; `pe` is used by those
    /// of one PE alone.
    pub order: extern "C" fn(Order, ctx: u64, pe: u32),
    /// A wait for a word of this PE, or a test of one, has succeeded. `addr` is the address of the
    /// word. `has_surplus` is true if it would also have succeeded with one less in the word.
    pub seen: extern "C" fn(addr: usize, has_surplus: bool),
    /// The calling PE enters a collective, or starts a non-blocking one.
    pub enter: extern "C" fn(&CollectiveEvent),
    /// The calling PE leaves a collective, or has found a non-blocking one complete.
    pub leave: extern "C" fn(&CollectiveEvent),
    /// The calling PE, which has entered the collective `call`, may write `dest` of `pe` from then
    /// on, although `pe` may still be in an earlier one. `dest` has the addresses of the calling
    /// PE.
    pub writes: extern "C" fn(call: Text, dest: ByteBlocks, pe: u32),
    /// The calling PE has acquired the lock at `addr`, or releases it.
    pub lock: extern "C" fn(addr: usize, is_taken: bool),
    /// A block of the heap is allocated, or freed.
    pub block: extern "C" fn(call: Text, addr: usize, nbytes: usize, is_allocated: bool),
    /// The buffers of the program that are registered now: `n` of them, which are valid during the
    /// call.
    pub buffers: extern "C" fn(first: *const BufferPlace, n: usize),
    /// The library is finalized. The last PE that calls this prints how much was checked.
    pub close: extern "C" fn(),
}

/// A registered buffer of the calling PE, and where it is in the heap.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferPlace {
    /// The address of the first byte, which the program uses.
    pub start: usize,
    /// The number of bytes.
    pub nbytes: usize,
    /// The address of the first byte in the heap of the calling PE.
    pub in_heap: usize,
}

/// A string of the runtime that lives as long as the process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    start: *const u8,
    nbytes: usize,
}

// SAFETY: a string that lives as long as the process, and never changes.
unsafe impl Send for Text {}

impl Text {
    /// Wraps a string, so that it can be passed to the other library.
    pub const fn new(text: &'static str) -> Text {
        Text {
            start: text.as_ptr(),
            nbytes: text.len(),
        }
    }

    /// Returns the wrapped string.
    pub fn get(self) -> &'static str {
        // SAFETY: `new` has stored the start and the length of a string that lives as long as the
        // process and never changes.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.nbytes) };
        // SAFETY: the bytes of a `str` are UTF-8.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

/// The job, and the addresses of its memory in this process.
#[repr(C)]
#[derive(Debug)]
pub struct DetectorOpening {
    /// The number of this PE in the world.
    pub pe: u32,
    /// The number of PEs of the job.
    pub n_pes: u32,
    /// Bytes of each heap.
    pub heap_bytes: usize,
    /// Bytes of the static data of each PE.
    pub static_bytes: usize,
    /// `n_pes` addresses of the heaps in this process; 0 where one is not mapped.
    pub heaps: *const usize,
    /// `n_pes` addresses of the static data in this process; 0 where one is not mapped.
    pub statics: *const usize,
    /// The path of a file for the reports in JSON; empty for none.
    pub json: Text,
    /// The races that are not to be reported, as lines `function:NAME` and `object:NAME`.
    pub suppressions: Text,
    /// The exit status of a PE that would exit with 0 although a race was reported; 0 to keep that.
    pub status: c_int,
}

/// A kind of access.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOperation {
    /// A put that has read its source when its call returns.
    Put,
    /// A put that has read its source at the next quiet.
    PutNbi,
    /// A blocking get.
    Get,
    /// A get that is complete at the next quiet.
    GetNbi,
    /// An atomic operation without a result.
    Update,
    /// An atomic operation with a result.
    Fetch,
    /// An atomic operation whose result is complete at the next quiet.
    FetchNbi,
}

/// Blocks of bytes at equal distances.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteBlocks {
    /// The address of the first block.
    pub addr: usize,
    /// The number of bytes of each block.
    pub nbytes: usize,
    /// The number of bytes from the start of a block to the start of the next one.
    pub stride: usize,
    /// The number of blocks.
    pub n: usize,
}

impl ByteBlocks {
    /// Returns contiguous bytes as one block.
    pub const fn one(addr: usize, nbytes: usize) -> ByteBlocks {
        ByteBlocks {
            addr,
            nbytes,
            stride: nbytes,
            n: 1,
        }
    }

    /// No bytes at all.
    pub const NONE: ByteBlocks = ByteBlocks::one(0, 0);

    /// Returns the number of bytes of all blocks.
    pub const fn total(self) -> usize {
        self.nbytes.saturating_mul(self.n)
    }

    /// Returns the number of bytes from the start of the first block to the end of the last one.
    #[inline(always)]
    pub const fn span(self) -> usize {
        if self.n == 1 {
            return self.nbytes;
        }
        self.stride
            .saturating_mul(self.n.saturating_sub(1))
            .saturating_add(self.nbytes)
    }

    /// Returns true if a byte belongs to both.
    pub const fn overlaps(self, other: ByteBlocks) -> bool {
        if self.total() == 0 || other.total() == 0 {
            return false;
        }

        let mut i = 0;
        while i < self.n {
            let addr = self.addr + i * self.stride;
            if other.overlaps_range(addr, self.nbytes) {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Returns true if a byte of the blocks is one of the `nbytes` bytes at `addr`.
    const fn overlaps_range(self, addr: usize, nbytes: usize) -> bool {
        let end_of_first = self.addr + self.nbytes;
        // The number of blocks that end at `addr` or before.
        let before = if addr < end_of_first {
            0
        } else {
            (addr - end_of_first) / self.stride + 1
        };
        if before >= self.n {
            return false;
        }
        self.addr + before * self.stride < addr + nbytes
    }
}

/// Blocks of the runtime, which are valid during a call of the detector.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockList {
    first: *const ByteBlocks,
    n: usize,
}

impl BlockList {
    /// Wraps blocks, so that they can be passed to the other library.
    pub const fn new(blocks: &[ByteBlocks]) -> BlockList {
        BlockList {
            first: blocks.as_ptr(),
            n: blocks.len(),
        }
    }

    /// Returns the wrapped blocks.
    ///
    /// # Safety
    /// The blocks are still valid.
    pub const unsafe fn get<'a>(self) -> &'a [ByteBlocks] {
        // SAFETY: `new` has stored the start and the length of a slice, valid by contract.
        unsafe { std::slice::from_raw_parts(self.first, self.n) }
    }
}

/// The kind of the word of an atomic operation. Operations on different kinds do not exclude each
/// other.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// An integer. Also stands for the data of accesses that are not atomic.
    Integer,
    /// A floating-point number.
    Float,
    /// A signal.
    Signal,
    /// A part of a lock. Only the library accesses it, so it is not checked.
    Lock,
}

/// An access to symmetric memory of a PE.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheckedAccess {
    /// The name of the routine.
    pub call: Text,
    /// The operation, which decides which bytes are read and written, and when it is complete.
    pub operation: AccessOperation,
    /// True for an atomic operation that changes nothing.
    pub reads_only: bool,
    /// True if the team of the context is `SHMEM_TEAM_SHARED`, or was split from it.
    pub of_shared: bool,
    /// The kind of the word of an atomic operation.
    pub word: WordKind,
    /// The index of the context, 0 for the default one. A later context may have the same index.
    pub ctx: u64,
    /// The world PE whose memory is accessed.
    pub pe: u32,
    /// The bytes of that PE, by the addresses of the corresponding bytes of the calling PE.
    pub remote: ByteBlocks,
    /// The bytes of the calling PE that a put reads, or that a get or a fetch writes.
    pub local: ByteBlocks,
    /// The address of the signal that a put with a signal updates; 0 for other operations.
    pub signal: usize,
    /// True if the update adds one to the signal.
    pub counts: bool,
}

/// An ordering routine.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A fence.
    Fence,
    /// A quiet or flush of any kind begins. It does not cover operations that other threads issue
    /// from now on.
    Begin,
    /// A quiet to all PEs ends.
    Quiet,
    /// A quiet to one PE ends.
    PeQuiet,
    /// A flush ends: the sources of puts may be reused.
    Flush,
    /// A flush of the puts to one PE ends.
    PeFlush,
}

/// The members of a collective whose accesses before the call are complete when a member leaves it.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowedMembers {
    /// All members, as after a barrier.
    All,
    /// One member, as the root of a broadcast.
    Member,
    /// The members below a number, as in a scan.
    Below,
}

/// A member's part of a collective.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveEvent {
    /// The name of the routine.
    pub call: Text,
    /// A number that identifies the team or active set.
    pub team: u64,
    /// The number of the collective among those of the team.
    pub nth: u64,
    /// The number of members.
    pub n: u32,
    /// The index of the calling member in the team.
    pub me: u32,
    /// The members after which the calling member is ordered.
    pub follows: FollowedMembers,
    /// For [`FollowedMembers::Member`] the index of that member, for [`FollowedMembers::Below`] the
    /// index below which all members are followed; not used for [`FollowedMembers::All`].
    pub member: u32,
    /// The bytes of the calling PE that the collective reads.
    pub source: BlockList,
    /// The bytes of the calling PE that the collective writes.
    pub dest: BlockList,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_overlap_if_they_share_a_byte() {
        let columns = |addr| ByteBlocks {
            addr,
            nbytes: 8,
            stride: 32,
            n: 4,
        };
        assert!(columns(1000).overlaps(columns(1000)));
        assert!(columns(1000).overlaps(columns(1039)));
        assert!(!columns(1000).overlaps(columns(1008)));
        assert!(!columns(1008).overlaps(columns(1000)));
        assert!(!columns(1000).overlaps(columns(1128)));

        let all = ByteBlocks::one(1000, 128);
        assert!(all.overlaps(columns(1024)) && columns(1024).overlaps(all));
        assert!(!ByteBlocks::one(1008, 24).overlaps(columns(1000)));
        assert!(ByteBlocks::one(1008, 25).overlaps(columns(1000)));
        assert!(!ByteBlocks::NONE.overlaps(all) && !all.overlaps(ByteBlocks::one(1000, 0)));
    }
}
