//! The clocks of the objects by which PEs synchronize: words of symmetric memory that atomic
//! operations, signals and short puts change, locks, and fences that precede a store through a
//! pointer.

use crate::areas::{Counter, SYNC_ENTRIES, SYNC_STRIPE, ShadowPlace, ShadowSegment, SharedAreas};
use crate::clock::{Actor, SharedClock, Stamp, VectorClock};
use crate::shared::{Held, lock};
use std::sync::atomic::Ordering::Relaxed;

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

/// Locks the clock of a key. If the key has no clock, adds an empty one if `make`, and otherwise
/// returns `None`. Also returns `None` if the stripe is full.
fn find(areas: &SharedAreas, key: Key, make: bool) -> Option<LockedClock> {
    // The upper bits of the product depend on all of the key.
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let stripe = hash as usize % (SYNC_ENTRIES / SYNC_STRIPE);
    let held = lock(&areas.sync_locks[stripe]);

    let words = &areas.sync[stripe * SYNC_STRIPE * 2..][..SYNC_STRIPE * 2];
    let (before, from_first) = words
        .as_chunks::<2>()
        .0
        .split_at((hash >> 16) as usize % SYNC_STRIPE);
    for [known, clock] in from_first.iter().chain(before) {
        let mut other = known.load(Relaxed);
        // Entries are never removed, so the search ends at the first free one.
        if other == 0 {
            if !make {
                return None;
            }
            known.store(key, Relaxed);
            other = key;
        }
        if other == key {
            return Some(LockedClock {
                clock: SharedClock(clock),
                _held: held,
            });
        }
    }

    areas.counter(Counter::Full).store(1, Relaxed);
    None
}

/// Releases `clock` to all actors that acquire the key from now on.
pub fn release(areas: &SharedAreas, key: Key, clock: &VectorClock) {
    let Some(known) = find(areas, key, true) else {
        return;
    };
    if !known.clock.join(areas.arena, clock) {
        areas.counter(Counter::Full).store(1, Relaxed);
    }
}

/// Merges the clocks of the actors that have released the key into `clock`.
pub fn acquire(areas: &SharedAreas, key: Key, clock: &mut VectorClock) {
    if let Some(known) = find(areas, key, false) {
        known.clock.join_into(areas.arena, clock);
    }
}

/// Records the clock of a thread at its `nth` fence or quiet, for PEs that see a word which the
/// thread stores later.
pub fn add_fence(areas: &SharedAreas, thread: Actor, nth: u32, clock: &VectorClock) {
    let Some(known) = find(areas, of_fence(thread, nth), true) else {
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
        let Some(known) = find(areas, of_fence(thread, nth), false) else {
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
