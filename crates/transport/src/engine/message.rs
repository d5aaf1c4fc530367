//! The messages by which an origin requests what a target's CPU carries out, and the replies, as
//! bytes: numbers, then words, all little-endian. What only one network needs (a tag of the job,
//! data) its provider adds.

use crate::peers::loss::{RefusedMessage, Violation};
use crate::{AmoOp, AmoRequest, AmoWidth, OldValue, Pe, RemoteAddr, Segment};

/// Bytes of a request.
pub const REQUEST: usize = 64;
/// Bytes of a reply.
pub const REPLY: usize = 24;

/// The number of no operation, and of no slot or origin.
const NO_OP: u8 = u8::MAX;
const NONE: u32 = u32::MAX;
/// Added to the width of a request that asks.
const ASKS: u8 = 0x80;

/// An acknowledgment: how many requests of a stream its target has carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The origin of the stream.
    pub origin: u32,
    /// The number of requests that the target has carried out.
    pub count: u32,
}

/// A request of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The stream to which it belongs.
    pub stream: Stream,
    /// Its place there.
    pub place: StreamPosition,
    /// Acknowledges requests of a stream of the receiver.
    pub ack: Option<Ack>,
    /// The slot of the origin to which the old value goes, if that is due.
    pub slot: Option<u32>,
    /// The atomic operation that is carried out after the data are stored; absent in a request that
    /// only brings data or asks for an acknowledgment.
    pub update: Option<Update>,
    /// The address for the data that come with the request; without meaning if none do.
    pub dest: RemoteAddr,
}

/// The reply to a request that asks, or whose old value is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The PE that replies.
    pub pe: Pe,
    /// Acknowledges requests of the stream.
    pub ack: Ack,
    /// The slot and the old value, zero-extended.
    pub old: Option<(u32, u64)>,
}

impl Request {
    /// Returns the request as bytes.
    pub fn encode(&self) -> [u8; REQUEST] {
        let Request { stream, place, ack, slot, update, dest } = *self;
        let asks = if place.asks { ASKS } else { 0 };
        let (op, width, segment, [operand, condition, offset]) = match update {
            None => (NO_OP, 0, 0, [0; 3]),
            Some(Update { op, width, dest, operand, condition }) => {
                let words = [operand, condition, dest.offset];
                (op as u8, width.nbytes() as u8, dest.segment as u8, words)
            }
        };
        let head = u32::from_le_bytes([op, width | asks, segment, dest.segment as u8]);
        let ack = ack.unwrap_or(Ack { origin: NONE, count: 0 });
        let (Stream { pe, origin }, StreamPosition { number, after, .. }) = (stream, place);
        let slot = slot.unwrap_or(NONE);
        let numbers = [head, pe.0, origin, number, after, slot, ack.origin, ack.count];
        bytes(&numbers, &[operand, condition, offset, dest.offset])
    }

    /// Returns the request of these bytes.
    ///
    /// # Errors
    /// When no PE wrote them.
    pub fn decode(bytes: &[u8]) -> Result<Request, RefusedMessage> {
        let sender = bytes.get(4..).and_then(|rest| rest.first_chunk());
        let from = sender.map(|pe| Pe(u32::from_le_bytes(*pe)));
        let request = bytes.try_into().ok().and_then(Request::decode_whole);
        request
            .ok_or_else(|| RefusedMessage { from, why: Violation::Unknown("request").to_string() })
    }

    fn decode_whole(bytes: &[u8; REQUEST]) -> Option<Request> {
        let (numbers, [operand, condition, offset, data_offset]) = fields(bytes);
        let [head, pe, origin, number, after, slot, acked_origin, count] = numbers;
        let [op, width, segment, data_segment] = head.to_le_bytes();
        let address = |segment, offset| {
            Segment::from_number(segment).map(|segment| RemoteAddr { segment, offset })
        };
        let update = match op {
            NO_OP => None,
            op => Some(Update {
                op: AmoOp::from_number(op)?,
                width: AmoWidth::from_nbytes(width & !ASKS)?,
                dest: address(segment, offset)?,
                operand,
                condition,
            }),
        };
        Some(Request {
            stream: Stream { pe: Pe(pe), origin },
            place: StreamPosition { number, after, asks: width & ASKS != 0 },
            ack: (acked_origin != NONE).then_some(Ack { origin: acked_origin, count }),
            slot: (slot != NONE).then_some(slot),
            update,
            dest: address(data_segment, data_offset)?,
        })
    }
}

impl Reply {
    /// Returns the reply as bytes.
    pub fn encode(&self) -> [u8; REPLY] {
        let Reply { pe, ack: Ack { origin, count }, old } = *self;
        let (slot, old) = old.unwrap_or((NONE, 0));
        bytes(&[pe.0, origin, count, slot], &[old])
    }

    /// Returns the reply of these bytes.
    ///
    /// # Errors
    /// When no PE wrote them.
    pub fn decode(bytes: &[u8]) -> Result<Reply, RefusedMessage> {
        let from = bytes.first_chunk().map(|pe| Pe(u32::from_le_bytes(*pe)));
        let unknown = |_| RefusedMessage { from, why: Violation::Unknown("reply").to_string() };
        let bytes: &[u8; REPLY] = bytes.try_into().map_err(unknown)?;
        let ([pe, origin, count, slot], [old]) = fields(bytes);
        let old = (slot != NONE).then_some((slot, old));
        Ok(Reply { pe: Pe(pe), ack: Ack { origin, count }, old })
    }
}

/// Numbers and words as the bytes of a message, which has exactly as many.
fn bytes<const N: usize>(numbers: &[u32], words: &[u64]) -> [u8; N] {
    let mut bytes = [0; N];
    let (start, end) = bytes.split_at_mut(4 * numbers.len());
    for (to, number) in start.as_chunks_mut().0.iter_mut().zip(numbers) {
        *to = number.to_le_bytes();
    }
    for (to, word) in end.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

/// Returns the numbers and words of a message.
fn fields<const NUMBERS: usize, const WORDS: usize>(
    bytes: &[u8],
) -> ([u32; NUMBERS], [u64; WORDS]) {
    let (start, end) = bytes.split_at(4 * NUMBERS);
    let (numbers, words) = (start.as_chunks().0, end.as_chunks().0);
    let number = |i| u32::from_le_bytes(numbers[i]);
    (std::array::from_fn(number), std::array::from_fn(|i| u64::from_le_bytes(words[i])))
}

/// No origin has more requests of a stream in flight.
pub const MAX_IN_FLIGHT: u32 = 1 << 16;
/// A PE has fewer origins.
pub const MAX_ORIGINS: u32 = 1 << 16;

/// Returns true if a count has reached another one.
pub(super) fn has_reached(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 >= 0
}

/// The identity of a stream at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The PE that issues it.
    pub pe: Pe,
    /// The origin, by its number on that PE.
    pub origin: u32,
}

/// The place of a request in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// Its number; the first is 1.
    pub number: u32,
    /// The number of requests that are carried out before it.
    pub after: u32,
    /// The target acknowledges it by a message once it is carried out.
    pub asks: bool,
}

/// An atomic operation, as a request carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The operation.
    pub op: AmoOp,
    /// The width of the word.
    pub width: AmoWidth,
    /// The word.
    pub dest: RemoteAddr,
    /// The operand.
    pub operand: u64,
    /// The value with which the word is compared.
    pub condition: u64,
}

impl Update {
    /// Returns the update that an operation makes.
    pub fn of(request: &AmoRequest) -> Update {
        let &AmoRequest { dest, width, op, operand, condition, .. } = request;
        Update { op, width, dest, operand, condition }
    }

    /// Returns the operation, at its target.
    pub fn at_target(self) -> AmoRequest {
        let Update { op, width, dest, operand, condition } = self;
        AmoRequest { dest, width, op, operand, condition, old: OldValue::Returned }
    }
}

#[cfg(test)]
mod tests;
