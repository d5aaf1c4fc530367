//! Vector clocks (C. J. Fidge, 1988; F. Mattern, 1989). The clock of an actor has, for each other
//! actor, the last access of that actor that is known to be complete.
//!
//! Later accesses of that actor count as concurrent. Clocks grow with the number of actors of a
//! job.

use crate::shared::Arena;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of an actor: a thread, or operations in flight. 0 is none.
pub type Actor = u16;
/// The number of an access among those of its actor. Accesses of a thread have the same number
/// until it advances its epoch, since no clock needs to distinguish them.
pub type Epoch = u32;

/// An epoch of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The number of the actor.
    pub actor: Actor,
    /// The number of the epoch.
    pub epoch: Epoch,
}

impl Stamp {
    /// Returns the actor and the epoch at the bits where the first word of a record has them.
    #[inline]
    pub fn bits(self) -> u64 {
        u64::from(self.actor) << 48 | u64::from(self.epoch) << 16
    }
}

/// A clock of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock(Vec<Epoch>);

impl VectorClock {
    /// Returns the last epoch of an actor whose accesses are known to be complete; 0 for none.
    #[inline]
    pub fn of(&self, actor: Actor) -> Epoch {
        self.0.get(usize::from(actor)).copied().unwrap_or(0)
    }

    /// Returns true if the accesses of an actor up to this epoch are known to be complete.
    #[inline]
    pub fn includes(&self, stamp: Stamp) -> bool {
        self.of(stamp.actor) >= stamp.epoch
    }

    /// Returns true if no access is known to be complete.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records that the accesses of an actor up to `epoch` are complete.
    pub fn raise(&mut self, actor: Actor, epoch: Epoch) {
        let index = usize::from(actor);
        if index >= self.0.len() {
            self.0.resize(index + 1, 0);
        }
        self.0[index] = self.0[index].max(epoch);
    }

    /// Forgets that the accesses of an actor from this one on are complete.
    pub fn forget_from(&mut self, stamp: Stamp) {
        if let Some(epoch) = self.0.get_mut(usize::from(stamp.actor)) {
            *epoch = (*epoch).min(stamp.epoch - 1);
        }
    }

    /// Raises each entry to that of `other`, if it is lower.
    pub fn join(&mut self, other: &VectorClock) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }
}

/// A clock in shared memory. Its word has the number of its block in the arena, and the number of
/// its entries. The caller holds a lock that protects the word and the block, and orders their
/// relaxed accesses.
pub struct SharedClock<'a>(pub &'a AtomicU64);

/// The block of a shared clock in the arena.
struct ClockBlock {
    number: u64,
    n_entries: usize,
}

/// Lower bits of the word, for the number of entries. A clock has at most 1 << 16 of them, one for
/// each number of an actor.
const LENGTH_BITS: u32 = 17;

impl SharedClock<'_> {
    /// Returns the block; one without entries if the clock is empty.
    fn block(&self) -> ClockBlock {
        let word = self.0.load(Relaxed);
        ClockBlock {
            number: word >> LENGTH_BITS,
            n_entries: (word & ((1 << LENGTH_BITS) - 1)) as usize,
        }
    }

    /// Raises each entry to that of `clock`, if it is lower. Returns false if the arena has no
    /// room.
    pub fn join(&self, arena: Arena, clock: &VectorClock) -> bool {
        let block = self.block();
        let entries = arena.block(block.number, block.n_entries);
        for (own, other) in entries.iter().zip(&clock.0) {
            own.fetch_max(u64::from(*other), Relaxed);
        }

        let n_entries = clock.0.len();
        if n_entries <= block.n_entries {
            return true;
        }

        // A block does not grow, so a larger one takes its place. It gets the entries of `clock`,
        // and then those of the old block, which are at least as high.
        let Some(number) = arena.allocate(n_entries) else {
            return false;
        };
        let grown = arena.block(number, n_entries);
        for (word, epoch) in grown.iter().zip(&clock.0) {
            word.store(u64::from(*epoch), Relaxed);
        }
        for (word, own) in grown.iter().zip(entries) {
            word.store(own.load(Relaxed), Relaxed);
        }

        if block.n_entries > 0 {
            arena.free(block.number, block.n_entries);
        }
        self.0
            .store(number << LENGTH_BITS | n_entries as u64, Relaxed);
        true
    }

    /// Raises each entry of `clock` to that of this clock, if it is lower.
    pub fn join_into(&self, arena: Arena, clock: &mut VectorClock) {
        let block = self.block();
        let entries = arena.block(block.number, block.n_entries);
        for (actor, word) in entries.iter().enumerate() {
            let epoch = word.load(Relaxed) as Epoch;
            if epoch > 0 {
                clock.raise(actor as Actor, epoch);
            }
        }
    }

    /// Empties the clock, and frees its block.
    pub fn clear(&self, arena: Arena) {
        let block = self.block();
        if block.n_entries > 0 {
            arena.free(block.number, block.n_entries);
        }
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_join() {
        let mut a = VectorClock::default();
        let mut b = VectorClock::default();
        a.raise(3, 7);
        b.raise(3, 5);
        b.raise(9, 1);
        a.join(&b);
        assert_eq!((a.of(3), a.of(9), a.of(4), a.of(100)), (7, 1, 0, 0));
    }

    #[test]
    fn a_shared_clock_grows_and_is_forgotten() {
        let words: Vec<AtomicU64> = (0..4096).map(|_| AtomicU64::new(0)).collect();
        let arena = Arena::new(words.leak());
        let word = AtomicU64::new(0);
        let shared = SharedClock(&word);
        for (actor, epoch) in [(1, 4), (2, 9), (40, 3), (1, 2)] {
            let mut clock = VectorClock::default();
            clock.raise(actor, epoch);
            assert!(shared.join(arena, &clock));
        }

        let mut known = VectorClock::default();
        shared.join_into(arena, &mut known);
        assert_eq!([1, 2, 3, 40].map(|actor| known.of(actor)), [4, 9, 0, 3]);

        shared.clear(arena);
        let mut known = VectorClock::default();
        shared.join_into(arena, &mut known);
        assert_eq!(known, VectorClock::default());

        let mut large = VectorClock::default();
        large.raise(9000, 1);
        assert!(!shared.join(arena, &large), "more than the arena has");
    }
}
