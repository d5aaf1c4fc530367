//! Where the old values of an ep's atomic operations arrive, from whichever thread takes the
//! messages.

use crate::ep::Wanted;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// An atomic operation whose old value is due.
pub(crate) struct Due {
    pub(crate) slot: u32,
    pub(crate) pe: u32,
    pub(crate) wanted: Wanted,
}

#[derive(Default)]
struct Slot {
    here: AtomicBool,
    value: AtomicU64,
}

/// One slot per operation that may be in flight.
pub(crate) struct Replies {
    slots: Box<[Slot]>,
    /// How many have come.
    came: AtomicU32,
}

impl Replies {
    pub(crate) fn new(n: usize) -> Replies {
        Replies { slots: (0..n).map(|_| Slot::default()).collect(), came: AtomicU32::new(0) }
    }

    /// A reply came; one for no slot is nobody's.
    pub(crate) fn put(&self, slot: u32, value: u64) {
        if let Some(slot) = self.slots.get(slot as usize) {
            slot.value.store(value, Ordering::Relaxed);
            slot.here.store(true, Ordering::Release);
            self.came.fetch_add(1, Ordering::Release);
        }
    }

    /// How many have come, all in all.
    pub(crate) fn came(&self) -> u32 {
        self.came.load(Ordering::Acquire)
    }

    /// The value in a slot, which is empty then.
    pub(crate) fn take(&self, slot: u32) -> Option<u64> {
        let slot = self.slots.get(slot as usize)?;
        if !slot.here.load(Ordering::Acquire) {
            return None;
        }
        slot.here.store(false, Ordering::Relaxed);
        Some(slot.value.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_taken_once() {
        let replies = Replies::new(2);
        assert_eq!(replies.take(1), None);
        replies.put(1, 7);
        replies.put(9, 8);
        assert_eq!((replies.came(), replies.take(0), replies.take(1)), (1, None, Some(7)));
        assert_eq!(replies.take(1), None);
    }
}
