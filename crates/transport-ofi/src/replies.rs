//! Where the answers to an ep's requests arrive, from whichever thread takes the messages.

use crate::ep::Wanted;
use rushmem_transport::kit::gather::Answers;
use rushmem_transport::kit::lock::lock;
use rushmem_transport::kit::violation::Violation;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What an answer is.
pub(crate) enum Answer {
    /// An old value.
    Old(Wanted),
    /// The answers to a batch.
    Batch(Answers),
}

/// A request whose answer is due.
pub(crate) struct Due {
    pub(crate) slot: u32,
    pub(crate) pe: u32,
    pub(crate) answer: Answer,
}

impl Due {
    /// Returns true if it is the old value that goes there.
    pub(crate) fn is_to(&self, place: *mut u8) -> bool {
        matches!(self.answer, Answer::Old(Wanted { at, .. }) if at == place)
    }
}

#[derive(Default)]
struct Slot {
    here: AtomicBool,
    old: AtomicU64,
    bytes: Mutex<Vec<u8>>,
}

/// One slot per request that may be in flight.
pub(crate) struct Replies {
    slots: Box<[Slot]>,
    /// How many have come.
    came: AtomicU32,
}

impl Replies {
    pub(crate) fn new(n: usize) -> Replies {
        Replies { slots: (0..n).map(|_| Slot::default()).collect(), came: AtomicU32::new(0) }
    }

    /// A reply came.
    ///
    /// # Errors
    /// When there is no such slot.
    pub(crate) fn put(&self, slot: u32, old: u64, bytes: &[u8]) -> Result<(), Violation> {
        let slot = self.slots.get(slot as usize).ok_or(Violation::Unrequested)?;
        if !bytes.is_empty() {
            *lock(&slot.bytes) = bytes.to_vec();
        }
        slot.old.store(old, Ordering::Relaxed);
        slot.here.store(true, Ordering::Release);
        self.came.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Returns how many have come, all in all.
    pub(crate) fn came(&self) -> u32 {
        self.came.load(Ordering::Acquire)
    }

    /// The old value and the bytes in a slot, which is empty then.
    pub(crate) fn take(&self, slot: u32) -> Option<(u64, Vec<u8>)> {
        let slot = self.slots.get(slot as usize)?;
        if !slot.here.load(Ordering::Acquire) {
            return None;
        }
        slot.here.store(false, Ordering::Relaxed);
        Some((slot.old.load(Ordering::Relaxed), std::mem::take(&mut *lock(&slot.bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_taken_once() {
        let replies = Replies::new(2);
        assert_eq!(replies.take(1), None);
        assert_eq!(replies.put(1, 7, b"abc"), Ok(()));
        assert_eq!(replies.put(9, 8, b""), Err(Violation::Unrequested));
        assert_eq!((replies.came(), replies.take(0)), (1, None));
        assert_eq!(replies.take(1), Some((7, b"abc".to_vec())));
        assert_eq!(replies.take(1), None);
    }
}
