//! A request to carry out an atomic operation, maybe after a put of the data that comes with it,
//! and the reply to it.

use super::bytes::{segment_of, u32_of, u64_of};
use rushmem_transport::kit::acks::Ack;
use rushmem_transport::kit::stream::{Place, Stream, Update};
use rushmem_transport::{AmoOp, AmoWidth, Pe, RemoteAddr};

/// Bytes of a request.
pub(crate) const REQUEST: usize = 72;
/// Bytes of a reply.
pub(crate) const REPLY: usize = 24;

/// The place of a number that is none.
const NONE: u32 = u32::MAX;
/// The number of no operation.
const NO_OP: u8 = u8::MAX;
/// A flag of a request: the target acknowledges with its count.
const ASKS: u8 = 1;

/// A message of a stream, whose data goes to `data` before the update is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) stream: Stream,
    pub(crate) place: Place,
    /// Acknowledges requests of a stream of the receiver.
    pub(crate) ack: Option<Ack>,
    /// Where the old value is due.
    pub(crate) due: Option<Due>,
    /// What is carried out; nothing where the message brings puts, or asks alone.
    pub(crate) update: Option<Update>,
    /// Where the data goes; without meaning when there is none.
    pub(crate) data: RemoteAddr,
}

/// A use of one of the origin's slots, where an old value is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) slot: u32,
    /// How often that slot was in use before.
    pub(crate) turn: u32,
}

/// The reply to a request that asks, or whose old value is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Who replies.
    pub(crate) pe: Pe,
    /// How many requests of the stream it has carried out.
    pub(crate) count: u32,
    pub(crate) due: Option<Due>,
    /// The word's old value, zero-extended; without meaning when none is due.
    pub(crate) old: u64,
}

fn put_numbers(bytes: &mut [u8], numbers: &[u32]) {
    for (to, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        to.copy_from_slice(&number.to_le_bytes());
    }
}

fn put_words(bytes: &mut [u8], words: &[u64]) {
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

/// The slot and the turn, as numbers.
fn numbers_of(due: Option<Due>) -> [u32; 2] {
    due.map_or([NONE, 0], |Due { slot, turn }| [slot, turn])
}

fn due_of(bytes: &mut &[u8]) -> Option<Option<Due>> {
    let (slot, turn) = (u32_of(bytes)?, u32_of(bytes)?);
    Some((slot != NONE).then_some(Due { slot, turn }))
}

impl Request {
    pub(crate) fn encode(&self) -> [u8; REQUEST] {
        let Request { stream, place, ack, due, update, data } = *self;
        let mut bytes = [0; REQUEST];
        bytes[0] = NO_OP;
        bytes[3] = data.segment as u8;
        bytes[4] = if place.asks { ASKS } else { 0 };
        let [slot, turn] = numbers_of(due);
        let (origin, count) = ack.map_or((NONE, 0), |ack| (ack.origin, ack.count));
        let numbers =
            [stream.pe.0, stream.origin, place.number, place.after, slot, turn, origin, count];
        put_numbers(&mut bytes[8..40], &numbers);
        put_words(&mut bytes[64..], &[data.offset]);
        if let Some(Update { op, width, operand, condition, dest }) = update {
            bytes[..3].copy_from_slice(&[op as u8, width.nbytes() as u8, dest.segment as u8]);
            put_words(&mut bytes[40..64], &[operand, condition, dest.offset]);
        }
        bytes
    }

    /// `None` when no PE wrote it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Request> {
        let bytes: &[u8; REQUEST] = bytes.try_into().ok()?;
        let (mut numbers, mut words) = (&bytes[8..40], &bytes[40..]);
        let stream = Stream { pe: Pe(u32_of(&mut numbers)?), origin: u32_of(&mut numbers)? };
        let (number, after) = (u32_of(&mut numbers)?, u32_of(&mut numbers)?);
        let due = due_of(&mut numbers)?;
        let (origin, count) = (u32_of(&mut numbers)?, u32_of(&mut numbers)?);
        let (operand, condition) = (u64_of(&mut words)?, u64_of(&mut words)?);
        let (word, data) = (u64_of(&mut words)?, u64_of(&mut words)?);
        let update = match bytes[0] {
            NO_OP => None,
            op => Some(Update {
                op: AmoOp::from_number(op)?,
                width: AmoWidth::from_nbytes(bytes[1])?,
                operand,
                condition,
                dest: RemoteAddr { segment: segment_of(bytes[2])?, offset: word },
            }),
        };
        Some(Request {
            stream,
            place: Place { number, after, asks: bytes[4] & ASKS != 0 },
            ack: (origin != NONE).then_some(Ack { origin, count }),
            due,
            update,
            data: RemoteAddr { segment: segment_of(bytes[3])?, offset: data },
        })
    }
}

impl Reply {
    pub(crate) fn encode(&self) -> [u8; REPLY] {
        let Reply { pe, count, due, old } = *self;
        let [slot, turn] = numbers_of(due);
        let mut bytes = [0; REPLY];
        put_numbers(&mut bytes[..16], &[pe.0, count, slot, turn]);
        put_words(&mut bytes[16..], &[old]);
        bytes
    }

    /// `None` when no PE wrote it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Reply> {
        let mut bytes: &[u8] = bytes.try_into().map(|whole: &[u8; REPLY]| &whole[..]).ok()?;
        Some(Reply {
            pe: Pe(u32_of(&mut bytes)?),
            count: u32_of(&mut bytes)?,
            due: due_of(&mut bytes)?,
            old: u64_of(&mut bytes)?,
        })
    }
}

#[cfg(test)]
mod tests;
