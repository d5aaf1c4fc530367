//! The slot of a status in shared memory: how a PE writes it and how others read it meanwhile.
//!
//! The slot has [`STATUS_BYTES`] bytes and consists of words of 8 bytes in native byte order. Word
//! 0 is a sequence number, odd while the PE writes. Word 1 is the number of bytes of the encoded
//! status, 0 if there is none. The bytes follow.
//!
//! A writer makes the sequence number odd, stores what [`encode`] returns from word 1 on after a
//! release fence, and makes the number even again by a release store. A reader uses [`read`], which
//! loads the number, copies the slot and loads the number again, with acquire fences between,
//! until both are the same even number.
//!
//! Such a copy is whole. Its loads follow a load that saw the end of the write of that number, so
//! none of them returns what was there before. If one returned what a later write stored, the fence
//! after it and the writer's fence before that store would order the odd number of that write
//! before the second load, which would have seen another number: numbers only grow. A reader that
//! copies by a system call has the same order, since the kernel's loads are part of the thread. The
//! bytes of a number may come from two stores, but two loads of which one ends before the other
//! begins cannot both be torn by the same store.

use crate::status::{AwaitedObject, MAX_LISTED, MAX_THREADS, Members, STATUS_BYTES, Status};
use std::sync::atomic::{Ordering, fence};

const WORD: usize = size_of::<u64>();

/// Bytes that an encoded status may have.
const ROOM: usize = STATUS_BYTES - 2 * WORD;

/// The number of times that a reader copies the slot before it gives up. A PE writes its status
/// when its stage changes or a wait is long, so few copies overlap a write.
const COPIES: usize = 100;

/// Returns true if the status fits its slot as it is.
pub fn fits(status: &Status) -> bool {
    status.encode().len() <= ROOM
}

/// Returns the words of the slot from word 1 on. If the status is too large, the ends of its lists
/// are left out.
pub fn encode(status: &Status) -> Vec<u64> {
    let mut bytes = status.encode();

    let mut shorter = status.clone();
    let mut limit = MAX_LISTED;
    while bytes.len() > ROOM && limit > 0 {
        limit /= 2;
        shorten(&mut shorter, limit);
        bytes = shorter.encode();
    }

    // Not needed by a status that the library writes: without its lists it is far smaller.
    bytes.truncate(ROOM);

    let mut words = vec![bytes.len() as u64];
    for part in bytes.chunks(WORD) {
        // The last word is padded with zeros.
        let mut word = [0; WORD];
        word[..part.len()].copy_from_slice(part);
        words.push(u64::from_ne_bytes(word));
    }
    words
}

/// Returns the status in a whole copy of the slot; `None` if there is none.
fn parse(slot: &[u8]) -> Option<Status> {
    let nbytes = usize::try_from(word(slot, 1)?).ok()?;
    if nbytes == 0 {
        return None;
    }
    Status::decode(slot.get(2 * WORD..)?.get(..nbytes)?)
}

/// Reads the status in a slot that its PE may be writing. `copy` copies as many bytes from the
/// start of the slot as its argument says. Returns `None` if there is no status, if the slot cannot
/// be copied, or if the PE writes it during all attempts.
pub fn read(mut copy: impl FnMut(usize) -> Option<Vec<u8>>) -> Option<Status> {
    // No load of a copy may move behind those of the next one.
    let mut copy = |nbytes| {
        let bytes = copy(nbytes);
        fence(Ordering::Acquire);
        bytes
    };

    let mut before = word(&copy(WORD)?, 0)?;

    for _ in 0..COPIES {
        let slot = copy(STATUS_BYTES)?;
        let after = word(&copy(WORD)?, 0)?;
        if before.is_multiple_of(2) && after == before {
            return parse(&slot);
        }
        before = after;
    }
    None
}

fn word(slot: &[u8], index: usize) -> Option<u64> {
    let bytes = slot.get(index * WORD..(index + 1) * WORD)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Cuts the lists of the status to `limit` entries. Waits that are cut become further waits.
fn shorten(status: &mut Status, limit: usize) {
    status.held_locks.truncate(limit);

    let described = limit.min(status.waits.len());
    let further = status.waits.drain(described..).map(|wait| wait.thread);
    // In front: those at the end are lost first.
    status.further_waits.splice(..0, further);
    status.further_waits.truncate(MAX_THREADS);

    if let Some(in_flight) = &mut status.in_flight {
        in_flight.more |= in_flight.targets.len() > limit;
        in_flight.targets.truncate(limit);
    }
    if let Some(finalizing) = &mut status.finalizing {
        finalizing.entered.truncate(limit);
    }

    for wait in &mut status.waits {
        match &mut wait.subject {
            AwaitedObject::Words(words) => {
                words.more += words.words.len().saturating_sub(limit) as u64;
                words.words.truncate(limit);
            }
            AwaitedObject::Collective(collective) => {
                if let Members::Listed { pes, more } = &mut collective.members {
                    *more += pes.len().saturating_sub(limit) as u32;
                    pes.truncate(limit);
                }
            }
            AwaitedObject::Operations { peers } => peers.truncate(limit),
            AwaitedObject::Lock { .. }
            | AwaitedObject::Message { .. }
            | AwaitedObject::Exit
            | AwaitedObject::Leaving => {}
        }
    }
}

#[cfg(test)]
mod tests;
