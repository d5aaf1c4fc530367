//! The messages between PEs: atomic operations that the target's CPU carries out, which may follow
//! a few bytes of data, and the replies. Every message carries the job's tag; one without it is not
//! meant for this job.
#![allow(unsafe_code)]

use rushmem_transport::kit::acks::Ack;
use rushmem_transport::kit::stream::{Place, Stream, Update};
use rushmem_transport::{AmoOp, AmoWidth, LocalBuf, Pe, RemoteAddr, Segment, mem};

/// Bytes of the longest message.
pub(crate) const NBYTES: usize = 80;

/// Bytes of data that a request has room for.
const DATA: usize = 8;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// The number of no operation, and of no slot or origin.
const NO_OP: u8 = u8::MAX;
const NONE: u32 = u32::MAX;
/// Added to the width of a request that asks.
const ASKS: u8 = 0x80;

/// A few bytes that are to be stored before the operation is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) dest: RemoteAddr,
    bytes: [u8; DATA],
    nbytes: u8,
}

impl Data {
    /// A copy of the source, if there is any and a message has room for it.
    ///
    /// # Safety
    /// The source is valid for reads.
    pub(crate) unsafe fn copy(dest: RemoteAddr, source: LocalBuf) -> Option<Data> {
        let mut bytes = [0; DATA];
        let fits = (1..=DATA).contains(&source.nbytes);
        fits.then(|| {
            // SAFETY: valid by contract; there is room for as many bytes.
            unsafe {
                mem::copy_bytes::<mem::Volatile>(bytes.as_mut_ptr(), source.base, source.nbytes)
            };
            Data { dest, bytes, nbytes: source.nbytes as u8 }
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.nbytes)]
    }

    /// Where it goes and how much it is, then the bytes.
    fn encode(data: Option<Data>) -> [u64; 2] {
        data.map_or([0; 2], |Data { dest, bytes, nbytes }| {
            let place = dest.offset << 8 | u64::from(dest.segment as u8) << 4 | u64::from(nbytes);
            [place, u64::from_le_bytes(bytes)]
        })
    }

    /// `None` when it means nothing.
    fn decode([place, bytes]: [u64; 2]) -> Option<Option<Data>> {
        let nbytes = place as u8 & 15;
        if nbytes == 0 {
            return Some(None);
        }
        let segment = Segment::from_number(place as u8 >> 4)?;
        let dest = RemoteAddr { segment, offset: place >> 8 };
        let data = Data { dest, bytes: bytes.to_le_bytes(), nbytes };
        (usize::from(nbytes) <= DATA).then_some(Some(data))
    }
}

/// A request of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) stream: Stream,
    pub(crate) place: Place,
    /// Acknowledges requests of a stream of the receiver.
    pub(crate) ack: Option<Ack>,
    /// The slot to which the old value goes.
    pub(crate) slot: Option<u32>,
    /// Stored before the update.
    pub(crate) data: Option<Data>,
    /// Absent in a request that only asks for an acknowledgment.
    pub(crate) update: Option<Update>,
}

/// The reply to a request that asks, or whose old value is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The PE that replies.
    pub(crate) pe: Pe,
    pub(crate) ack: Ack,
    /// The slot and the old value.
    pub(crate) old: Option<(u32, u64)>,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request(Request),
    Reply(Reply),
}

impl Message {
    pub(crate) fn encode(&self, tag: u64) -> [u8; NBYTES] {
        let (head, numbers, words) = match *self {
            Message::Request(Request { stream, place, ack, slot, data, update }) => {
                let asks = if place.asks { ASKS } else { 0 };
                let (op, width, segment, [offset, operand, condition]) = match update {
                    None => (NO_OP, 0, 0, [0; 3]),
                    Some(Update { op, width, dest, operand, condition }) => {
                        let words = [dest.offset, operand, condition];
                        (op as u8, width.nbytes() as u8, dest.segment as u8, words)
                    }
                };
                let [at, bytes] = Data::encode(data);
                let ack = ack.unwrap_or(Ack { origin: NONE, count: 0 });
                let (origin, slot) = (stream.origin, slot.unwrap_or(NONE));
                let (number, after) = (place.number, place.after);
                (
                    [REQUEST, op, width | asks, segment],
                    [stream.pe.0, origin, slot, number, after, ack.origin, ack.count],
                    [offset, operand, condition, at, bytes],
                )
            }
            Message::Reply(Reply { pe, ack: Ack { origin, count }, old }) => {
                let (slot, old) = old.unwrap_or((NONE, 0));
                ([REPLY, 0, 0, 0], [pe.0, origin, slot, count, 0, 0, 0], [old, 0, 0, 0, 0])
            }
        };
        let mut bytes = [0; NBYTES];
        bytes[..8].copy_from_slice(&tag.to_le_bytes());
        bytes[8..12].copy_from_slice(&head);
        for (place, number) in bytes[12..40].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (place, word) in bytes[40..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None` when it is not of this job, or means nothing.
    pub(crate) fn decode(bytes: &[u8; NBYTES], tag: u64) -> Option<Message> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if word(0)? != tag {
            return None;
        }
        let (pe, origin, slot) = (Pe(half(12)?), half(16)?, half(20)?);
        let slot = (slot != NONE).then_some(slot);
        match bytes[8] {
            REQUEST => {
                let ack = Ack { origin: half(32)?, count: half(36)? };
                let update = match bytes[9] {
                    NO_OP => None,
                    op => Some(Update {
                        op: AmoOp::from_number(op)?,
                        width: AmoWidth::from_nbytes(bytes[10] & !ASKS)?,
                        dest: RemoteAddr {
                            segment: Segment::from_number(bytes[11])?,
                            offset: word(40)?,
                        },
                        operand: word(48)?,
                        condition: word(56)?,
                    }),
                };
                let asks = bytes[10] & ASKS != 0;
                Some(Message::Request(Request {
                    stream: Stream { pe, origin },
                    place: Place { number: half(24)?, after: half(28)?, asks },
                    ack: (ack.origin != NONE).then_some(ack),
                    slot,
                    data: Data::decode([word(64)?, word(72)?])?,
                    update,
                }))
            }
            REPLY => {
                let ack = Ack { origin, count: half(24)? };
                let old = slot.and_then(|slot| Some((slot, word(40)?)));
                Some(Message::Reply(Reply { pe, ack, old }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_other_bytes_are_refused() {
        let ack = Ack { origin: 3, count: u32::MAX };
        let (pe, stream) = (Pe(9), Stream { pe: Pe(9), origin: 4 });
        let asks = Place { number: 7, after: 6, asks: true };
        let alone =
            Request { stream, place: asks, ack: None, slot: None, data: None, update: None };
        let mut all = vec![
            Message::Reply(Reply { pe, ack, old: Some((5, u64::MAX - 1)) }),
            Message::Reply(Reply { pe, ack, old: None }),
            Message::Request(alone),
        ];
        for op in AmoOp::ALL {
            for width in [AmoWidth::Four, AmoWidth::Eight] {
                for segment in [Segment::Heap, Segment::Internal, Segment::Static] {
                    let dest = RemoteAddr { segment, offset: 1 << 40 };
                    let (operand, condition) = (7, u64::MAX);
                    for nbytes in [0, 1, DATA] {
                        let mut bytes = [0xFF; DATA];
                        let source = LocalBuf { base: bytes.as_mut_ptr(), nbytes };
                        // SAFETY: a local array.
                        let data = unsafe { Data::copy(dest, source) };
                        assert_eq!(data.map_or(0, |data| data.bytes().len()), nbytes);
                        let update = Some(Update { op, width, dest, operand, condition });
                        let place = Place { asks: nbytes > 0, ..asks };
                        let (ack, slot) = (Some(ack), Some(u32::MAX - 1));
                        let request = Request { stream, place, ack, slot, data, update };
                        all.push(Message::Request(request));
                    }
                }
            }
        }
        for message in all {
            let bytes = message.encode(77);
            assert_eq!(Message::decode(&bytes, 77), Some(message));
            assert_eq!(Message::decode(&bytes, 78), None);
            for at in [8, 9, 10, 11] {
                let mut damaged = bytes;
                damaged[at] = 99;
                let has_update =
                    matches!(message, Message::Request(Request { update: Some(_), .. }));
                if has_update || at == 8 {
                    assert_eq!(Message::decode(&damaged, 77), None, "byte {at}");
                }
            }
        }
    }
}
