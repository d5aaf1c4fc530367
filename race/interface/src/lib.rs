//! The interface between the runtime and the detector.
//!
//! The runtime opens the detector's library when `SHMEM_CHECK=races` asks for it, and gets a
//! [`Detector`]. Both are of one build; the layout is C's nevertheless, since they are two
//! libraries.
#![allow(unsafe_code)]

use core::ffi::c_int;

/// The symbol of the library whose value is a [`Detector`].
pub const SYMBOL: &[u8] = b"rushmem_race_detector\0";
/// The version of this interface.
pub const VERSION: u32 = 2;
/// The name of the library.
pub const LIBRARY: &str = "librushmem-race.so.1";

/// The functions of the detector.
#[repr(C)]
#[derive(Debug)]
pub struct Detector {
    /// [`VERSION`] of its build.
    pub version: u32,
    /// Makes the memory that the detectors of all PEs share. Returns its descriptor, or a negated
    /// error number.
    pub create: extern "C" fn(&DetectorOpening) -> c_int,
    /// Attaches to that memory, which process `pid` has as descriptor `fd`. Returns 0, or an error
    /// number.
    pub attach: extern "C" fn(&DetectorOpening, pid: u32, fd: c_int) -> c_int,
    /// An access to symmetric memory begins.
    pub begin: extern "C" fn(&CheckedAccess),
    /// A blocking access is done.
    pub end: extern "C" fn(&CheckedAccess),
    /// A fence or a quiet.
    pub order: extern "C" fn(Order, ctx: u64, pe: u32),
    /// A wait for a word of this PE, or a test of one, has succeeded.
    pub seen: extern "C" fn(addr: usize),
    /// The calling PE enters a collective.
    pub enter: extern "C" fn(&CollectiveEvent),
    /// The calling PE leaves a collective.
    pub leave: extern "C" fn(&CollectiveEvent),
    /// The calling PE acquires or releases a lock.
    pub lock: extern "C" fn(addr: usize, is_taken: bool),
    /// A block of the heap is allocated, or freed.
    pub block: extern "C" fn(call: Text, addr: usize, nbytes: usize, is_allocated: bool),
    /// The library is finalized. The last PE prints what was checked.
    pub close: extern "C" fn(),
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
    /// Makes the text of a string.
    pub const fn new(text: &'static str) -> Text {
        Text { start: text.as_ptr(), nbytes: text.len() }
    }

    /// Returns the string.
    pub fn get(self) -> &'static str {
        // SAFETY: made of a string that lives as long as the process.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.nbytes) };
        // SAFETY: the same.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

/// The job, and the addresses of its memory in this process.
#[repr(C)]
#[derive(Debug)]
pub struct DetectorOpening {
    /// This PE.
    pub pe: u32,
    /// The number of PEs.
    pub n_pes: u32,
    /// Bytes of each heap.
    pub heap_bytes: usize,
    /// Bytes of the static data of each PE.
    pub static_bytes: usize,
    /// `n_pes` addresses of the heaps in this process; 0 where one is not mapped.
    pub heaps: *const usize,
    /// The addresses of the static data.
    pub statics: *const usize,
    /// A file for the reports in JSON; empty for none.
    pub json: Text,
    /// The races that are not to be reported: lines of a file.
    pub suppressions: Text,
    /// The exit status of a PE that would exit with 0 although a race was found.
    pub status: c_int,
}

/// A kind of access.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOperation {
    /// A blocking put.
    Put,
    /// A put that is complete at the next quiet.
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
#[derive(Clone, Copy, Debug)]
pub struct ByteBlocks {
    /// The address of the first one.
    pub addr: usize,
    /// Bytes of each.
    pub nbytes: usize,
    /// Bytes from the start of one to that of the next.
    pub stride: usize,
    /// The number of blocks.
    pub n: usize,
}

impl ByteBlocks {
    /// Returns contiguous bytes as one block.
    pub const fn one(addr: usize, nbytes: usize) -> ByteBlocks {
        ByteBlocks { addr, nbytes, stride: nbytes, n: 1 }
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
        self.stride.saturating_mul(self.n.saturating_sub(1)).saturating_add(self.nbytes)
    }
}

/// The words of atomic operations: those of different kinds do not exclude each other.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// An integer. Also stands for the data of accesses that are not atomic.
    Integer,
    /// A floating-point number.
    Float,
    /// A signal.
    Signal,
    /// A part of a lock, which is the library's.
    Lock,
}

/// An access to symmetric memory of a PE.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheckedAccess {
    /// The routine.
    pub call: Text,
    /// The operation.
    pub operation: AccessOperation,
    /// An atomic operation that changes nothing.
    pub reads_only: bool,
    /// The team of the context is `SHMEM_TEAM_SHARED`, or was split from it.
    pub of_shared: bool,
    /// The word of an atomic operation.
    pub word: WordKind,
    /// The index of the context, which a later context may reuse.
    pub ctx: u64,
    /// The PE.
    pub pe: u32,
    /// The bytes there, by the addresses of the corresponding bytes of this PE.
    pub remote: ByteBlocks,
    /// The bytes of this PE.
    pub local: ByteBlocks,
    /// The signal that follows the data; 0 for none.
    pub signal: usize,
}

/// An ordering routine.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `shmem_fence`
    Fence,
    /// A quiet of any kind begins. It does not cover operations that other threads issue from now
    /// on.
    Begin,
    /// `shmem_quiet`
    Quiet,
    /// `shmem_pe_quiet` for one PE
    PeQuiet,
}

/// The members whose accesses before the call a member knows when it leaves a collective.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowedMembers {
    /// All members.
    All,
    /// One member: the root.
    Member,
    /// The members below a number.
    Below,
}

/// A collective.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveEvent {
    /// The routine.
    pub call: Text,
    /// A number that identifies the team or active set.
    pub team: u64,
    /// The number of the collective among those of the team.
    pub nth: u64,
    /// The number of members.
    pub n: u32,
    /// The calling member.
    pub me: u32,
    /// The members that it follows.
    pub follows: FollowedMembers,
    /// The root of [`FollowedMembers::Member`], or the number of [`FollowedMembers::Below`].
    pub member: u32,
    /// The bytes that it reads here.
    pub source: ByteBlocks,
    /// The bytes that it writes here.
    pub dest: ByteBlocks,
}
