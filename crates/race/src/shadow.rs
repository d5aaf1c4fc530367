//! The shadow of memory: which accesses to each byte are remembered.
//!
//! Eight bytes have room for four accesses, and so has a page of 4 KiB as a whole, for those that
//! cover it: a long put marks pages, and not each of their bytes. A page's lock protects both.

use crate::access::{ShadowKind, ShadowRecord};
use crate::clock::{Actor, Epoch, VectorClock};
use crate::shared::lock;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of memory in a page.
pub const PAGE: usize = 4096;
/// Accesses that are remembered for eight bytes, or for a page.
const RECORDS: usize = 4;
/// Words of a page's head: the lock, who looked, who is in parts, and the accesses to the whole
/// page.
pub const HEAD_WORDS: usize = 16;
/// In the head: who found no conflict with the accesses to the whole page, by a load and by a
/// store.
const LOOKED: Range<usize> = 1..3;
/// In the head: accesses to parts of the page, without their bytes. If the last word is set, these
/// may be not all.
const IN_PARTS_BY: Range<usize> = 3..8;
/// In the head: the accesses to the whole page.
const WHOLE: usize = 8;
/// Words for eight bytes.
const GRANULE: usize = RECORDS * 2;
/// Words of a page for the accesses to its parts.
pub const PART_WORDS: usize = PAGE / 8 * GRANULE;
/// In the first word: some eight bytes of the page have accesses of their own.
const IN_PARTS: u64 = 2;
/// The bit of a page with accesses to the whole page.
const IN_WHOLE: u64 = 4;

/// In the first word of a record: the kind, its bit of the library, and the bytes.
const KIND: u64 = 0xff;
const LIBRARY: u64 = 0x80;
const MASK: u64 = 0xff00;
/// The bits below the actor.
const ACTOR: u32 = 48;

/// The accesses to eight bytes, or to a page.
type Records = [AtomicU64; GRANULE];

/// The knowledge of the actor of an access: a clock, and what it has ordered beyond.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The clock of the thread.
    pub clock: &'a VectorClock,
    /// Operations in flight to the same PE that a fence came after.
    pub fenced: &'a [(Actor, Epoch)],
}

impl View<'_> {
    /// Returns true if an access is done.
    #[inline]
    fn covers(&self, record: &ShadowRecord) -> bool {
        self.clock.of(record.actor) >= record.epoch
            || self
                .fenced
                .iter()
                .any(|&(actor, epoch)| actor == record.actor && epoch >= record.epoch)
    }
}

/// The shadow of pages. The heads lie together, so that pages of which no part has accesses of its
/// own take little memory.
#[derive(Clone, Copy)]
pub struct Shadow<'a> {
    heads: &'a [AtomicU64],
    parts: &'a [AtomicU64],
}

impl<'a> Shadow<'a> {
    /// Makes a shadow of as many pages as there are words for, all zero at first.
    pub fn new(heads: &'a [AtomicU64], parts: &'a [AtomicU64]) -> Shadow<'a> {
        Shadow { heads, parts }
    }

    /// Returns the pages from number `first`.
    pub fn from(self, first: usize) -> Shadow<'a> {
        let (heads, parts) = (&self.heads[first * HEAD_WORDS..], &self.parts[first * PART_WORDS..]);
        Shadow { heads, parts }
    }

    /// Returns page number `index`.
    pub fn page(self, index: usize) -> Page<'a> {
        let head = &self.heads[index * HEAD_WORDS..][..HEAD_WORDS];
        Page { head, parts: &self.parts[index * PART_WORDS..][..PART_WORDS] }
    }

    /// Returns true if an access to some of the eight bytes at `offset` is remembered: `stamp` is
    /// the first word of its record. Takes no lock; a concurrent thread does its own lookup.
    #[inline]
    pub fn knows(self, offset: usize, stamp: u64) -> bool {
        let at = offset / 8 * GRANULE;
        let Some(records) = self.parts.get(at..at + GRANULE) else { return false };
        // All but the mask, of which the record may have more.
        (0..RECORDS).any(|i| (records[i * 2].load(Relaxed) ^ stamp) & !(0xff00 & !stamp) == 0)
    }
}

/// The shadow of one page.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    head: &'a [AtomicU64],
    parts: &'a [AtomicU64],
}

impl<'a> Page<'a> {
    /// Works as [`Shadow::knows`], of this page.
    pub fn knows(self, offset: usize, stamp: u64) -> bool {
        Shadow { heads: self.head, parts: self.parts }.knows(offset, stamp)
    }

    /// Returns the places of the accesses to the whole page.
    fn whole(self) -> &'a Records {
        self.head[WHOLE..].first_chunk().expect("a page has a head")
    }

    /// Returns the records of eight bytes.
    fn granule(self, index: usize) -> &'a Records {
        self.parts[index * GRANULE..].first_chunk().expect("a granule of the page")
    }

    /// Records an access to bytes `at..end` of the page, and returns one that conflicts with it.
    pub fn record_access(
        self,
        at: usize,
        end: usize,
        access: ShadowRecord,
        view: View<'_>,
    ) -> Option<ShadowRecord> {
        let mut held = lock(&self.head[0]);
        let mut conflict = None;
        if (at, end) == (0, PAGE) {
            let access = ShadowRecord { mask: 0xff, ..access };
            if held.has(IN_PARTS) {
                let (found, left) = self.look_at_parts(&access, view);
                conflict = found;
                held.set(IN_PARTS, left);
            }
            held.set(IN_WHOLE, true);
            self.head[LOOKED].iter().for_each(|who| who.store(0, Relaxed));
            return insert(self.whole(), &access, view).or(conflict);
        }
        for index in at / 8..end.div_ceil(8) {
            let (first, last) = (at.saturating_sub(index * 8), (end - index * 8).min(8));
            let mask = (0xffu16 << first) as u8 & (0xffu16 >> (8 - last)) as u8;
            let access = ShadowRecord { mask, ..access };
            if held.has(IN_WHOLE) {
                conflict = conflict.or_else(|| self.look_at_whole(&access, view));
            }
            conflict = insert(self.granule(index), &access, view).or(conflict);
        }
        held.set(IN_PARTS, true);
        self.add_to_parts(access.words()[0]);
        conflict
    }

    /// Records a load or store of the program, within eight bytes, that has these words. Returns
    /// false if an access of another actor to these is not done, or if there is no room:
    /// [`record_access`](Page::record_access) then does it.
    #[inline(always)]
    pub fn record_if_done(
        self,
        at: usize,
        [first, second]: [u64; 2],
        is_done: impl Fn(u64) -> bool,
    ) -> bool {
        let mut held = lock(&self.head[0]);
        let writes = first & u64::from(ShadowKind::STORE.0);
        let looked = &self.head[LOOKED][writes as usize];
        if held.has(IN_WHOLE) && looked.load(Relaxed) != first & !MASK {
            return false;
        }
        let records = self.granule(at / 8);
        let (mut place, mut read) = (None, None);
        for i in 0..RECORDS {
            let old = records[i * 2].load(Relaxed);
            if old >> ACTOR == 0 {
                place = place.or(Some(i));
                continue;
            }
            if old >> ACTOR != first >> ACTOR && !is_done(old) {
                return false;
            }
            // As `ShadowKind::replaces` of loads and stores of own memory.
            let is_less = old & !first & MASK == 0
                && ((old ^ first) & KIND == 0 || writes != 0 && old & LIBRARY == 0);
            if !is_less {
                read = read.or(Some(i).filter(|_| old & u64::from(ShadowKind::STORE.0) == 0));
            } else if place.is_none() {
                place = Some(i);
            } else {
                records[i * 2].store(0, Relaxed);
            }
        }
        let Some(place) = place.or(read) else { return false };
        records[place * 2 + 1].store(second, Relaxed);
        records[place * 2].store(first, Relaxed);
        held.set(IN_PARTS, true);
        self.add_to_parts(first);
        true
    }

    /// Returns the actors of the accesses to the eight bytes at `at`.
    pub fn actors(self, at: usize) -> impl Iterator<Item = Actor> {
        let records = self.granule(at / 8).chunks_exact(2);
        records.filter_map(record).map(|record| record.actor)
    }

    /// Records which actor accesses parts of the page, and its last epoch.
    #[inline]
    fn add_to_parts(self, first: u64) {
        for place in &self.head[IN_PARTS_BY] {
            let by = place.load(Relaxed);
            if by >> ACTOR == 0 || (by ^ first) & (!0 << ACTOR | KIND) == 0 {
                return place.store(first | MASK, Relaxed);
            }
        }
    }

    /// Returns an access to a part of the page that conflicts with one to all of it, and whether
    /// any is left. Where all are done, the parts need not be looked at: those that the new access
    /// replaces stay there, as done for each access after it.
    fn look_at_parts(self, access: &ShadowRecord, view: View<'_>) -> (Option<ShadowRecord>, bool) {
        let by = &self.head[IN_PARTS_BY];
        let (mut conflict, mut is_left) = (None, false);
        let mut are_done = by.last().is_some_and(|last| last.load(Relaxed) == 0);
        for old in by.iter().filter_map(|by| ShadowRecord::of([by.load(Relaxed), 0])) {
            are_done &= view.covers(&old);
            is_left |= !access.replaces(&old);
        }
        if !are_done {
            is_left = false;
            for index in 0..PAGE / 8 {
                let (found, left) = look(self.granule(index), access, view);
                conflict = conflict.or(found);
                is_left |= left;
            }
        }
        if !is_left {
            by.iter().for_each(|by| by.store(0, Relaxed));
        }
        (conflict, is_left)
    }

    /// Returns an access to the whole page that conflicts with one to a part of it. Who found none
    /// once need not look again, as its clock does not shrink.
    #[inline]
    fn look_at_whole(self, access: &ShadowRecord, view: View<'_>) -> Option<ShadowRecord> {
        let looked = &self.head[LOOKED][usize::from(access.kind.writes())];
        let who = ShadowRecord { mask: 0, ..*access }.words()[0];
        if looked.load(Relaxed) == who {
            return None;
        }
        let conflict = look_at(self.whole(), access, view);
        if conflict.is_none() {
            looked.store(who, Relaxed);
        }
        conflict
    }

    /// Forgets the accesses to bytes `at..end` that `is_seen` names.
    pub fn forget(self, at: usize, end: usize, mut is_seen: impl FnMut(&ShadowRecord) -> bool) {
        self.revise(at, end, |old| Some(old).filter(|old| !is_seen(old)));
    }

    /// Remembers what `revised` makes of the accesses to bytes `at..end`, and forgets those of
    /// which it makes nothing.
    pub fn revise(
        self,
        at: usize,
        end: usize,
        mut revised: impl FnMut(ShadowRecord) -> Option<ShadowRecord>,
    ) {
        // Most pages have no accesses at all.
        if self.head[0].load(Relaxed) == 0 {
            return;
        }
        let _held = lock(&self.head[0]);
        let granules = (at / 8..end.div_ceil(8)).map(|index| self.granule(index));
        let whole = ((at, end) == (0, PAGE)).then(|| self.whole());
        for words in granules.chain(whole).flat_map(|records| records.chunks_exact(2)) {
            if let Some(old) = record(words) {
                let new = revised(old).map_or(0, |new| new.words()[0]);
                words[0].store(new, Relaxed);
            }
        }
    }
}

fn record(words: &[AtomicU64]) -> Option<ShadowRecord> {
    ShadowRecord::of([words[0].load(Relaxed), words[1].load(Relaxed)])
}

/// Returns an access that conflicts with a new one.
fn look_at(records: &Records, access: &ShadowRecord, view: View<'_>) -> Option<ShadowRecord> {
    let all = records.chunks_exact(2).filter_map(record);
    all.into_iter().find(|old| old.conflicts(access) && !view.covers(old))
}

/// Finds a conflict, and reports whether any access is left: those that the new one replaces are
/// forgotten.
fn look(records: &Records, access: &ShadowRecord, view: View<'_>) -> (Option<ShadowRecord>, bool) {
    let conflict = look_at(records, access, view);
    let mut is_left = false;
    for words in records.chunks_exact(2) {
        let Some(old) = record(words) else { continue };
        match view.covers(&old) && access.replaces(&old) {
            true => words[0].store(0, Relaxed),
            false => is_left = true,
        }
    }
    (conflict, is_left)
}

/// Remembers an access, and returns one that conflicts with it. Where there is no room it replaces
/// a read that is done, or the oldest access.
#[inline]
fn insert(records: &Records, access: &ShadowRecord, view: View<'_>) -> Option<ShadowRecord> {
    let (mut conflict, mut place, mut read) = (None, None, None);
    for i in 0..RECORDS {
        // The second word is of no meaning here.
        let Some(old) = ShadowRecord::of([records[i * 2].load(Relaxed), 0]) else {
            place = place.or(Some(i));
            continue;
        };
        let is_same = (old.actor, old.epoch) == (access.actor, access.epoch);
        if !is_same && !view.covers(&old) {
            if old.conflicts(access) {
                conflict = record(&records[i * 2..]);
            }
        } else if !access.replaces(&old) {
            read = read.or(Some(i).filter(|_| !old.kind.writes()));
        } else if place.is_none() {
            place = Some(i);
        } else {
            records[i * 2].store(0, Relaxed);
        }
    }
    let place = place.or(read).unwrap_or_else(|| {
        // The accesses move up.
        for i in 2..GRANULE {
            records[i - 2].store(records[i].load(Relaxed), Relaxed);
        }
        RECORDS - 1
    });
    let [first, second] = access.words();
    records[place * 2 + 1].store(second, Relaxed);
    records[place * 2].store(first, Relaxed);
    conflict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shadow() -> Shadow<'static> {
        let words = |n| (0..n).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
        Shadow::new(words(HEAD_WORDS), words(PART_WORDS))
    }

    fn page() -> Page<'static> {
        shadow().page(0)
    }

    fn access(actor: Actor, epoch: Epoch, kind: ShadowKind) -> ShadowRecord {
        ShadowRecord { actor, epoch, mask: 0, kind, site: 1, nbytes: 8 }
    }

    fn knowing(known: &[(Actor, Epoch)]) -> VectorClock {
        let mut clock = VectorClock::default();
        known.iter().for_each(|&(actor, epoch)| clock.raise(actor, epoch));
        clock
    }

    #[test]
    fn bytes_that_overlap_conflict_unless_the_clock_covers_them() {
        let page = page();
        let (nothing, first) = (knowing(&[]), knowing(&[(1, 1)]));
        let view = |clock| View { clock, fenced: &[] };
        assert_eq!(
            page.record_access(10, 14, access(1, 1, ShadowKind::WRITE), view(&nothing)),
            None
        );
        assert_eq!(
            page.record_access(14, 15, access(2, 1, ShadowKind::STORE), view(&nothing)),
            None
        );
        assert_eq!(page.record_access(12, 13, access(2, 2, ShadowKind::LOAD), view(&first)), None);
        let found = page
            .record_access(13, 20, access(3, 1, ShadowKind::LOAD), view(&nothing))
            .expect("a race");
        assert_eq!((found.actor, found.epoch), (1, 1));
    }

    /// Random accesses of four actors, each of which knows at random how far the others are.
    #[test]
    fn the_short_path_records_what_the_long_one_does() {
        let (long, short) = (page(), page());
        let (mut state, mut n_short, mut n_conflicts) = (1u64, 0, 0);
        let mut below = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut epochs = [1 as Epoch; 5];
        for _ in 0..50_000 {
            let actor = 1 + below(4) as Actor;
            epochs[usize::from(actor)] += (below(3) == 0) as Epoch;
            let own = (actor, epochs[usize::from(actor)]);
            let to_peer = ShadowKind::WRITE.to_peer();
            let kind =
                [ShadowKind::LOAD, ShadowKind::STORE, ShadowKind::READ, ShadowKind::WRITE, to_peer]
                    [below(5) as usize];
            let clock = knowing(&[1, 2, 3, 4].map(|other| match other == actor {
                true => own,
                false => (other, epochs[usize::from(other)] - Epoch::from(below(50) == 0)),
            }));
            let view = View { clock: &clock, fenced: &[] };
            if below(500) == 0 {
                let access = access(own.0, own.1, kind);
                let found = long.record_access(0, PAGE, access, view);
                assert_eq!(short.record_access(0, PAGE, access, view), found);
                continue;
            }
            let nbytes = 1 << below(4);
            let at = 8 * below(4) as usize + nbytes * below(8 / nbytes as u64) as usize;
            let access = access(own.0, own.1, kind);
            let found = long.record_access(at, at + nbytes, access, view);
            n_conflicts += usize::from(found.is_some());
            let mask = ((1 << nbytes) - 1) << (at % 8);
            let words = ShadowRecord { mask: mask as u8, ..access }.words();
            let is_done = |old: u64| clock.of((old >> ACTOR) as Actor) >= (old >> 16) as Epoch;
            if !kind.is_of_library() && short.record_if_done(at, words, is_done) {
                n_short += 1;
                assert_eq!(found, None);
            } else {
                assert_eq!(short.record_access(at, at + nbytes, access, view), found);
            }
            for (a, b) in
                long.granule(at / 8).chunks_exact(2).zip(short.granule(at / 8).chunks_exact(2))
            {
                assert_eq!(record(a), record(b));
            }
            let words = |page: Page<'_>| {
                page.head.iter().map(|word| word.load(Relaxed)).collect::<Vec<_>>()
            };
            assert_eq!(words(long), words(short));
        }
        assert!(n_short > 500 && n_conflicts > 100, "{n_short} and {n_conflicts}");
    }

    #[test]
    fn a_fence_covers_what_a_clock_does_not() {
        let page = page();
        let clock = knowing(&[]);
        let fenced = |epoch| [(1, epoch)];
        page.record_access(
            0,
            8,
            access(1, 3, ShadowKind::WRITE),
            View { clock: &clock, fenced: &[] },
        );
        let too_early = View { clock: &clock, fenced: &fenced(2) };
        assert!(page.record_access(0, 8, access(1, 4, ShadowKind::WRITE), too_early).is_some());
        let after = View { clock: &clock, fenced: &fenced(4) };
        assert!(page.record_access(0, 8, access(1, 5, ShadowKind::WRITE), after).is_none());
    }

    #[test]
    fn a_whole_page_conflicts_with_its_parts() {
        let page = page();
        let (nothing, first) = (knowing(&[]), knowing(&[(1, 1)]));
        let view = |clock| View { clock, fenced: &[] };
        page.record_access(100, 104, access(1, 1, ShadowKind::STORE), view(&nothing));
        let put = access(2, 1, ShadowKind::WRITE);
        assert!(page.record_access(0, PAGE, put, view(&nothing)).is_some());
        assert!(
            page.record_access(4000, 4001, access(1, 2, ShadowKind::LOAD), view(&first)).is_some()
        );
        let page = self::page();
        page.record_access(100, 104, access(1, 1, ShadowKind::STORE), view(&nothing));
        assert!(page.record_access(0, PAGE, put, view(&first)).is_none());
        assert_eq!(page.head[0].load(Relaxed), IN_WHOLE, "the parts are forgotten");
    }

    #[test]
    fn parts_that_a_whole_page_does_not_replace_stay() {
        let page = page();
        let (nothing, stores) = (knowing(&[]), knowing(&[(1, 2), (2, 9)]));
        let view = |clock| View { clock, fenced: &[] };
        for epoch in 1..3 {
            page.record_access(100, 104, access(1, epoch, ShadowKind::STORE), view(&stores));
        }
        assert!(
            page.record_access(0, PAGE, access(2, 1, ShadowKind::READ), view(&stores)).is_none()
        );
        let found = page.record_access(0, PAGE, access(3, 1, ShadowKind::READ), view(&nothing));
        assert_eq!(found.map(|old| (old.actor, old.epoch)), Some((1, 2)));
    }

    #[test]
    fn a_whole_page_is_compared_with_all_who_access_parts() {
        for actors in 1..9 {
            let page = page();
            let mut known = knowing(&[]);
            for actor in 1..=actors {
                let at = usize::from(actor) * 64;
                page.record_access(
                    at,
                    at + 8,
                    access(actor, 1, ShadowKind::STORE),
                    View { clock: &known, fenced: &[] },
                );
            }
            (1..actors).for_each(|actor| known.raise(actor, 1));
            let put = access(20, 1, ShadowKind::WRITE);
            let found = page.record_access(0, PAGE, put, View { clock: &known, fenced: &[] });
            assert_eq!(found.map(|old| old.actor), Some(actors), "the last is not ordered");
        }
    }

    #[test]
    fn many_readers_do_not_hide_a_writer_that_comes() {
        let page = page();
        let nothing = knowing(&[]);
        let view = View { clock: &nothing, fenced: &[] };
        for reader in 1..20 {
            assert!(page.record_access(0, 8, access(reader, 1, ShadowKind::READ), view).is_none());
        }
        assert!(page.record_access(0, 8, access(30, 1, ShadowKind::WRITE), view).is_some());
    }

    #[test]
    fn what_is_known_need_not_be_recorded_again() {
        let shadow = shadow();
        let page = shadow.page(0);
        let nothing = knowing(&[]);
        let store = ShadowRecord { mask: 0x0f, ..access(1, 1, ShadowKind::STORE) };
        let is_known = |record: ShadowRecord| shadow.knows(0, record.words()[0]);
        assert!(!is_known(store));
        page.record_access(0, 8, store, View { clock: &nothing, fenced: &[] });
        assert!(is_known(store));
        assert!(is_known(ShadowRecord { mask: 0x03, ..store }));
        assert!(!is_known(ShadowRecord { epoch: 2, ..store }));
        assert!(!is_known(ShadowRecord { kind: ShadowKind::LOAD, ..store }));
        page.forget(0, 8, |_| true);
        assert!(!is_known(store));
    }
}
