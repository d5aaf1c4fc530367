//! The format of a batch: several small operations in the body of one request. Each has a head,
//! followed by its data or operands, all little-endian.
//!
//! The target carries them out in the order in which they were issued, on its own memory or, as a
//! [`Proxy`](crate::Proxy), on the heaps of other PEs of its node. If any of them have results, one
//! reply is followed by all results in the same order, in the target's byte order.

use crate::peers::loss::Violation;
use crate::segments::Segments;
use crate::{
    AmoOp, AmoRequest, AmoWidth, Dest, Host, RemoteAddr, Segment, Source, SourceBuf, StridedBlocks,
    mem,
};

/// Maximum number of bytes of a put or a get in a batch, or of each block of a strided one.
pub const MAX_NBYTES: usize = 256;
/// Maximum number of bytes that the operations of a batch return.
pub const MAX_ANSWERS: usize = 32 << 10;

/// Bytes of a head: the offset, 8 bytes; the number of bytes, or the operation and its width, 2
/// bytes; the kind and the segment; the PE of the node ([`Proxy::place`](crate::Proxy::place)).
pub(super) const HEAD: usize = 12;
/// Bytes of the head of strided blocks, which also has the distance from block to block and the
/// number of blocks.
pub(super) const STRIDED_HEAD: usize = HEAD + WORD + 4;
/// Bytes of an operand.
pub(super) const WORD: usize = 8;

const PUT: u8 = 0;
const GET: u8 = 1;
const UPDATE: u8 = 2;
const FETCH: u8 = 3;
const PUT_STRIDED: u8 = 4;
const GET_STRIDED: u8 = 5;
/// The kind is in the upper half of its byte, the segment in the lower one.
const KIND_SHIFT: u32 = 4;

/// An operation of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEntry<'a> {
    /// Stores these bytes.
    Put(RemoteAddr, &'a [u8]),
    /// Returns this many bytes.
    Get(RemoteAddr, usize),
    /// Stores these bytes in blocks.
    PutStrided(BlocksAt, &'a [u8]),
    /// Returns this many blocks.
    GetStrided(BlocksAt, usize),
    /// Carries out an atomic operation.
    Update(AmoRequest),
    /// Carries out an atomic operation and returns the old value, as many bytes as the word has.
    Fetch(AmoRequest),
}

/// The addresses of equally spaced blocks at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlocksAt {
    /// The start of the first block.
    pub first: RemoteAddr,
    /// Bytes from the start of a block to that of the next.
    pub stride: u64,
    /// Bytes of a block, at least 1.
    pub nbytes: usize,
}

fn head(at: (RemoteAddr, u8), [low, high]: [u8; 2], kind: u8) -> [u8; HEAD] {
    let (at, place) = at;
    let mut head = [0; HEAD];
    let (offset, rest) = head.split_at_mut(WORD);
    offset.copy_from_slice(&at.offset.to_le_bytes());
    rest.copy_from_slice(&[low, high, kind << KIND_SHIFT | at.segment as u8, place]);
    head
}

/// Appends a put with a copy of its source. Here and in the functions below, `at` is an address and
/// the [place](crate::Proxy::place) of its PE.
#[inline]
pub(super) fn append_put(batch: &mut Vec<u8>, at: (RemoteAddr, u8), source: &SourceBuf) {
    batch.extend_from_slice(&head(at, (source.nbytes() as u16).to_le_bytes(), PUT));
    source.append_to::<mem::VolatileLoads>(batch);
}

/// Appends a get.
#[inline]
pub(super) fn append_get(batch: &mut Vec<u8>, at: (RemoteAddr, u8), nbytes: usize) {
    batch.extend_from_slice(&head(at, (nbytes as u16).to_le_bytes(), GET));
}

/// Appends the head of a put or a get of strided blocks.
fn append_strided<Way>(batch: &mut Vec<u8>, kind: u8, place: u8, blocks: &StridedBlocks<Way>) {
    let &StridedBlocks {
        remote,
        nbytes,
        remote_stride,
        n,
        ..
    } = blocks;
    batch.extend_from_slice(&head((remote, place), (nbytes as u16).to_le_bytes(), kind));
    batch.extend_from_slice(&(remote_stride as u64).to_le_bytes());
    batch.extend_from_slice(&(n as u32).to_le_bytes());
}

/// Appends a put with copies of its blocks.
pub(super) fn append_put_strided(batch: &mut Vec<u8>, place: u8, blocks: &StridedBlocks<Source>) {
    append_strided(batch, PUT_STRIDED, place, blocks);
    blocks.append_to(batch);
}

/// Appends a get of blocks.
pub(super) fn append_get_strided(batch: &mut Vec<u8>, place: u8, blocks: &StridedBlocks<Dest>) {
    append_strided(batch, GET_STRIDED, place, blocks);
}

/// Appends an atomic operation. It returns the old value if it `fetches`.
#[inline]
pub fn append_amo(batch: &mut Vec<u8>, (request, place): (&AmoRequest, u8), fetches: bool) {
    let &AmoRequest {
        op,
        width,
        dest,
        operand,
        condition,
    } = request;
    let kind = if fetches { FETCH } else { UPDATE };
    batch.extend_from_slice(&head((dest, place), [op as u8, width.nbytes() as u8], kind));
    batch.extend_from_slice(&operand.to_le_bytes());
    if op == AmoOp::CompareSwap {
        batch.extend_from_slice(&condition.to_le_bytes());
    }
}

/// Removes the first operation from the batch and returns it with the place of its PE. Returns
/// `None`, and removes nothing, at the end of the batch or if the bytes are no valid operation.
#[inline(always)]
pub fn next<'a>(batch: &mut &'a [u8]) -> Option<(BatchEntry<'a>, u8)> {
    let (&[offset @ .., low, high, what, place], mut rest) = batch.split_first_chunk::<HEAD>()?;
    let (kind, segment) = (what >> KIND_SHIFT, what & ((1 << KIND_SHIFT) - 1));
    let at = RemoteAddr {
        segment: Segment::from_number(segment)?,
        offset: u64::from_le_bytes(offset),
    };
    let nbytes = usize::from(u16::from_le_bytes([low, high]));
    let entry = match kind {
        PUT => {
            let data;
            (data, rest) = rest.split_at_checked(nbytes)?;
            BatchEntry::Put(at, data)
        }
        GET => BatchEntry::Get(at, nbytes),
        PUT_STRIDED | GET_STRIDED if nbytes > 0 => {
            let strides = BlocksAt {
                first: at,
                stride: word(&mut rest)?,
                nbytes,
            };
            let (n, after) = rest.split_first_chunk::<4>()?;
            let n = u32::from_le_bytes(*n) as usize;
            rest = after;
            if kind == GET_STRIDED {
                BatchEntry::GetStrided(strides, n)
            } else {
                let data;
                (data, rest) = rest.split_at_checked(n.checked_mul(nbytes)?)?;
                BatchEntry::PutStrided(strides, data)
            }
        }
        UPDATE | FETCH => {
            let (op, width) = (AmoOp::from_number(low)?, AmoWidth::from_nbytes(high)?);
            let operand = word(&mut rest)?;
            let condition = if op == AmoOp::CompareSwap {
                word(&mut rest)?
            } else {
                0
            };
            let request = AmoRequest {
                op,
                width,
                dest: at,
                operand,
                condition,
            };
            if kind == FETCH {
                BatchEntry::Fetch(request)
            } else {
                BatchEntry::Update(request)
            }
        }
        _ => return None,
    };
    *batch = rest;
    Some((entry, place))
}

#[inline]
fn word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk::<WORD>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}

/// Carries out the operations of a batch and appends their results to `answers`. Wakes the other
/// PEs of the node whose heaps they access; the caller wakes this PE.
///
/// # Errors
/// When the batch is malformed. The operations before the error have been carried out.
pub fn carry_out<T>(
    batch: &[u8],
    own: &Segments<T>,
    host: &dyn Host,
    answers: &mut Vec<u8>,
) -> Result<(), Violation> {
    let mut changed = ChangedPlaces::default();
    let is_right = carry_out_each(batch, own, host, answers, &mut changed);
    changed.places().for_each(|place| host.arrived_at(place));
    is_right.then_some(()).ok_or(Violation::Batch)
}

fn carry_out_each<T>(
    mut batch: &[u8],
    own: &Segments<T>,
    host: &dyn Host,
    answers: &mut Vec<u8>,
    changed: &mut ChangedPlaces,
) -> bool {
    while let Some((entry, place)) = next(&mut batch) {
        let is_right = match place {
            0 => entry.carry_out(own, answers),
            _ => host.node_heap(place).is_some_and(|heap| {
                changed.add(place);
                entry.carry_out(heap, answers)
            }),
        };
        if !is_right {
            return false;
        }
    }
    batch.is_empty()
}

/// A set of PEs of the node, one bit for each place.
#[derive(Default)]
struct ChangedPlaces([u64; 4]);

impl ChangedPlaces {
    #[inline]
    fn add(&mut self, place: u8) {
        self.0[usize::from(place / 64)] |= 1 << (place % 64);
    }

    fn places(mut self) -> impl Iterator<Item = u8> {
        std::iter::from_fn(move || {
            let word = self.0.iter().position(|word| *word != 0)?;
            let bit = self.0[word].trailing_zeros() as usize;
            self.0[word] &= self.0[word] - 1;
            Some((64 * word + bit) as u8)
        })
    }
}

impl BatchEntry<'_> {
    #[inline(always)]
    fn carry_out<T>(&self, segments: &Segments<T>, answers: &mut Vec<u8>) -> bool {
        match *self {
            BatchEntry::Put(at, data) => segments.write(at, data),
            BatchEntry::Get(at, nbytes) => {
                answers.len() + nbytes <= MAX_ANSWERS && segments.append_to(answers, at, nbytes)
            }
            BatchEntry::PutStrided(strides, data) => {
                let mut blocks = strides.addresses().zip(data.chunks_exact(strides.nbytes));
                blocks.all(|(at, block)| at.is_some_and(|at| segments.write(at, block)))
            }
            BatchEntry::GetStrided(strides, n) => {
                n <= MAX_ANSWERS.saturating_sub(answers.len()) / strides.nbytes
                    && strides.addresses().take(n).all(|at| {
                        at.is_some_and(|at| segments.append_to(answers, at, strides.nbytes))
                    })
            }
            BatchEntry::Update(request) => segments.apply(&request).is_some(),
            BatchEntry::Fetch(request) if answers.len() + request.width.nbytes() <= MAX_ANSWERS => {
                let old = segments.apply(&request);
                let append = |old| append_word(answers, request.width, old);
                old.map(append).is_some()
            }
            BatchEntry::Fetch(_) => false,
        }
    }
}

impl BlocksAt {
    /// Returns the addresses of the blocks, without an end; `None` for one that overflows.
    fn addresses(self) -> impl Iterator<Item = Option<RemoteAddr>> {
        let BlocksAt { first, stride, .. } = self;
        (0..).map(move |i: u64| {
            let offset = i
                .checked_mul(stride)
                .and_then(|from| first.offset.checked_add(from))?;
            Some(RemoteAddr { offset, ..first })
        })
    }
}

fn append_word(answers: &mut Vec<u8>, width: AmoWidth, word: u64) {
    match width {
        AmoWidth::Four => answers.extend_from_slice(&(word as u32).to_ne_bytes()),
        AmoWidth::Eight => answers.extend_from_slice(&word.to_ne_bytes()),
    }
}

#[cfg(test)]
mod tests;
