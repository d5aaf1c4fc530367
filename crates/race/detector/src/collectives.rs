//! The clocks with which members enter a collective. They are kept until all members have left it.

use crate::areas::{COLLECTIVE_WORDS, Counter, MAX_COLLECTIVES, SharedAreas};
use crate::clock::{SharedClock, VectorClock};
use crate::shared::lock;
use rushmem_race_interface::CollectiveEvent;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The words of a collective: its key, the number of members that have left, and the block of the
/// arena that has a clock for each member. The lock of collectives orders all of them.
struct MemberClocks {
    key: &'static AtomicU64,
    left: &'static AtomicU64,
    clocks: &'static AtomicU64,
}

/// Maximum number of entries of the table that are searched for a collective.
const PROBES: usize = 64;

impl MemberClocks {
    fn of(words: &'static [AtomicU64]) -> MemberClocks {
        MemberClocks {
            key: &words[0],
            left: &words[1],
            clocks: &words[2],
        }
    }
}

/// Returns the key of a collective, which is not 0. Two collectives of a job hardly have the same.
fn key(collective: &CollectiveEvent) -> u64 {
    let mixed = collective.team ^ collective.nth.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93) | 1
}

/// Returns the words of a collective. If it has none, uses free ones if `make`. Returns `None` if
/// there are none, or no room for the clocks.
fn find(areas: &SharedAreas, collective: &CollectiveEvent, make: bool) -> Option<MemberClocks> {
    let key = key(collective);
    let first = key as usize >> 8 & (MAX_COLLECTIVES - 1);
    let entries = areas.collectives.chunks_exact(COLLECTIVE_WORDS);
    let from_first = entries.clone().skip(first).chain(entries.take(first));

    // The search goes on behind free words: a collective that was entered before may be there,
    // since others are removed at any time.
    let mut free = None;
    let mut found = None;
    for words in from_first.take(PROBES) {
        let other = words[0].load(Relaxed);
        if other == key {
            found = Some(words);
            break;
        }
        if other == 0 && free.is_none() {
            free = Some(words);
        }
    }
    if let Some(words) = found {
        return Some(MemberClocks::of(words));
    }
    if !make {
        return None;
    }

    let entry = MemberClocks::of(free?);
    let n = collective.n as usize;
    let clocks = areas.arena.allocate(n)?;
    for word in areas.arena.block(clocks, n) {
        word.store(0, Relaxed);
    }
    entry.key.store(key, Relaxed);
    entry.left.store(0, Relaxed);
    entry.clocks.store(clocks, Relaxed);
    Some(entry)
}

/// Records that the calling member, whose clock is `clock`, enters the collective.
pub fn enter(areas: &SharedAreas, collective: &CollectiveEvent, clock: &VectorClock) {
    let _held = lock(areas.counter(Counter::Collectives));
    let joined = find(areas, collective, true).is_some_and(|entry| {
        let clocks = areas
            .arena
            .block(entry.clocks.load(Relaxed), collective.n as usize);
        SharedClock(&clocks[collective.me as usize]).join(areas.arena, clock)
    });
    if !joined {
        areas.counter(Counter::Full).store(1, Relaxed);
    }
}

/// Records that the calling member leaves the collective. Adds to its clock the clocks with which
/// `members` have entered.
pub fn leave(
    areas: &SharedAreas,
    collective: &CollectiveEvent,
    members: Range<u32>,
    clock: &mut VectorClock,
) {
    let _held = lock(areas.counter(Counter::Collectives));
    let Some(entry) = find(areas, collective, false) else {
        return;
    };

    let n = collective.n as usize;
    let block = entry.clocks.load(Relaxed);
    let clocks = areas.arena.block(block, n);
    for member in members {
        SharedClock(&clocks[member as usize]).join_into(areas.arena, clock);
    }

    // The last member that leaves.
    if entry.left.fetch_add(1, Relaxed) + 1 == u64::from(collective.n) {
        for word in clocks {
            SharedClock(word).clear(areas.arena);
        }
        areas.arena.free(block, n);
        entry.key.store(0, Relaxed);
    }
}
