//! The verbs of a context over a network, and the data that they take. The verbs are few. An
//! operation is one value, so that code that passes it on need not know its parts.
//!
//! The engine implements the verbs once for all networks
//! ([`WireEndpoint`](crate::engine::WireEndpoint)).

use crate::amo::{AmoOp, AmoWidth};
use crate::buffer::{Buffer, Dest, DestBuf, Source};
use crate::{Error, Pe};
use std::task::Waker;

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

    /// Returns the segment with this number, the inverse of `segment as u8`; `None` if there is
    /// none.
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

/// When the call of an operation returns, and until when its local memory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The call returns when the local memory is no longer in use: a source may be reused, a
    /// destination holds the data.
    Now,
    /// The call starts the operation; its local memory is in use until the next quiet.
    AtQuiet,
}

/// A transfer from local memory to a PE. It is known to be complete at the target only after the
/// next quiet.
pub type Put = Transfer<Source>;
/// A transfer from a PE to local memory.
pub type Get = Transfer<Dest>;

/// A transfer between local memory and a PE.
#[derive(Debug)]
pub struct Transfer<A> {
    /// The bytes at the PE.
    pub remote: RemoteAddr,
    /// The bytes in local memory.
    pub local: Buffer<A>,
    /// Whether the call of the transfer waits until the local memory is no longer in use.
    pub completion: Completion,
}

/// Blocks of equal length and distance. The distance at the PE and that in local memory may differ.
#[derive(Debug)]
pub struct StridedBlocks<A> {
    /// The first block at the PE.
    pub remote: RemoteAddr,
    /// Local memory from the start of the first block to the end of the last one.
    pub local: Buffer<A>,
    /// The length of every block in bytes.
    pub nbytes: usize,
    /// Bytes from the start of a block to that of the next at the PE.
    pub remote_stride: usize,
    /// Bytes from the start of a block to that of the next in local memory.
    pub local_stride: usize,
    /// The number of blocks, at least 1.
    pub n: usize,
}

impl<A> StridedBlocks<A> {
    /// Returns the number of bytes from the start of the first block to the end of the last one at
    /// the PE. Saturates at a value that fits no segment.
    pub fn remote_nbytes(&self) -> usize {
        self.remote_stride
            .saturating_mul(self.n - 1)
            .saturating_add(self.nbytes)
    }

    /// Moves the memory out, and returns the remote and the local memory of each block.
    pub fn each(&mut self) -> impl Iterator<Item = (RemoteAddr, Buffer<A>)> + use<A> {
        self.in_parts(1).map(|block| (block.remote, block.local))
    }

    /// Moves the memory out, and returns the blocks in parts of at most `most` blocks.
    pub fn in_parts(&mut self, most: usize) -> impl Iterator<Item = StridedBlocks<A>> + use<A> {
        let &mut StridedBlocks {
            remote,
            nbytes,
            remote_stride,
            local_stride,
            n: n_blocks,
            ..
        } = self;
        let local = std::mem::take(&mut self.local);

        (0..n_blocks).step_by(most).map(move |first| {
            let n = most.min(n_blocks - first);
            let offset = remote.offset + (first * remote_stride) as u64;
            StridedBlocks {
                remote: RemoteAddr { offset, ..remote },
                local: local.block(first * local_stride, (n - 1) * local_stride + nbytes),
                nbytes,
                remote_stride,
                local_stride,
                n,
            }
        })
    }
}

/// An atomic operation on a word of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl AmoRequest {
    /// Returns an operation on an 8-byte word, such as the update of a signal: any but a
    /// compare-and-swap.
    #[inline]
    pub fn of_word(dest: RemoteAddr, op: AmoOp, operand: u64) -> AmoRequest {
        AmoRequest {
            dest,
            width: AmoWidth::Eight,
            op,
            operand,
            condition: 0,
        }
    }
}

/// The use of the old value of an atomic operation.
#[derive(Debug)]
pub enum OldValue {
    /// The old value is not needed. The operation is complete at the next quiet.
    Ignored,
    /// The call waits for the old value and returns it, zero-extended.
    Returned,
    /// The old value is stored here, as many bytes as the word has, at the next quiet at the
    /// latest.
    AtQuiet(DestBuf),
}

/// The operations after which a signal is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOrder {
    /// After the data of its put.
    AfterData,
    /// Also after all puts and signals that the endpoint has issued to the PE. Unlike a fence, this
    /// does not order later operations, and takes less time.
    AfterAll,
    /// As [`AfterAll`](SignalOrder::AfterAll), for a signal that sets a flag of the library to the
    /// next value: to one more than the flag has once the signals before it have come. A wire may
    /// write the bytes that change one after the other, from the low one on. A byte never arrives
    /// in parts, as a word may, and until the last one has come, the flag is no larger than before.
    AfterAllNext,
}

/// The data that a peer needs to address a registered segment, opaque to everyone but the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub Vec<u8>);

/// The access of a context, or of several that share it, to all PEs.
///
/// An operation owns its local memory until it is over: until the call returns, or until the next
/// [`quiet`](Endpoint::quiet), as its [`Completion`](crate::Completion) or
/// [`OldValue`](crate::OldValue) says. Addresses lie within the peer's segment and words are
/// aligned to their width; others are refused with [`Error::Invalid`]. When a verb returns an
/// error, the network does not use the local memory of that operation any more, and after a loss
/// that of no operation. Dropping an endpoint completes what it issued, unless a PE was lost.
pub trait Endpoint: Send {
    /// Copies local memory to a PE.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error>;

    /// Copies a PE's memory to local memory.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error>;

    /// Puts blocks. The local memory may be reused when the call returns.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks<Source>) -> Result<(), Error>;

    /// Starts to get blocks. The data have arrived when the next quiet returns.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks<Dest>) -> Result<(), Error>;

    /// Carries out an atomic operation on a word of a PE. With
    /// [`OldValue::Returned`](crate::OldValue::Returned), waits for the word's old value and
    /// returns it, zero-extended. Otherwise the result is unspecified, and the operation is
    /// complete at the next quiet.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn amo(&mut self, pe: Pe, request: AmoRequest, old: OldValue) -> Result<u64, Error>;

    /// Puts, then sets or adds to the 8-byte word of the signal. The update is not visible before
    /// the operations that the order names.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn put_signal(
        &mut self,
        pe: Pe,
        put: Put,
        signal: AmoRequest,
        order: SignalOrder,
    ) -> Result<(), Error>;

    /// Begins or ends a session, in which many small operations follow each other
    /// (`SHMEM_CTX_SESSION_BATCH`), so that their throughput counts and the latency of one does
    /// not. Completes the operations issued before, unless nothing changes.
    ///
    /// # Errors
    /// When a PE was lost.
    fn session(&mut self, is_open: bool) -> Result<(), Error>;

    /// Orders puts, atomic operations and signals to each PE: those issued before take effect
    /// before those that follow.
    ///
    /// # Errors
    /// When a PE was lost.
    fn fence(&mut self) -> Result<(), Error>;

    /// Completes all operations that were issued, here and at the targets.
    ///
    /// # Errors
    /// When a PE was lost.
    fn quiet(&mut self) -> Result<(), Error>;

    /// Waits until the sources of all puts to `pe`, or to all PEs, may be reused. The puts need not
    /// be complete at the target.
    ///
    /// # Errors
    /// When a PE was lost.
    fn free_sources(&mut self, pe: Option<Pe>) -> Result<(), Error>;

    /// Completes all operations that were issued to `pe`, and perhaps others.
    ///
    /// # Errors
    /// When a PE was lost.
    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error>;

    /// Returns true if all operations that were issued are complete, here and at the targets, as
    /// after a [`quiet`](Endpoint::quiet). Begins to complete them, but waits for no PE.
    ///
    /// # Errors
    /// When a PE was lost.
    fn is_quiet(&mut self) -> Result<bool, Error>;

    /// Returns true if all operations are complete, as [`is_quiet`](Endpoint::is_quiet) does.
    /// Otherwise the task is woken once when they are, or when a PE was lost. The waker is dropped
    /// when the operations are complete, or when a call has reported the loss, so it may own local
    /// memory that they use.
    ///
    /// # Errors
    /// When a PE was lost.
    fn when_quiet(&mut self, task: &Waker) -> Result<bool, Error>;

    /// Returns the PEs with operations that are not known to be complete at the target, each with
    /// an estimate of their number, at least 1. Begins to complete them if there is room to do so,
    /// but waits for no PE.
    ///
    /// # Errors
    /// When a PE was lost.
    fn in_flight(&mut self) -> Result<Vec<(Pe, u64)>, Error>;
}
