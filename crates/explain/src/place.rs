//! The place of a status in shared memory: how a PE writes it and how others read it meanwhile.
//!
//! The place has [`PLACE_BYTES`] bytes and consists of words of 8 bytes in native byte order. Word
//! 0 is a sequence number, odd while the PE writes. Word 1 is the number of bytes of the encoded
//! status, 0 if there is none. The bytes follow.
//!
//! A writer makes the sequence number odd, stores what [`encode`] returns from word 1 on, and makes
//! the number even again, one higher than before. A reader uses [`read`], which copies the place
//! until no write has come between.

use crate::status::{MAX_LISTED, Members, PLACE_BYTES, Status, Subject};
use std::sync::atomic::{Ordering, fence};

/// Size of a word.
const WORD: usize = size_of::<u64>();

/// Bytes that an encoded status may have.
const ROOM: usize = PLACE_BYTES - 2 * WORD;

/// How often a reader copies the place before it gives up.
const COPIES: usize = 100;

/// Whether the status fits its place as it is.
pub fn fits(status: &Status) -> bool {
    status.encode().len() <= ROOM
}

/// The words of the place from word 1 on. A status that is too large loses the ends of its lists.
pub fn encode(status: &Status) -> Vec<u64> {
    let mut bytes = status.encode();
    let mut shorter = status.clone();
    let mut limit = MAX_LISTED;
    while bytes.len() > ROOM && limit > 0 {
        limit /= 2;
        shorten(&mut shorter, limit);
        bytes = shorter.encode();
    }
    bytes.truncate(ROOM);
    let word = |bytes: &[u8]| {
        let mut word = [0; WORD];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    };
    std::iter::once(bytes.len() as u64).chain(bytes.chunks(WORD).map(word)).collect()
}

/// The status in a copy of the place; `None` if there is none, or a write was under way.
pub fn parse(page: &[u8]) -> Option<Status> {
    let nbytes = usize::try_from(word(page, 1)?).ok().filter(|&nbytes| nbytes > 0)?;
    let is_whole = word(page, 0)?.is_multiple_of(2);
    let bytes = page.get(2 * WORD..)?.get(..nbytes)?;
    is_whole.then(|| Status::decode(bytes).ok())?
}

/// The status in a place that its PE may be writing, of which `copy` makes a copy.
pub fn read(mut copy: impl FnMut() -> Option<Vec<u8>>) -> Option<Status> {
    // No load of a copy may move behind those of the next one: the later sequence number shows
    // whether the earlier copy is whole.
    let mut copy = || {
        let page = copy();
        fence(Ordering::Acquire);
        page
    };
    let mut before = copy()?;
    for _ in 0..COPIES {
        let after = copy()?;
        let sequence = word(&before, 0)?;
        if sequence.is_multiple_of(2) && word(&after, 0)? == sequence {
            return parse(&before);
        }
        before = after;
    }
    None
}

fn word(page: &[u8], index: usize) -> Option<u64> {
    let bytes = page.get(index * WORD..(index + 1) * WORD)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Cuts all lists of the status to `limit` entries.
fn shorten(status: &mut Status, limit: usize) {
    status.held_locks.truncate(limit);
    status.waits.truncate(limit);
    for wait in &mut status.waits {
        match &mut wait.subject {
            Subject::Words(words) => {
                words.more += words.words.len().saturating_sub(limit) as u64;
                words.words.truncate(limit);
            }
            Subject::Collective(collective) => {
                if let Members::Listed { pes, more } = &mut collective.members {
                    *more += pes.len().saturating_sub(limit) as u32;
                    pes.truncate(limit);
                }
            }
            Subject::Operations { peers } => peers.truncate(limit),
            Subject::Lock { .. } | Subject::Message { .. } | Subject::Exit => {}
        }
    }
}

#[cfg(test)]
mod tests;
