//! The clocks of the objects by which PEs synchronize: words of symmetric memory that atomic
//! operations, signals and short puts change, locks, and fences that precede a store through a
//! pointer.

use crate::areas::{Counter, SYNC_ENTRIES, SYNC_STRIPE, ShadowPlace, ShadowSegment, SharedAreas};
use crate::clock::{Actor, Epoch, SharedClock, VectorClock};
use crate::shared::lock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies a word, a lock or a fence.
pub type Key = u64;

/// The number of bytes that have one key.
const WORD: usize = 4;
/// The number of last fences of a thread that are remembered.
const FENCES: u32 = 16;

/// Returns the key of the word of four bytes that contains a place.
pub fn of_word(place: ShadowPlace) -> Key {
    let segment = u64::from(place.segment == ShadowSegment::Static);
    1 << 63
        | segment << 62
        | u64::from(place.pe) << 42
        | (place.offset as u64 >> 2 & ((1 << 42) - 1))
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
    of_word(ShadowPlace {
        pe: (1 << 20) - 1,
        ..place
    })
}

/// Returns the key of the `nth` fence of a thread. A key is used again after [`FENCES`] fences.
fn of_fence(thread: Actor, nth: u32) -> Key {
    u64::from(thread) << 32 | u64::from(nth % FENCES)
}

/// Calls `f` with the clock of a key, under the lock of its stripe. If the key has no clock, adds
/// an empty one if `make`, and otherwise returns `None`. Also returns `None` if the stripe is full.
/// The lock orders the keys and clocks of the stripe, which are accessed in relaxed order.
fn with<R>(
    areas: &SharedAreas,
    key: Key,
    make: bool,
    f: impl FnOnce(SharedClock<'_>) -> R,
) -> Option<R> {
    // The upper bits of the product depend on all of the key.
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let stripe = hash as usize % (SYNC_ENTRIES / SYNC_STRIPE);
    let _held = lock(&areas.sync_locks[stripe]);

    // Entries are never removed, so the search ends at the first free one.
    let entries = areas.sync[stripe * SYNC_STRIPE * 2..][..SYNC_STRIPE * 2].chunks_exact(2);
    let first = (hash >> 16) as usize % SYNC_STRIPE;
    for entry in entries.clone().skip(first).chain(entries.take(first)) {
        let [found, clock]: &[AtomicU64; 2] = entry.try_into().ok()?;
        match found.load(Relaxed) {
            0 if make => found.store(key, Relaxed),
            0 => return None,
            other if other != key => continue,
            _ => {}
        }
        return Some(f(SharedClock(clock)));
    }

    areas.counter(Counter::Full).store(1, Relaxed);
    None
}

/// Releases `clock` to all actors that acquire the key from now on.
pub fn release(areas: &SharedAreas, key: Key, clock: &VectorClock) {
    let joined = with(areas, key, true, |shared| shared.join(areas.arena, clock));
    if joined == Some(false) {
        areas.counter(Counter::Full).store(1, Relaxed);
    }
}

/// Merges the clocks of the actors that have released the key into `clock`.
pub fn acquire(areas: &SharedAreas, key: Key, clock: &mut VectorClock) {
    with(areas, key, false, |shared| {
        shared.join_into(areas.arena, clock)
    });
}

/// Records the clock of a thread at its `nth` fence or quiet, for PEs that see a word which the
/// thread stores later.
pub fn add_fence(areas: &SharedAreas, thread: Actor, nth: u32, clock: &VectorClock) {
    let added = with(areas, of_fence(thread, nth), true, |shared| {
        shared.clear(areas.arena);
        shared.join(areas.arena, clock)
    });
    if added == Some(false) {
        areas.counter(Counter::Full).store(1, Relaxed);
    }
}

/// Merges the clock that a thread had at its last fence until `epoch` into `clock`. If that fence
/// is no longer remembered, uses the oldest one that is.
pub fn acquire_fence(areas: &SharedAreas, thread: Actor, epoch: Epoch, clock: &mut VectorClock) {
    let mut fences = Vec::new();
    for nth in 0..FENCES {
        let mut known = VectorClock::default();
        let found = with(areas, of_fence(thread, nth), false, |shared| {
            shared.join_into(areas.arena, &mut known);
        });
        // The keys are used in their order, so the thread has no more fences.
        if found.is_none() {
            break;
        }
        fences.push(known);
    }

    let last = fences
        .iter()
        .filter(|fence| fence.of(thread) <= epoch)
        .max_by_key(|fence| fence.of(thread));
    // With fewer fences than keys none was forgotten.
    let are_some_forgotten = fences.len() == FENCES as usize;
    let fence = match last {
        None if are_some_forgotten => fences.iter().min_by_key(|fence| fence.of(thread)),
        last => last,
    };
    if let Some(fence) = fence {
        clock.join(fence);
    }
}
