//! Requests, which a target's CPU carries out, and replies, and their encoding: 32-bit numbers,
//! then 64-bit words, all little-endian. A provider adds what only its network needs, such as a tag
//! of the job or the data.

use crate::peers::loss::{RefusedMessage, Violation};
use crate::{AmoOp, AmoRequest, AmoWidth, Pe, RemoteAddr, Segment};

/// Bytes of an encoded request.
pub const REQUEST: usize = 64;
/// Bytes of an encoded reply.
pub const REPLY: usize = 24;

/// The encoding of the operation in a request without one.
const NO_OP: u8 = u8::MAX;
/// The encoding of a slot or an origin where there is none.
const NONE: u32 = u32::MAX;
/// The bit of the width that says that the request asks for an acknowledgment.
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
    /// The stream of the request.
    pub stream: Stream,
    /// Its position in the stream.
    pub position: StreamPosition,
    /// Acknowledges requests of the target that the sender has carried out.
    pub ack: Option<Ack>,
    /// The slot of the origin that awaits the old value or the results of the batch, if the request
    /// returns any.
    pub slot: Option<u32>,
    /// The atomic operation that is carried out after the data are stored; absent in a request that
    /// only has data or a batch, or only asks for an acknowledgment.
    pub update: Option<AmoRequest>,
    /// The address for the data of the request; meaningless if there are none.
    pub dest: RemoteAddr,
}

/// The reply to a request that asks for an acknowledgment, or returns an old value or the results
/// of a batch. The results follow the encoded reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The PE that replies.
    pub pe: Pe,
    /// Acknowledges requests of the stream of the request.
    pub ack: Ack,
    /// The slot of the request, if it has one, and the old value, zero-extended; 0 if the request
    /// has no atomic operation.
    pub old: Option<(u32, u64)>,
}

impl Request {
    /// Encodes the request.
    pub fn encode(&self) -> [u8; REQUEST] {
        let Request {
            stream,
            position,
            ack,
            slot,
            update,
            dest,
        } = *self;
        let asks = if position.asks { ASKS } else { 0 };
        let (op, width, segment, [operand, condition, offset]) = match update {
            None => (NO_OP, 0, 0, [0; 3]),
            Some(AmoRequest {
                op,
                width,
                dest,
                operand,
                condition,
            }) => {
                let words = [operand, condition, dest.offset];
                (op as u8, width.nbytes() as u8, dest.segment as u8, words)
            }
        };
        let head = u32::from_le_bytes([op, width | asks, segment, dest.segment as u8]);
        let ack = ack.unwrap_or(Ack {
            origin: NONE,
            count: 0,
        });
        let (Stream { pe, origin }, StreamPosition { number, after, .. }) = (stream, position);
        let slot = slot.unwrap_or(NONE);
        let numbers = [
            head, pe.0, origin, number, after, slot, ack.origin, ack.count,
        ];
        bytes(&numbers, &[operand, condition, offset, dest.offset])
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// When the bytes are no valid message.
    pub fn decode(bytes: &[u8]) -> Result<Request, RefusedMessage> {
        let sender = bytes.get(4..).and_then(|rest| rest.first_chunk());
        let from = sender.map(|pe| Pe(u32::from_le_bytes(*pe)));
        let request = bytes.try_into().ok().and_then(Request::decode_whole);
        request.ok_or_else(|| RefusedMessage {
            from,
            why: Violation::Unknown("request").to_string(),
        })
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
            op => Some(AmoRequest {
                op: AmoOp::from_number(op)?,
                width: AmoWidth::from_nbytes(width & !ASKS)?,
                dest: address(segment, offset)?,
                operand,
                condition,
            }),
        };
        Some(Request {
            stream: Stream { pe: Pe(pe), origin },
            position: StreamPosition {
                number,
                after,
                asks: width & ASKS != 0,
            },
            ack: (acked_origin != NONE).then_some(Ack {
                origin: acked_origin,
                count,
            }),
            slot: (slot != NONE).then_some(slot),
            update,
            dest: address(data_segment, data_offset)?,
        })
    }
}

impl Reply {
    /// Encodes the reply.
    pub fn encode(&self) -> [u8; REPLY] {
        let Reply {
            pe,
            ack: Ack { origin, count },
            old,
        } = *self;
        let (slot, old) = old.unwrap_or((NONE, 0));
        bytes(&[pe.0, origin, count, slot], &[old])
    }

    /// Decodes a reply.
    ///
    /// # Errors
    /// When the bytes are no valid message.
    pub fn decode(bytes: &[u8]) -> Result<Reply, RefusedMessage> {
        let from = bytes.first_chunk().map(|pe| Pe(u32::from_le_bytes(*pe)));
        let unknown = |_| RefusedMessage {
            from,
            why: Violation::Unknown("reply").to_string(),
        };
        let bytes: &[u8; REPLY] = bytes.try_into().map_err(unknown)?;
        let ([pe, origin, count, slot], [old]) = fields(bytes);
        let old = (slot != NONE).then_some((slot, old));
        Ok(Reply {
            pe: Pe(pe),
            ack: Ack { origin, count },
            old,
        })
    }
}

/// Returns numbers and words as the bytes of a message of exactly that length.
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
    (
        std::array::from_fn(number),
        std::array::from_fn(|i| u64::from_le_bytes(words[i])),
    )
}

/// Maximum number of requests of a stream in flight.
pub const MAX_IN_FLIGHT: u32 = 1 << 16;
/// Exclusive bound of the numbers of the origins of a PE.
pub const MAX_ORIGINS: u32 = 1 << 16;

/// Returns true if `count` is `other` or later. Counts wrap around, so both must be less than 2^31
/// apart.
pub(super) fn has_reached(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 >= 0
}

/// Identifies a stream of requests at its target: all requests from one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The PE that issues the requests.
    pub pe: Pe,
    /// The number of the origin on that PE.
    pub origin: u32,
}

/// The position of a request in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// The number of the request; the first is 1.
    pub number: u32,
    /// The target carries the request out after all requests up to this number.
    pub after: u32,
    /// The target acknowledges the request by a message once it is carried out.
    pub asks: bool,
}

#[cfg(test)]
mod tests;
