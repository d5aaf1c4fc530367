//! Clocks of the members of a collective, while they are in it.

use crate::areas::{Counter, MAX_MEETINGS, MEETING_WORDS, SharedAreas};
use crate::clock::{SharedClock, VectorClock};
use crate::shared::lock;
use rushmem_race_interface::CollectiveEvent;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The words of a meeting: the key, the members that have left, and where their clocks are.
struct Meeting {
    key: &'static AtomicU64,
    left: &'static AtomicU64,
    clocks: &'static AtomicU64,
}

fn key(collective: &CollectiveEvent) -> u64 {
    let mixed = collective.team ^ collective.nth.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93) | 1
}

/// The meeting of a collective; a free one becomes it.
fn find(areas: &SharedAreas, collective: &CollectiveEvent, make: bool) -> Option<Meeting> {
    let key = key(collective);
    let mut free = None;
    let all = areas.meetings.chunks_exact(MEETING_WORDS);
    let first = key as usize >> 8 & (MAX_MEETINGS - 1);
    let found = all.clone().skip(first).chain(all.take(first)).take(64).find(|words| {
        let other = words[0].load(Relaxed);
        if other == 0 && free.is_none() {
            free = Some(*words);
        }
        other == key
    });
    let words = found.or(free.filter(|_| make))?;
    let meeting = Meeting { key: &words[0], left: &words[1], clocks: &words[2] };
    if found.is_none() {
        let n = collective.n as usize;
        let clocks = areas.arena.take(n)?;
        areas.arena.block(clocks, n).iter().for_each(|word| word.store(0, Relaxed));
        meeting.key.store(key, Relaxed);
        meeting.left.store(0, Relaxed);
        meeting.clocks.store(clocks, Relaxed);
    }
    Some(meeting)
}

/// A member that knows what `clock` knows is in the collective.
pub fn enter(areas: &SharedAreas, collective: &CollectiveEvent, clock: &VectorClock) {
    let _held = lock(areas.counter(Counter::Meetings));
    let joined = find(areas, collective, true).is_some_and(|meeting| {
        let clocks = areas.arena.block(meeting.clocks.load(Relaxed), collective.n as usize);
        SharedClock(&clocks[collective.me as usize]).join(areas.arena, clock)
    });
    if !joined {
        areas.counter(Counter::Full).store(1, Relaxed);
    }
}

/// It leaves the collective, and knows what these members knew.
pub fn leave(
    areas: &SharedAreas,
    collective: &CollectiveEvent,
    members: Range<u32>,
    clock: &mut VectorClock,
) {
    let _held = lock(areas.counter(Counter::Meetings));
    let Some(meeting) = find(areas, collective, false) else { return };
    let (at, n) = (meeting.clocks.load(Relaxed), collective.n as usize);
    let clocks = areas.arena.block(at, n);
    for member in members {
        SharedClock(&clocks[member as usize]).join_into(areas.arena, clock);
    }
    if meeting.left.fetch_add(1, Relaxed) + 1 == u64::from(collective.n) {
        clocks.iter().for_each(|word| SharedClock(word).clear(areas.arena));
        areas.arena.give(at, n);
        meeting.key.store(0, Relaxed);
    }
}
