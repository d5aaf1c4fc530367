//! A request to carry out an atomic operation, maybe after a put of the data that comes with it, and the
//! reply to it.

use super::bytes::{segment_of, u32_of, u64_of};
use rushmem_transport::{AmoOp, AmoWidth, RemoteAddr};

/// Bytes of a request.
pub(crate) const REQUEST: usize = 48;
/// Bytes of a reply.
pub(crate) const REPLY: usize = 16;

/// A message whose data goes to `data` before `op` is carried out on the word at `word`; the reply is its old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Which of the origin's slots waits for the reply.
    pub(crate) slot: u32,
    /// How often that slot was in use before.
    pub(crate) turn: u32,
    pub(crate) op: AmoOp,
    pub(crate) width: AmoWidth,
    pub(crate) operand: u64,
    pub(crate) condition: u64,
    pub(crate) word: RemoteAddr,
    /// Where the data goes; without meaning when there is none.
    pub(crate) data: RemoteAddr,
}

/// The reply to a request. What stands ahead of a batch of puts is the reply that it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) slot: u32,
    pub(crate) turn: u32,
    /// The word's old value, zero-extended.
    pub(crate) old: u64,
}

impl Request {
    pub(crate) fn encode(&self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        let op = AmoOp::ALL.iter().position(|op| *op == self.op).unwrap_or_default();
        bytes[0] = op as u8;
        bytes[1] = self.width.nbytes() as u8;
        bytes[2] = self.word.segment as u8;
        bytes[3] = self.data.segment as u8;
        bytes[4..8].copy_from_slice(&self.slot.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.turn.to_le_bytes());
        let words = [self.operand, self.condition, self.word.offset, self.data.offset];
        for (to, word) in bytes[16..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None` when no PE wrote it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Request> {
        let bytes: &[u8; REQUEST] = bytes.try_into().ok()?;
        let width = match bytes[1] {
            4 => AmoWidth::Four,
            8 => AmoWidth::Eight,
            _ => return None,
        };
        let mut numbers = &bytes[4..12];
        let mut words = &bytes[16..];
        Some(Request {
            op: *AmoOp::ALL.get(usize::from(bytes[0]))?,
            width,
            slot: u32_of(&mut numbers)?,
            turn: u32_of(&mut numbers)?,
            operand: u64_of(&mut words)?,
            condition: u64_of(&mut words)?,
            word: RemoteAddr { segment: segment_of(bytes[2])?, offset: u64_of(&mut words)? },
            data: RemoteAddr { segment: segment_of(bytes[3])?, offset: u64_of(&mut words)? },
        })
    }
}

impl Reply {
    pub(crate) fn encode(&self) -> [u8; REPLY] {
        let mut bytes = [0; REPLY];
        bytes[..4].copy_from_slice(&self.slot.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.turn.to_le_bytes());
        bytes[8..].copy_from_slice(&self.old.to_le_bytes());
        bytes
    }

    /// `None` when no PE wrote it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Reply> {
        let mut bytes: &[u8] = bytes.try_into().map(|whole: &[u8; REPLY]| &whole[..]).ok()?;
        Some(Reply {
            slot: u32_of(&mut bytes)?,
            turn: u32_of(&mut bytes)?,
            old: u64_of(&mut bytes)?,
        })
    }
}

#[cfg(test)]
mod tests;
