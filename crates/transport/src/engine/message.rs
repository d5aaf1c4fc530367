//! The heads of requests, which a target's CPU carries out, and of replies, and their encoding:
//! little-endian numbers of fixed length. A provider adds what only its network needs, such as a
//! tag of the job.
//!
//! A message is the head of a request, its [entries](super::entries) and, at most, the data that
//! its first entry attaches; or the head of a reply and the results of the entries that do not fit
//! it.

use crate::Pe;
use crate::peers::loss::{RefusedMessage, Violation};

/// Bytes of the encoded head of a request.
pub const REQUEST: usize = 32;
/// Bytes of the encoded head of a reply.
pub const REPLY: usize = 16 + SHORT;
/// Maximum number of bytes of results that the head of a reply includes: a word.
pub const SHORT: usize = 8;

/// The encoding of a slot or an origin where there is none.
const NONE: u32 = u32::MAX;
/// The flag of a request that asks for an acknowledgment.
const ASKS: u8 = 1;
/// The flag of a request whose results are longer than [`SHORT`].
const LONG: u8 = 2;

/// An acknowledgment: how many requests of a stream its target has carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The origin of the stream.
    pub origin: u32,
    /// The number of requests that the target has carried out.
    pub count: u32,
}

/// A request of an origin: the head of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The stream of the request.
    pub stream: Stream,
    /// Its position in the stream.
    pub position: StreamPosition,
    /// Acknowledges requests of the target that the sender has carried out; `None` if this request
    /// acknowledges none.
    pub ack: Option<Ack>,
    /// The slot that awaits the results of the entries, if they have any.
    pub slot: Option<AwaitedSlot>,
    /// The number of bytes of the entries, which follow.
    pub nbytes: u16,
}

/// A slot of an origin that awaits results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedSlot {
    /// The number of the slot.
    pub number: u32,
    /// The results are longer than [`SHORT`].
    pub is_long: bool,
}

/// The reply to a request that asks for an acknowledgment, or whose entries have results. Results
/// that are longer than [`SHORT`] follow the encoded reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The PE that replies.
    pub pe: Pe,
    /// Acknowledges requests of the stream of the request.
    pub ack: Ack,
    /// The answer, if the request has a slot.
    pub answer: Option<Answer>,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the slot of the request.
    pub slot: u32,
    /// The results, unless they are longer; followed by zeros.
    pub short: [u8; SHORT],
}

impl Request {
    /// Encodes the request.
    pub fn encode(&self) -> [u8; REQUEST] {
        let Request {
            stream: Stream { pe, origin },
            position:
                StreamPosition {
                    number,
                    after,
                    asks,
                },
            ack,
            slot,
            nbytes,
        } = *self;

        let mut flags = 0;
        if asks {
            flags |= ASKS;
        }
        if slot.is_some_and(|slot| slot.is_long) {
            flags |= LONG;
        }

        let [low, high] = nbytes.to_le_bytes();
        let ack = ack.unwrap_or(Ack {
            origin: NONE,
            count: 0,
        });

        bytes([
            u32::from_le_bytes([low, high, flags, 0]),
            pe.0,
            origin,
            number,
            after,
            slot.map_or(NONE, |slot| slot.number),
            ack.origin,
            ack.count,
        ])
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// When the bytes are no valid head of a request.
    pub fn decode(bytes: &[u8]) -> Result<Request, RefusedMessage> {
        if let Ok(bytes) = bytes.try_into()
            && let Some(request) = Request::decode_whole(bytes)
        {
            return Ok(request);
        }

        // The number of the PE is the second one of the head. Also a message that is too short
        // shows who sent it if it has this number.
        let sender = bytes.get(4..).and_then(|rest| rest.first_chunk());
        Err(RefusedMessage {
            from: sender.map(|pe| Pe(u32::from_le_bytes(*pe))),
            why: Violation::Unknown("request").to_string(),
        })
    }

    /// Decodes a head of the right length. Returns `None` for flags that do not exist, or that the
    /// other fields contradict.
    fn decode_whole(bytes: &[u8; REQUEST]) -> Option<Request> {
        let [first, pe, origin, number, after, slot, acked_origin, count] = fields(bytes);
        let [low, high, flags, zero] = first.to_le_bytes();
        let nbytes = u16::from_le_bytes([low, high]);
        let asks = flags & ASKS != 0;
        let is_long = flags & LONG != 0;

        // Long results need a slot that awaits them.
        if flags > ASKS | LONG || zero != 0 || is_long && slot == NONE {
            return None;
        }

        let ack = if acked_origin == NONE {
            None
        } else {
            Some(Ack {
                origin: acked_origin,
                count,
            })
        };
        let slot = if slot == NONE {
            None
        } else {
            Some(AwaitedSlot {
                number: slot,
                is_long,
            })
        };

        Some(Request {
            stream: Stream { pe: Pe(pe), origin },
            position: StreamPosition {
                number,
                after,
                asks,
            },
            ack,
            slot,
            nbytes,
        })
    }

    /// Returns the reply of PE `me`, which has carried out `count` requests of the stream, if the
    /// request asks for an acknowledgment or has results. Removes short results, and those that the
    /// request does not await, from `results`; the others follow the reply.
    pub fn reply(&self, me: Pe, count: u32, results: &mut Vec<u8>) -> Option<Reply> {
        if !self.position.asks && self.slot.is_none() {
            results.clear();
            return None;
        }

        let mut short = [0; SHORT];
        if results.len() <= SHORT {
            short[..results.len()].copy_from_slice(results);
        }

        if results.len() <= SHORT || self.slot.is_none() {
            results.clear();
        }

        Some(Reply {
            pe: me,
            ack: Ack {
                origin: self.stream.origin,
                count,
            },
            answer: self.slot.map(|slot| Answer {
                slot: slot.number,
                short,
            }),
        })
    }
}

impl Reply {
    /// Encodes the reply.
    pub fn encode(&self) -> [u8; REPLY] {
        let Reply {
            pe,
            ack: Ack { origin, count },
            answer,
        } = *self;

        let Answer { slot, short } = answer.unwrap_or(Answer {
            slot: NONE,
            short: [0; SHORT],
        });

        let word = u64::from_le_bytes(short);
        bytes([pe.0, origin, count, slot, word as u32, (word >> 32) as u32])
    }

    /// Decodes a reply.
    ///
    /// # Errors
    /// When the bytes are no valid head of a reply.
    pub fn decode(bytes: &[u8]) -> Result<Reply, RefusedMessage> {
        let Ok(bytes) = <&[u8; REPLY]>::try_from(bytes) else {
            // The number of the PE is the first one of the head. Also a message that is too short
            // shows who sent it if it has this number.
            let sender = bytes.first_chunk();
            return Err(RefusedMessage {
                from: sender.map(|pe| Pe(u32::from_le_bytes(*pe))),
                why: Violation::Unknown("reply").to_string(),
            });
        };

        let [pe, origin, count, slot, low, high] = fields(bytes);
        let answer = if slot == NONE {
            None
        } else {
            let word = u64::from(high) << 32 | u64::from(low);
            Some(Answer {
                slot,
                short: word.to_le_bytes(),
            })
        };
        Ok(Reply {
            pe: Pe(pe),
            ack: Ack { origin, count },
            answer,
        })
    }
}

/// Encodes the numbers of a head.
fn bytes<const NUMBERS: usize, const N: usize>(numbers: [u32; NUMBERS]) -> [u8; N] {
    const { assert!(N == 4 * NUMBERS, "as many bytes as the numbers have") };

    let mut bytes = [0; N];
    for (chunk, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
        *chunk = number.to_le_bytes();
    }
    bytes
}

/// Decodes the numbers of a head.
fn fields<const NUMBERS: usize, const N: usize>(bytes: &[u8; N]) -> [u32; NUMBERS] {
    const { assert!(N == 4 * NUMBERS, "as many bytes as the numbers have") };

    let numbers = bytes.as_chunks().0;
    std::array::from_fn(|i| u32::from_le_bytes(numbers[i]))
}

/// Maximum number of requests of a stream in flight. It is far below 2^31, so that counts can be
/// compared although they wrap around (`has_reached`), and bounds what a target keeps of a peer
/// whose requests arrive out of order.
pub const MAX_IN_FLIGHT: u32 = 1 << 16;
/// Exclusive bound of the numbers of the origins of a PE. It bounds the number of streams that a
/// target keeps for a peer. Where a PE has more contexts, they share origins.
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
