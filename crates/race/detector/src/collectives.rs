//! The clocks with which members enter a collective. They are kept until all members have left it.

use crate::areas::{COLLECTIVE_WORDS, Counter, MAX_COLLECTIVES, SharedAreas};
use crate::clock::{SharedClock, VectorClock};
use crate::shared::lock;
use rushmem_race_interface::CollectiveEvent;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The words of a collective: its key, the number of members that have left, and the block of the
/// arena that has a clock for each member.
struct MemberClocks {
    key: &'static AtomicU64,
    left: &'static AtomicU64,
    clocks: &'static AtomicU64,
}

fn key(collective: &CollectiveEvent) -> u64 {
    let mixed = collective.team ^ collective.nth.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93) | 1
}

/// Returns the words of a collective. If it has none, uses free ones if `make`. Returns `None` if
/// there are none, or no room for the clocks.
fn find(areas: &SharedAreas, collective: &CollectiveEvent, make: bool) -> Option<MemberClocks> {
    let key = key(collective);
    let mut free = None;
    let all = areas.collectives.chunks_exact(COLLECTIVE_WORDS);
    let first = key as usize >> 8 & (MAX_COLLECTIVES - 1);
    let found = all
        .clone()
        .skip(first)
        .chain(all.take(first))
        .take(64)
        .find(|words| {
            let other = words[0].load(Relaxed);
            if other == 0 && free.is_none() {
                free = Some(*words);
            }
            other == key
        });
    let words = found.or(free.filter(|_| make))?;
    let entry = MemberClocks {
        key: &words[0],
        left: &words[1],
        clocks: &words[2],
    };
    if found.is_none() {
        let n = collective.n as usize;
        let clocks = areas.arena.allocate(n)?;
        areas
            .arena
            .block(clocks, n)
            .iter()
            .for_each(|word| word.store(0, Relaxed));
        entry.key.store(key, Relaxed);
        entry.left.store(0, Relaxed);
        entry.clocks.store(clocks, Relaxed);
    }
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
    let (at, n) = (entry.clocks.load(Relaxed), collective.n as usize);
    let clocks = areas.arena.block(at, n);
    for member in members {
        SharedClock(&clocks[member as usize]).join_into(areas.arena, clock);
    }
    if entry.left.fetch_add(1, Relaxed) + 1 == u64::from(collective.n) {
        clocks
            .iter()
            .for_each(|word| SharedClock(word).clear(areas.arena));
        areas.arena.free(at, n);
        entry.key.store(0, Relaxed);
    }
}
