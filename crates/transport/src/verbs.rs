//! Plain data that the verbs of an endpoint take.

use crate::mem;

/// A kind of symmetric memory. Every PE has one segment of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Segment {
    /// The symmetric heap.
    Heap,
    /// The library's own flags and buffers.
    Internal,
    /// The program's static data.
    Static,
}

impl Segment {
    /// How many kinds there are.
    pub const COUNT: usize = 3;
}

/// An address in a segment of another PE. Addresses cross the wire as these, never as pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddr {
    /// Which segment of the PE.
    pub segment: Segment,
    /// Bytes from the segment's start.
    pub offset: u64,
}

/// What a peer needs to address a registered segment, opaque to everyone but the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub Vec<u8>);

/// An atomic operation (OpenSHMEM 1.6, atomic memory operations). Increments are additions of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AmoOp {
    /// Return the value.
    Fetch,
    /// Store the operand.
    Set,
    /// Store the operand, return the old value.
    Swap,
    /// Store the operand if the value equals the condition, return the old value.
    CompareSwap,
    /// Add the operand, wrapping.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl AmoOp {
    /// All of them; wire formats number them by their places here.
    pub const ALL: [AmoOp; 8] = [
        AmoOp::Fetch,
        AmoOp::Set,
        AmoOp::Swap,
        AmoOp::CompareSwap,
        AmoOp::Add,
        AmoOp::And,
        AmoOp::Or,
        AmoOp::Xor,
    ];
}

/// Size of the word that an atomic operation updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AmoWidth {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

impl AmoWidth {
    /// Its number of bytes.
    #[inline]
    pub fn nbytes(self) -> usize {
        match self {
            AmoWidth::Four => 4,
            AmoWidth::Eight => 8,
        }
    }

    /// Write a fetched value, zero-extended as it comes from an endpoint, to a local word that need
    /// not be aligned.
    ///
    /// # Safety
    /// `fetched` is valid for writes of as many bytes as the width has.
    #[inline]
    pub unsafe fn write(self, fetched: *mut u8, value: u64) {
        match self {
            // SAFETY: valid for 4 bytes by contract.
            AmoWidth::Four => unsafe { mem::store(fetched.cast::<u32>(), value as u32) },
            // SAFETY: valid for 8 bytes by contract.
            AmoWidth::Eight => unsafe { mem::store(fetched.cast::<u64>(), value) },
        }
    }
}
