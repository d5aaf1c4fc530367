//! What PEs send each other as messages: atomic operations that the target's CPU carries out, which may follow a few bytes of
//! data, and their old values. Every message carries the job's tag: one without it is not meant for this job.
#![allow(unsafe_code)]

use rushmem_transport::{AmoOp, AmoWidth, LocalBuf, RemoteAddr, Segment, mem};

/// Bytes of the longest message.
pub(crate) const NBYTES: usize = 64;

/// Bytes of data that a request has room for.
const DATA: usize = 8;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// Who asked, and for what: comes back with the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) ep: u32,
    pub(crate) slot: u32,
}

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
            unsafe { mem::copy_bytes(bytes.as_mut_ptr(), source.base, source.nbytes) };
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

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Asks to carry out an operation and tell `pe` the old value.
    Amo {
        pe: u32,
        token: Token,
        dest: RemoteAddr,
        op: AmoOp,
        width: AmoWidth,
        operand: u64,
        condition: u64,
        data: Option<Data>,
    },
    /// It is carried out.
    Old { token: Token, value: u64 },
}

impl Message {
    pub(crate) fn encode(&self, tag: u64) -> [u8; NBYTES] {
        let (head, token, words) = match *self {
            Message::Amo { pe, token, dest, op, width, operand, condition, data } => {
                let [place, bytes] = Data::encode(data);
                let head = [REQUEST, op as u8, width.nbytes() as u8, dest.segment as u8];
                ((head, pe), token, [dest.offset, operand, condition, place, bytes])
            }
            Message::Old { token, value } => (([REPLY, 0, 0, 0], 0), token, [value, 0, 0, 0, 0]),
        };
        let mut bytes = [0; NBYTES];
        bytes[..8].copy_from_slice(&tag.to_le_bytes());
        bytes[8..12].copy_from_slice(&head.0);
        bytes[12..16].copy_from_slice(&head.1.to_le_bytes());
        bytes[16..20].copy_from_slice(&token.ep.to_le_bytes());
        bytes[20..24].copy_from_slice(&token.slot.to_le_bytes());
        for (place, word) in bytes[24..].chunks_exact_mut(8).zip(words) {
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
        let token = Token { ep: half(16)?, slot: half(20)? };
        match bytes[8] {
            REQUEST => {
                let segment = Segment::from_number(bytes[11])?;
                Some(Message::Amo {
                    pe: half(12)?,
                    token,
                    dest: RemoteAddr { segment, offset: word(24)? },
                    op: AmoOp::from_number(bytes[9])?,
                    width: AmoWidth::from_nbytes(bytes[10])?,
                    operand: word(32)?,
                    condition: word(40)?,
                    data: Data::decode([word(48)?, word(56)?])?,
                })
            }
            REPLY => Some(Message::Old { token, value: word(24)? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_other_bytes_are_refused() {
        let token = Token { ep: 3, slot: u32::MAX };
        let mut all = vec![Message::Old { token, value: u64::MAX - 1 }];
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
                        let (pe, token) = (9, token);
                        all.push(Message::Amo {
                            pe,
                            token,
                            dest,
                            op,
                            width,
                            operand,
                            condition,
                            data,
                        });
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
                if matches!(message, Message::Amo { .. }) || at == 8 {
                    assert_eq!(Message::decode(&damaged, 77), None, "byte {at}");
                }
            }
        }
    }
}
