//! The clocks with which members enter a collective. They are kept until all members have left it.

use crate::areas::{COLLECTIVE_WORDS, Counter, MAX_COLLECTIVES, SharedAreas};
use crate::clock::{SharedClock, VectorClock};
use crate::shared::lock;
use rushmem_race_interface::CollectiveEvent;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The words of a collective. The lock of collectives orders all of them.
struct MemberClocks {
    /// The key of the collective; 0 if the words are free.
    key: &'static AtomicU64,
    /// The number of members that have left.
    left: &'static AtomicU64,
    /// The number of the block of the arena that has a clock for each member.
    clocks: &'static AtomicU64,
}

/// Maximum number of entries of the table that are searched for a collective. Each search holds the
/// lock of all collectives. If this many collectives whose keys select the same part of the table
/// are unfinished, nothing is checked any more.
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

/// Returns the key of a collective, which is not 0: a hash of 63 bits that two unfinished
/// collectives are unlikely to share.
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
    for words in from_first.take(PROBES) {
        let entry = MemberClocks::of(words);
        match entry.key.load(Relaxed) {
            0 => free = free.or(Some(entry)),
            other if other == key => return Some(entry),
            _ => {}
        }
    }
    if !make {
        return None;
    }

    let entry = free?;
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

    // The last member that leaves frees the entry and the clocks.
    if entry.left.fetch_add(1, Relaxed) + 1 == u64::from(collective.n) {
        for word in clocks {
            SharedClock(word).clear(areas.arena);
        }
        areas.arena.free(block, n);
        entry.key.store(0, Relaxed);
    }
}
