//! The clocks of the objects by which PEs synchronize: words of symmetric memory that atomic
//! operations, signals and short puts change, locks, and fences that precede a store through a
//! pointer.

use crate::areas::{Counter, SYNC_ENTRIES, SYNC_STRIPE, ShadowPlace, ShadowSegment, SharedAreas};
use crate::clock::{Actor, SharedClock, Stamp, VectorClock};
use crate::shared::{Held, lock};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies a word, a lock or a fence. 0 is none.
pub type Key = u64;

/// The number of bytes that have one key.
const WORD: usize = 4;
/// The number of last fences of a thread that are remembered. A PE that sees a store from before
/// all of them counts as ordered after the oldest one, which may hide a race.
const FENCES: u32 = 16;

/// Returns the key of the word of four bytes that contains a place.
pub fn of_word(place: ShadowPlace) -> Key {
    // Bit 63 tells a word or lock from a fence. Below it are the segment, 20 bits of the PE, and 42
    // bits of the number of the word.
    let segment = u64::from(place.segment == ShadowSegment::Static);
    let word = (place.offset / WORD) as u64 & ((1 << 42) - 1);
    1 << 63 | segment << 62 | u64::from(place.pe) << 42 | word
}

/// Returns the keys of the words that `nbytes` bytes touch.
pub fn of_bytes(place: ShadowPlace, nbytes: usize) -> impl Iterator<Item = Key> {
    let words = place.offset / WORD..(place.offset + nbytes).div_ceil(WORD);
    words.map(move |word| {
        of_word(ShadowPlace {
            offset: word * WORD,
            ..place
        })
    })
}

/// Returns the key of a lock, which is the same for all PEs.
pub fn of_lock(place: ShadowPlace) -> Key {
    // No PE has this number: each PE that is checked has an actor, and there are fewer actors.
    of_word(ShadowPlace {
        pe: (1 << 20) - 1,
        ..place
    })
}

/// Returns the key of the `nth` fence of a thread. A key is used again after [`FENCES`] fences.
fn of_fence(thread: Actor, nth: u32) -> Key {
    u64::from(thread) << 32 | u64::from(nth % FENCES)
}

/// The clock of a key, under the lock of its stripe of the table. The lock orders the keys and
/// clocks of the stripe, which are accessed in relaxed order.
struct LockedClock {
    clock: SharedClock<'static>,
    _held: Held<'static>,
}

/// Locks the clock of a key. Returns `None` if the key has no clock.
fn find(areas: &SharedAreas, key: Key) -> Option<LockedClock> {
    let (owner, clock) = lock_entry(areas, key)?;
    (owner.load(Relaxed) == key).then_some(clock)
}

/// Locks the clock of a key, a new and empty one if the key has none. Returns `None` if there is no
/// room for it, which the report mentions.
fn find_or_add(areas: &SharedAreas, key: Key) -> Option<LockedClock> {
    let Some((owner, clock)) = lock_entry(areas, key) else {
        areas.counter(Counter::Full).store(1, Relaxed);
        return None;
    };
    owner.store(key, Relaxed);
    Some(clock)
}

/// Locks the stripe of a key. Returns the key's entry or, if it has none, the free one that it
/// would take: the word of its key, and its clock. Returns `None` if other keys fill the stripe.
fn lock_entry(areas: &SharedAreas, key: Key) -> Option<(&'static AtomicU64, LockedClock)> {
    // The upper bits of the product depend on all of the key.
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let stripe = hash as usize % (SYNC_ENTRIES / SYNC_STRIPE);
    let held = lock(&areas.sync_locks[stripe]);

    let words = &areas.sync[stripe * SYNC_STRIPE * 2..][..SYNC_STRIPE * 2];
    let (before, from_first) = words
        .as_chunks::<2>()
        .0
        .split_at((hash >> 16) as usize % SYNC_STRIPE);
    for [owner, clock] in from_first.iter().chain(before) {
        let found = owner.load(Relaxed);
        // Entries are never removed, so the search ends at the first free one.
        if found == key || found == 0 {
            let clock = LockedClock {
                clock: SharedClock(clock),
                _held: held,
            };
            return Some((owner, clock));
        }
    }
    None
}

/// Releases `clock` to all actors that acquire the key from now on.
pub fn release(areas: &SharedAreas, key: Key, clock: &VectorClock) {
    let Some(known) = find_or_add(areas, key) else {
        return;
    };
    if !known.clock.join(areas.arena, clock) {
        areas.counter(Counter::Full).store(1, Relaxed);
    }
}

/// Merges the clocks of the actors that have released the key into `clock`.
pub fn acquire(areas: &SharedAreas, key: Key, clock: &mut VectorClock) {
    if let Some(known) = find(areas, key) {
        known.clock.join_into(areas.arena, clock);
    }
}

/// Records the clock of a thread at its `nth` fence or quiet, for PEs that see a word which the
/// thread stores later.
pub fn add_fence(areas: &SharedAreas, thread: Actor, nth: u32, clock: &VectorClock) {
    let Some(known) = find_or_add(areas, of_fence(thread, nth)) else {
        return;
    };
    // The clock of the fence that had this key before.
    known.clock.clear(areas.arena);
    if !known.clock.join(areas.arena, clock) {
        areas.counter(Counter::Full).store(1, Relaxed);
    }
}

/// Merges the clock that a thread had at its last fence before a store of it into `clock`. If that
/// fence is no longer remembered, uses the oldest one that is.
pub fn acquire_fence(areas: &SharedAreas, store: Stamp, clock: &mut VectorClock) {
    let thread = store.actor;
    let mut fences = Vec::new();
    for nth in 0..FENCES {
        // The keys are used in their order, so the thread has no more fences.
        let Some(known) = find(areas, of_fence(thread, nth)) else {
            break;
        };
        let mut fence = VectorClock::default();
        known.clock.join_into(areas.arena, &mut fence);
        fences.push(fence);
    }

    let last = fences
        .iter()
        .filter(|fence| fence.of(thread) <= store.epoch)
        .max_by_key(|fence| fence.of(thread));
    if let Some(last) = last {
        clock.join(last);
        return;
    }

    // With fewer fences than keys none was forgotten, so none precedes the store.
    let may_be_forgotten = fences.len() == FENCES as usize;
    let oldest = fences.iter().min_by_key(|fence| fence.of(thread));
    if may_be_forgotten && let Some(oldest) = oldest {
        clock.join(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::areas::SegmentSizes;
    use crate::shared::{attach, create};
    use std::os::fd::AsRawFd;

    fn empty_areas() -> SharedAreas {
        let segments = SegmentSizes {
            heap_bytes: 0,
            static_bytes: 0,
        };
        let n = SharedAreas::n_words(0, segments);
        let file = create(n).expect("memory");
        let words = attach(n, std::process::id(), file.as_raw_fd()).expect("a mapping");
        SharedAreas::new(words, segments)
    }

    #[test]
    fn only_a_clock_without_room_counts_as_lost() {
        const KEY: Key = 7;
        const OTHER: Key = 8;
        let areas = empty_areas();
        let is_full = || areas.counter(Counter::Full).load(Relaxed) != 0;

        assert!(find(&areas, KEY).is_none());
        assert!(find_or_add(&areas, KEY).is_some());
        assert!(find(&areas, KEY).is_some());

        // Other keys fill the stripe.
        let entries = areas.sync.as_chunks::<2>().0;
        let added = entries
            .iter()
            .position(|[owner, _]| owner.load(Relaxed) == KEY);
        let first = added.expect("it was added") / SYNC_STRIPE * SYNC_STRIPE;
        for [owner, _] in &entries[first..][..SYNC_STRIPE] {
            owner.store(OTHER, Relaxed);
        }

        assert!(find(&areas, KEY).is_none());
        assert!(!is_full(), "nothing was lost");
        assert!(find_or_add(&areas, KEY).is_none());
        assert!(is_full());
    }
}
