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

/// A clock of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock(Vec<Epoch>);

impl VectorClock {
    /// Returns the last epoch of an actor whose accesses are known to be complete; 0 for none.
    #[inline]
    pub fn of(&self, actor: Actor) -> Epoch {
        self.0.get(usize::from(actor)).copied().unwrap_or(0)
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

/// Lower bits of the word, for the number of entries.
const LENGTH_BITS: u32 = 17;

impl SharedClock<'_> {
    /// Returns the number of the block, and that of its entries.
    fn block(&self) -> (u64, usize) {
        let word = self.0.load(Relaxed);
        let len = word & ((1 << LENGTH_BITS) - 1);
        (word >> LENGTH_BITS, len as usize)
    }

    /// Raises each entry to that of `clock`, if it is lower. Returns false if the arena has no
    /// room.
    pub fn join(&self, arena: Arena, clock: &VectorClock) -> bool {
        let (at, len) = self.block();
        let own = arena.block(at, len);
        for (own, other) in own.iter().zip(&clock.0) {
            own.fetch_max(u64::from(*other), Relaxed);
        }
        if clock.0.len() <= len {
            return true;
        }

        // A block does not grow, so a larger one takes its place.
        let new_len = clock.0.len();
        let Some(grown) = arena.allocate(new_len) else {
            return false;
        };
        for (i, (word, other)) in arena.block(grown, new_len).iter().zip(&clock.0).enumerate() {
            let own = own.get(i).map_or(0, |word| word.load(Relaxed));
            word.store(own.max(u64::from(*other)), Relaxed);
        }
        if len > 0 {
            arena.free(at, len);
        }
        self.0.store(grown << LENGTH_BITS | new_len as u64, Relaxed);
        true
    }

    /// Raises each entry of `clock` to that of this clock, if it is lower.
    pub fn join_into(&self, arena: Arena, clock: &mut VectorClock) {
        let (at, len) = self.block();
        for (actor, word) in arena.block(at, len).iter().enumerate() {
            let epoch = word.load(Relaxed) as Epoch;
            if epoch > 0 {
                clock.raise(actor as Actor, epoch);
            }
        }
    }

    /// Empties the clock, and frees its block.
    pub fn clear(&self, arena: Arena) {
        let (at, len) = self.block();
        if len > 0 {
            arena.free(at, len);
        }
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_join() {
        let (mut a, mut b) = (VectorClock::default(), VectorClock::default());
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
