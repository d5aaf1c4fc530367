//! The entries of a request: the operations that its target carries out, in their order. Each has a
//! head, followed by its data or operands, all little-endian.
//!
//! The target carries them out on its own memory or, as a [`Proxy`](crate::Proxy), on the heaps of
//! other PEs of its node. The results of the entries are one sequence of bytes, in their order and
//! in the target's byte order.
//!
//! Data that are too long to be copied into a request are attached to it: they are those of its
//! first entry, and the provider may send them from the memory of the caller.

use crate::peers::loss::Violation;
use crate::segments::Segments;
use crate::{AmoOp, AmoRequest, AmoWidth, Host, RemoteAddr, Segment, StridedBlocks};

/// Maximum number of bytes of a put or a get in an entry, or of each block of a strided one. Each
/// byte is copied twice more than by an operation of its own. The number was chosen without a
/// measurement.
pub const MAX_NBYTES: usize = 256;
/// Maximum number of bytes of the entries of a request, which limits their number, too: the head of
/// a request has 16 bits for it.
pub const MAX_ENTRIES: usize = u16::MAX as usize;
/// Maximum number of bytes that the entries of a request return. It bounds what a target keeps for
/// a peer that does not receive its replies.
pub const MAX_RESULTS: usize = 32 << 10;
/// Bytes of the entries of a put whose data are attached, and of its signal.
pub const ATTACHED_AND_SIGNAL: usize = HEAD + HEAD + WORD;

/// The place of the PE that receives the entries, among the PEs of its node
/// ([`Proxy::place`](crate::Proxy::place)).
const THIS_PE: u8 = 0;

/// Bytes of the head of an entry: the offset, 8 bytes; the number of bytes, or the operation and
/// its width, 2 bytes; the kind and the segment, 1 byte; the place of the PE, 1 byte.
pub(super) const HEAD: usize = 12;
/// Bytes of the head of strided blocks, which also has the distance from block to block and the
/// number of blocks.
pub(super) const STRIDED_HEAD: usize = HEAD + WORD + 4;
/// Bytes of an operand.
pub(super) const WORD: usize = 8;

const PUT: u8 = 0;
const GET: u8 = 1;
const AMO: u8 = 2;
const FETCHING_AMO: u8 = 3;
const PUT_STRIDED: u8 = 4;
const GET_STRIDED: u8 = 5;
const PUT_ATTACHED: u8 = 6;
/// The kind is in the upper half of its byte, the segment in the lower half.
const KIND_SHIFT: u32 = 4;

/// An entry of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Stores these bytes.
    Put(RemoteAddr, &'a [u8]),
    /// Stores the attached bytes.
    PutAttached(RemoteAddr),
    /// Returns this many bytes.
    Get(RemoteAddr, usize),
    /// Stores these bytes in blocks.
    PutStrided(BlocksAt, &'a [u8]),
    /// Returns this many blocks.
    GetStrided(BlocksAt, usize),
    /// Carries out an atomic operation.
    Amo {
        /// The operation.
        request: AmoRequest,
        /// Returns the old value, as many bytes as the word has.
        fetches: bool,
    },
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

/// Returns the head of an entry. `detail` is the encoded number of bytes, or the operation and its
/// width.
fn head(addr: RemoteAddr, place: u8, detail: [u8; 2], kind: u8) -> [u8; HEAD] {
    let [first, second] = detail;
    let kind_and_segment = kind << KIND_SHIFT | addr.segment as u8;

    let mut head = [0; HEAD];
    let (offset, rest) = head.split_at_mut(WORD);
    offset.copy_from_slice(&addr.offset.to_le_bytes());
    rest.copy_from_slice(&[first, second, kind_and_segment, place]);
    head
}

/// Appends the head of a put or a get of `nbytes` bytes. The caller appends the data of a put. Here
/// and in the functions below, `place` is the [place](crate::Proxy::place) of the PE.
#[inline]
pub(super) fn append_transfer(
    entries: &mut Vec<u8>,
    is_put: bool,
    addr: RemoteAddr,
    place: u8,
    nbytes: usize,
) {
    let kind = if is_put { PUT } else { GET };
    entries.extend_from_slice(&head(addr, place, (nbytes as u16).to_le_bytes(), kind));
}

/// Appends a put of the attached data.
pub fn append_attached(entries: &mut Vec<u8>, addr: RemoteAddr) {
    entries.extend_from_slice(&head(addr, THIS_PE, [0; 2], PUT_ATTACHED));
}

/// Appends the head of a put or a get of blocks. The caller appends the data of a put.
pub(super) fn append_strided<A>(
    entries: &mut Vec<u8>,
    is_put: bool,
    place: u8,
    blocks: &StridedBlocks<A>,
) {
    let &StridedBlocks {
        remote,
        nbytes,
        remote_stride,
        n,
        ..
    } = blocks;

    let kind = if is_put { PUT_STRIDED } else { GET_STRIDED };
    entries.extend_from_slice(&head(remote, place, (nbytes as u16).to_le_bytes(), kind));
    entries.extend_from_slice(&(remote_stride as u64).to_le_bytes());
    entries.extend_from_slice(&(n as u32).to_le_bytes());
}

/// Appends an atomic operation. It returns the old value if it `fetches`.
#[inline]
pub fn append_amo(entries: &mut Vec<u8>, request: &AmoRequest, place: u8, fetches: bool) {
    let &AmoRequest {
        op,
        width,
        dest,
        operand,
        condition,
    } = request;

    let kind = if fetches { FETCHING_AMO } else { AMO };
    entries.extend_from_slice(&head(dest, place, [op as u8, width.nbytes() as u8], kind));
    entries.extend_from_slice(&operand.to_le_bytes());

    if op == AmoOp::CompareSwap {
        entries.extend_from_slice(&condition.to_le_bytes());
    }
}

/// Returns the number of bytes of the entry of an atomic operation.
#[inline]
pub(super) fn amo_nbytes(op: AmoOp) -> usize {
    let words = if op == AmoOp::CompareSwap { 2 } else { 1 };
    HEAD + words * WORD
}

/// Removes the first entry and returns it with the place of its PE. Returns `None`, and removes
/// nothing, at the end of the entries or if the bytes are no valid entry.
#[inline(always)]
pub fn next<'a>(entries: &mut &'a [u8]) -> Option<(Entry<'a>, u8)> {
    let (head, mut rest) = entries.split_first_chunk::<HEAD>()?;
    let &[offset @ .., first, second, kind_and_segment, place] = head;
    let kind = kind_and_segment >> KIND_SHIFT;
    let segment = kind_and_segment & ((1 << KIND_SHIFT) - 1);

    let addr = RemoteAddr {
        segment: Segment::from_number(segment)?,
        offset: u64::from_le_bytes(offset),
    };
    let nbytes = usize::from(u16::from_le_bytes([first, second]));

    let entry = match kind {
        PUT => {
            let data;
            (data, rest) = rest.split_at_checked(nbytes)?;
            Entry::Put(addr, data)
        }
        PUT_ATTACHED => Entry::PutAttached(addr),
        GET => Entry::Get(addr, nbytes),
        PUT_STRIDED | GET_STRIDED if nbytes > 0 => {
            let strides = BlocksAt {
                first: addr,
                stride: word(&mut rest)?,
                nbytes,
            };

            let (n, after) = rest.split_first_chunk::<4>()?;
            let n = u32::from_le_bytes(*n) as usize;
            rest = after;

            if kind == GET_STRIDED {
                Entry::GetStrided(strides, n)
            } else {
                let data;
                (data, rest) = rest.split_at_checked(n.checked_mul(nbytes)?)?;
                Entry::PutStrided(strides, data)
            }
        }
        AMO | FETCHING_AMO => {
            let op = AmoOp::from_number(first)?;
            let width = AmoWidth::from_nbytes(second)?;
            let operand = word(&mut rest)?;
            let condition = if op == AmoOp::CompareSwap {
                word(&mut rest)?
            } else {
                0
            };

            Entry::Amo {
                request: AmoRequest {
                    op,
                    width,
                    dest: addr,
                    operand,
                    condition,
                },
                fetches: kind == FETCHING_AMO,
            }
        }
        _ => return None,
    };

    *entries = rest;
    Some((entry, place))
}

#[inline]
fn word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk::<WORD>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}

/// Carries out the entries of a request, the first of which may have `attached` data, and appends
/// their results to `results`. Wakes the other PEs of the node whose heaps they access; the caller
/// wakes this PE.
///
/// # Errors
/// When the entries are malformed. Those before the error have been carried out.
pub fn carry_out<T>(
    entries: &[u8],
    attached: &[u8],
    own: &Segments<T>,
    host: &dyn Host,
    results: &mut Vec<u8>,
) -> Result<(), Violation> {
    let mut changed = ChangedPlaces::default();
    let carried_out = carry_out_each(entries, attached, own, host, results, &mut changed);

    // Also after an error, since the entries before it have been carried out.
    for place in changed.places() {
        host.arrived(place);
    }
    carried_out
}

/// Carries out the entries in their order, and adds the PEs of the node whose heaps they change to
/// `changed`.
fn carry_out_each<T>(
    mut entries: &[u8],
    attached: &[u8],
    own: &Segments<T>,
    host: &dyn Host,
    results: &mut Vec<u8>,
    changed: &mut ChangedPlaces,
) -> Result<(), Violation> {
    if let Some((dest, rest)) = attached_put(entries) {
        write(own, dest, attached)?;
        entries = rest;
    } else if !attached.is_empty() {
        return Err(Violation::Entries);
    }

    while let Some((entry, place)) = next(&mut entries) {
        if place == THIS_PE {
            entry.carry_out(own, results)?;
            continue;
        }

        let heap = host.node_heap(place).ok_or(Violation::Entries)?;
        // Before the entry, which may have changed a part of the heap when it fails.
        changed.add(place);
        entry.carry_out(heap, results)?;
    }

    // `next` stops at bytes that are no entry.
    if entries.is_empty() {
        Ok(())
    } else {
        Err(Violation::Entries)
    }
}

/// Returns the destination of the attached data, and the entries after them, if the first entry has
/// attached data.
#[inline]
pub fn attached_put(mut entries: &[u8]) -> Option<(RemoteAddr, &[u8])> {
    match next(&mut entries)? {
        (Entry::PutAttached(dest), THIS_PE) => Some((dest, entries)),
        _ => None,
    }
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
            let index = self.0.iter().position(|word| *word != 0)?;
            let word = &mut self.0[index];
            let bit = word.trailing_zeros() as usize;
            // Clears the lowest bit.
            *word &= *word - 1;
            Some((64 * index + bit) as u8)
        })
    }
}

impl Entry<'_> {
    #[inline(always)]
    fn carry_out<T>(&self, segments: &Segments<T>, results: &mut Vec<u8>) -> Result<(), Violation> {
        match *self {
            Entry::Put(addr, data) => write(segments, addr, data),
            // Only the first entry has attached data.
            Entry::PutAttached(_) => Err(Violation::Entries),
            Entry::Get(addr, nbytes) => {
                let room = MAX_RESULTS.saturating_sub(results.len());
                if nbytes > room {
                    return Err(Violation::TooMany);
                }

                append(segments, results, addr, nbytes)
            }
            Entry::PutStrided(strides, data) => {
                let mut blocks = strides.addresses().zip(data.chunks_exact(strides.nbytes));
                blocks.try_for_each(|(addr, block)| write(segments, addr?, block))
            }
            Entry::GetStrided(strides, n) => {
                let room = MAX_RESULTS.saturating_sub(results.len());
                if n > room / strides.nbytes {
                    return Err(Violation::TooMany);
                }

                let mut blocks = strides.addresses().take(n);
                blocks.try_for_each(|addr| append(segments, results, addr?, strides.nbytes))
            }
            Entry::Amo { request, fetches } => {
                let AmoRequest { dest, width, .. } = request;
                if fetches && results.len() + width.nbytes() > MAX_RESULTS {
                    return Err(Violation::TooMany);
                }

                let old = segments
                    .apply(&request)
                    .ok_or(Violation::Address(dest.offset))?;
                if fetches {
                    append_word(results, width, old);
                }
                Ok(())
            }
        }
    }
}

#[inline]
fn write<T>(segments: &Segments<T>, addr: RemoteAddr, data: &[u8]) -> Result<(), Violation> {
    if segments.write(addr, data) {
        Ok(())
    } else {
        Err(Violation::Address(addr.offset))
    }
}

#[inline]
fn append<T>(
    segments: &Segments<T>,
    results: &mut Vec<u8>,
    addr: RemoteAddr,
    nbytes: usize,
) -> Result<(), Violation> {
    if segments.append_to(results, addr, nbytes) {
        Ok(())
    } else {
        Err(Violation::Address(addr.offset))
    }
}

impl BlocksAt {
    /// Returns the addresses of the blocks, without an end; a violation for one that overflows.
    fn addresses(self) -> impl Iterator<Item = Result<RemoteAddr, Violation>> {
        let BlocksAt { first, stride, .. } = self;
        (0..).map(move |i: u64| {
            let offset = i
                .checked_mul(stride)
                .and_then(|distance| first.offset.checked_add(distance))
                .ok_or(Violation::Address(first.offset))?;
            Ok(RemoteAddr { offset, ..first })
        })
    }
}

/// Appends a word in the byte order of this PE.
fn append_word(results: &mut Vec<u8>, width: AmoWidth, word: u64) {
    match width {
        AmoWidth::Four => results.extend_from_slice(&(word as u32).to_ne_bytes()),
        AmoWidth::Eight => results.extend_from_slice(&word.to_ne_bytes()),
    }
}

#[cfg(test)]
mod tests;
