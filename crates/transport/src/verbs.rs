//! The data that the verbs of an endpoint take. An operation is one value, so that code that passes
//! it on need not know its parts.
#![allow(unsafe_code)]

/// A kind of symmetric memory. Every PE has at most one segment of each kind.
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
    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();
    /// All kinds, by their numbers.
    pub const ALL: [Segment; 3] = [Segment::Heap, Segment::Internal, Segment::Static];

    /// Returns the segment of its encoded number, which is `segment as u8`.
    #[inline]
    pub fn from_number(number: u8) -> Option<Segment> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// An address in a segment of a PE. Messages contain such addresses, never pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddr {
    /// The segment of the PE.
    pub segment: Segment,
    /// Bytes from the segment's start.
    pub offset: u64,
}

/// A range of this process's memory. Whoever passes it on ensures that the memory is valid.
#[derive(Clone, Copy, Debug)]
pub struct LocalBuf {
    /// The start of the range.
    pub base: *mut u8,
    /// The length of the range in bytes.
    pub nbytes: usize,
}

// SAFETY: a plain address, which safe code cannot dereference. Unsafe code that does so proves that
// the memory is valid, on whatever thread it runs.
unsafe impl Send for LocalBuf {}

impl LocalBuf {
    /// An empty range.
    pub const EMPTY: LocalBuf = LocalBuf {
        base: std::ptr::null_mut(),
        nbytes: 0,
    };

    /// Returns a range that is only read.
    #[inline]
    pub fn source(base: *const u8, nbytes: usize) -> LocalBuf {
        LocalBuf {
            base: base.cast_mut(),
            nbytes,
        }
    }

    /// Returns the range without its first `nbytes` bytes.
    #[inline]
    pub fn skip(self, nbytes: usize) -> LocalBuf {
        debug_assert!(nbytes <= self.nbytes, "a part of the range");
        LocalBuf {
            base: self.base.wrapping_add(nbytes),
            nbytes: self.nbytes - nbytes,
        }
    }

    /// Returns the first bytes of the range, at most `max_bytes`.
    #[inline]
    pub fn first(self, max_bytes: usize) -> LocalBuf {
        LocalBuf {
            nbytes: self.nbytes.min(max_bytes),
            ..self
        }
    }
}

/// When the call of an operation returns, and until when its local memory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The call returns when the local memory is no longer in use: a source may be reused, a
    /// destination holds the data.
    Now,
    /// The call starts the operation; its local memory is in use until the next quiet.
    AtQuiet,
}

/// A transfer from local memory to a PE.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// The destination at the PE.
    pub dest: RemoteAddr,
    /// The data to copy.
    pub source: LocalBuf,
    /// When the source may be reused. Either way the put is known to be complete at the target only
    /// after the next quiet.
    pub completion: Completion,
}

/// A transfer from a PE to local memory.
#[derive(Clone, Copy, Debug)]
pub struct Get {
    /// The destination in local memory.
    pub dest: LocalBuf,
    /// The data at the PE.
    pub source: RemoteAddr,
    /// When the destination holds the data.
    pub completion: Completion,
}

/// Blocks of equal length and distance. The distance at the PE and that in local memory may differ.
#[derive(Clone, Copy, Debug)]
pub struct StridedBlocks {
    /// The first block at the PE.
    pub remote: RemoteAddr,
    /// The first block in local memory. Its length is that of every block.
    pub local: LocalBuf,
    /// Bytes from the start of a block to that of the next at the PE.
    pub remote_stride: usize,
    /// Bytes from the start of a block to that of the next in local memory.
    pub local_stride: usize,
    /// The number of blocks, at least 1.
    pub n: usize,
}

impl StridedBlocks {
    /// Returns the number of bytes from the start of the first block to the end of the last one at
    /// the PE. Saturates at a value that fits no segment.
    pub fn remote_nbytes(&self) -> usize {
        self.remote_stride
            .saturating_mul(self.n - 1)
            .saturating_add(self.local.nbytes)
    }

    /// Returns the remote and the local address of each block.
    pub fn each(self) -> impl Iterator<Item = (RemoteAddr, LocalBuf)> {
        (0..self.n).map(move |i| self.block(i))
    }

    /// Returns the blocks in parts of at most `n` blocks.
    pub fn in_parts(self, n: usize) -> impl Iterator<Item = StridedBlocks> {
        (0..self.n).step_by(n).map(move |first| {
            let (remote, local) = self.block(first);
            StridedBlocks {
                remote,
                local,
                n: n.min(self.n - first),
                ..self
            }
        })
    }

    #[inline]
    fn block(&self, i: usize) -> (RemoteAddr, LocalBuf) {
        let offset = self.remote.offset + (i * self.remote_stride) as u64;
        let base = self.local.base.wrapping_add(i * self.local_stride);
        (
            RemoteAddr {
                offset,
                ..self.remote
            },
            LocalBuf { base, ..self.local },
        )
    }
}

/// An atomic operation on a word of a PE.
#[derive(Clone, Copy, Debug)]
pub struct AmoRequest {
    /// The address of the word, which must be aligned to the word's width.
    pub dest: RemoteAddr,
    /// The width of the word.
    pub width: AmoWidth,
    /// The operation on the word.
    pub op: AmoOp,
    /// The operand; ignored by a fetch.
    pub operand: u64,
    /// The value that a compare-and-swap replaces; ignored by all others.
    pub condition: u64,
    /// The use of the word's old value.
    pub old: OldValue,
}

/// The use of the old value of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldValue {
    /// The old value is not needed. The operation is complete at the next quiet.
    Ignored,
    /// The call waits for the old value and returns it, zero-extended.
    Returned,
    /// The old value is stored here, as many bytes as the word has, at the next quiet at the
    /// latest.
    AtQuiet(*mut u8),
}

/// The operations that a signal follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// The data of its put.
    Data,
    /// Also all puts and signals that the endpoint has issued to the PE. Unlike a fence, this does
    /// not order later operations, and takes less time.
    All,
}

/// An update of an 8-byte word of a PE that follows the data of a put.
#[derive(Clone, Copy, Debug)]
pub struct SignalUpdate {
    /// The address of the word, which must be aligned to 8 bytes.
    pub dest: RemoteAddr,
    /// `Set` or `Add`.
    pub op: AmoOp,
    /// The value to set or to add.
    pub value: u64,
    /// The operations that the signal follows.
    pub follows: Follows,
}

impl SignalUpdate {
    /// Returns the signal as an atomic operation.
    #[inline]
    pub fn amo(self) -> AmoRequest {
        let SignalUpdate {
            dest, op, value, ..
        } = self;
        AmoRequest {
            dest,
            width: AmoWidth::Eight,
            op,
            operand: value,
            condition: 0,
            old: OldValue::Ignored,
        }
    }
}

/// The data that a peer needs to address a registered segment, opaque to everyone but the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub Vec<u8>);

/// An atomic operation (OpenSHMEM 1.6, atomic memory operations). Increments are additions of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
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
    /// Add the operand as a floating-point number of the word's width.
    AddFloat,
}

impl AmoOp {
    /// All operations in the order of their numbers.
    pub const ALL: [AmoOp; 9] = [
        AmoOp::Fetch,
        AmoOp::Set,
        AmoOp::Swap,
        AmoOp::CompareSwap,
        AmoOp::Add,
        AmoOp::And,
        AmoOp::Or,
        AmoOp::Xor,
        AmoOp::AddFloat,
    ];

    /// Returns the operation of its encoded number, which is `op as u8`.
    #[inline]
    pub fn from_number(number: u8) -> Option<AmoOp> {
        AmoOp::ALL.get(usize::from(number)).copied()
    }
}

/// The size of the word of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AmoWidth {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

impl AmoWidth {
    /// Returns the width of a word of `nbytes` bytes; `None` unless these are 4 or 8.
    #[inline]
    pub fn from_nbytes(nbytes: u8) -> Option<AmoWidth> {
        match nbytes {
            4 => Some(AmoWidth::Four),
            8 => Some(AmoWidth::Eight),
            _ => None,
        }
    }

    /// Returns the number of bytes of the word.
    #[inline]
    pub fn nbytes(self) -> usize {
        match self {
            AmoWidth::Four => 4,
            AmoWidth::Eight => 8,
        }
    }
}
