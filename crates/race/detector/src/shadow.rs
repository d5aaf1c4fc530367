//! The shadow of memory: the accesses to it that are remembered.
//!
//! There is room for four records of accesses for each eight bytes, and for four more for each page
//! of 4 KiB, of accesses to the whole page: a long put is recorded once for a page, not for each of
//! its bytes. The lock of a page protects these records. A page of symmetric memory also has bits,
//! one for each byte, for the loads and stores of one thread ([`bits`]).
//!
//! All words but the lock, the bits and the keys of the bits are accessed in relaxed order: the
//! lock orders those of records, and a word that is read without the lock, such as one of the head,
//! is used alone.

pub mod bits;
#[cfg(test)]
mod tests;

use crate::access::{ShadowKind, ShadowRecord};
use crate::clock::{Actor, Stamp, VectorClock};
use crate::shared::{Held, lock};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of memory in a page.
pub const PAGE: usize = 4096;
/// Records for eight bytes, and for a page as a whole. They fill 64 bytes, the size of a cache
/// line. With fewer, accesses would be forgotten sooner, and races with them missed.
const RECORDS: usize = 4;
/// Words of a page's head.
pub const HEAD_WORDS: usize = 32;
/// In the head: the lock of the page, with the bits `IN_PARTS` and `IN_WHOLE` and a counter.
const LOCK: usize = 0;
/// In the head: the owner, which is the actor and epoch whose accesses become bits, as the first
/// word of its records has them.
const OWNER: usize = 1;
/// In the head: the lock's word when the owner's bits were last compared with the records. While
/// the two are equal, no access that may conflict with the bits has been recorded since.
const CHECKED: usize = 2;
/// In the head: the keys of the owner's sets of bits. A set that is not used yet has only its
/// number. Once all are used, accesses by further instructions are recorded one by one.
const KEYS: Range<usize> = 3..6;
/// In the head: the number of the next epochs that set no bits.
const PAUSE: usize = 6;
/// In the head: both words of the records that the bits of each set stand for; zeros if the set is
/// free, or has a key.
const FIRSTS: Range<usize> = 7..7 + SETS;
const SECONDS: usize = FIRSTS.end;
/// In the head: the last reading and the last writing access that was compared with the records of
/// the whole page and found no conflict, as the first words of their records, without bytes.
const LOOKED: Range<usize> = 17..19;
/// In the head: the actors and kinds of the accesses to parts of the page, each with its last
/// epoch. If the last word is set, there may be more of them than these.
const IN_PARTS_BY: Range<usize> = 19..24;
/// In the head: the records of accesses to the whole page.
const WHOLE: usize = 24;
/// Sets of bits of a page. Each is for the loads or the stores of one instruction in one epoch. The
/// owner has one for each of its keys; the others keep accesses of its earlier epochs.
const SETS: usize = 5;
/// Words of a page for the bits.
pub const BIT_WORDS: usize = PAGE / 64 * SETS;
/// Words for the records of eight bytes.
const GRANULE: usize = RECORDS * 2;
/// Words of a page for the records of accesses to its parts.
pub const PART_WORDS: usize = PAGE / 8 * GRANULE;
/// In the word of the lock: there are records of accesses to parts of the page.
const IN_PARTS: u64 = 2;
/// In the word of the lock: there are records of accesses to the whole page.
const IN_WHOLE: u64 = 4;
/// In the word of the lock: the first bit of a counter of the accesses that may conflict with loads
/// and stores of the PE.
const CHANGE: u64 = 8;

/// In the first word of a record: the kind, its bit of the library, and the bytes.
const KIND: u64 = 0xff;
const LIBRARY: u64 = 0x80;
const MASK: u64 = 0xff00;
/// The bits below the actor.
const ACTOR: u32 = 48;

/// The records of accesses to eight bytes, or to a whole page.
type Records = [AtomicU64; GRANULE];
/// The bits of a page, one for each byte.
type Bits = [AtomicU64; PAGE / 64];

/// The accesses that are complete, or ordered before a new access, as far as its actor knows.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The clock of the thread.
    pub clock: &'a VectorClock,
    /// Operations in flight to the same PE that precede a fence: the last one of each actor.
    pub fenced: &'a [Stamp],
}

impl<'a> View<'a> {
    /// Returns the view of an access that no operation in flight precedes by a fence.
    #[inline]
    pub fn of(clock: &'a VectorClock) -> View<'a> {
        View { clock, fenced: &[] }
    }

    /// Returns the clock that the new access passes on to those that read what it stores: that of
    /// the thread and the operations that precede a fence.
    pub fn released(&self) -> VectorClock {
        let mut clock = self.clock.clone();
        for fenced in self.fenced {
            clock.raise(fenced.actor, fenced.epoch);
        }
        clock
    }

    /// Returns true if a recorded access is complete or ordered before the new one.
    #[inline]
    pub fn covers(&self, record: &ShadowRecord) -> bool {
        self.clock.includes(record.stamp())
            || self
                .fenced
                .iter()
                .any(|fenced| fenced.actor == record.actor && fenced.epoch >= record.epoch)
    }
}

/// The sets of bits of all pages, from one page on. The sets with the same number are adjacent.
#[derive(Clone, Copy)]
struct BitSets<'a> {
    sets: &'a [Bits],
    /// The number of all pages, which is the distance between two sets of a page.
    n_pages: usize,
}

impl<'a> BitSets<'a> {
    /// Returns the sets from those of page number `first` on.
    #[inline]
    fn from(self, first: usize) -> BitSets<'a> {
        BitSets {
            sets: &self.sets[first..],
            n_pages: self.n_pages,
        }
    }
}

/// The shadow of pages. The heads of all pages are adjacent, so that a page without records of its
/// parts takes little memory.
#[derive(Clone, Copy)]
pub struct Shadow<'a> {
    heads: &'a [[AtomicU64; HEAD_WORDS]],
    bits: BitSets<'a>,
    parts: &'a [[Records; PAGE / 8]],
}

impl<'a> Shadow<'a> {
    /// Makes a shadow of as many pages as there are words for. The words must be zero at first.
    pub fn new(words: &'a [AtomicU64]) -> Shadow<'a> {
        let n = words.len() / (HEAD_WORDS + BIT_WORDS + PART_WORDS);
        let (heads, rest) = words.split_at(n * HEAD_WORDS);
        let (bits, parts) = rest.split_at(n * BIT_WORDS);
        Shadow {
            heads: heads.as_chunks().0,
            bits: BitSets {
                sets: bits.as_chunks().0,
                n_pages: n,
            },
            parts: parts.as_chunks().0.as_chunks().0,
        }
    }

    /// Returns the pages from number `first`.
    pub fn from(self, first: usize) -> Shadow<'a> {
        Shadow {
            heads: &self.heads[first..],
            bits: self.bits.from(first),
            parts: &self.parts[first..],
        }
    }

    /// Returns page number `index`.
    #[inline]
    pub fn page(&self, index: usize) -> Page<'a> {
        Page {
            head: &self.heads[index],
            bits: self.bits.from(index),
            parts: &self.parts[index],
        }
    }
}

/// The shadow of one page.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    head: &'a [AtomicU64; HEAD_WORDS],
    /// The page's sets of bits are the first ones.
    bits: BitSets<'a>,
    parts: &'a [Records; PAGE / 8],
}

impl<'a> Page<'a> {
    /// Returns a page of private memory, which has no bits.
    pub fn private(words: &'a [AtomicU64]) -> Page<'a> {
        let (head, parts) = words.split_first_chunk().expect("a page has a head");
        Page {
            head,
            bits: BitSets {
                sets: &[],
                n_pages: 0,
            },
            parts: parts.as_chunks().0.first_chunk().expect("and parts"),
        }
    }

    /// Returns true if there is a record whose first word is `stamp`, or has more bytes, for the
    /// eight bytes at `offset`. Takes no lock.
    #[inline]
    pub fn knows(self, offset: usize, stamp: u64) -> bool {
        let records = self.granule(offset / 8);
        // All bits are equal, but the mask of the record may have more bytes.
        let compared = !(MASK & !stamp);
        (0..RECORDS).any(|i| (records[i * 2].load(Relaxed) ^ stamp) & compared == 0)
    }

    /// Returns the records of the whole page.
    fn whole(self) -> &'a Records {
        self.head[WHOLE..].first_chunk().expect("a page has a head")
    }

    /// Returns the records of eight bytes.
    #[inline]
    fn granule(self, index: usize) -> &'a Records {
        &self.parts[index]
    }

    /// Records an access to bytes of the page. Returns an earlier one that conflicts with it and is
    /// not ordered before it, if there is one.
    pub fn record_access(
        self,
        bytes: Range<usize>,
        access: ShadowRecord,
        view: View<'_>,
    ) -> Option<ShadowRecord> {
        let mut held = lock(&self.head[LOCK]);
        let mut conflict = None;
        if access.kind.is_looked_for() {
            // The word of the lock then differs, also after the release, from the one that the
            // owner of the bits has compared.
            held.add(CHANGE);
            conflict = self.look_at_bits(&bytes, &access, view);
        }

        if bytes == (0..PAGE) {
            return self.record_on_whole(access, view, &mut held).or(conflict);
        }

        for index in granules(&bytes) {
            let access = ShadowRecord {
                mask: mask(&bytes, index),
                ..access
            };
            if held.has(IN_WHOLE) {
                conflict = conflict.or_else(|| self.look_at_whole(&access, view));
            }
            conflict = insert(self.granule(index), &access, view).or(conflict);
        }

        held.set(IN_PARTS, true);
        self.add_to_parts(access.words()[0]);
        conflict
    }

    /// Records an access to the whole page, whose lock is held. Returns an earlier access that
    /// conflicts with it and is not ordered before it, if the records have one.
    fn record_on_whole(
        self,
        access: ShadowRecord,
        view: View<'_>,
        held: &mut Held<'_>,
    ) -> Option<ShadowRecord> {
        let access = ShadowRecord {
            mask: 0xff,
            ..access
        };

        let mut conflict = None;
        if held.has(IN_PARTS) {
            let found = self.look_at_parts(&access, view);
            conflict = found.conflict;
            held.set(IN_PARTS, found.is_left);
        }

        // What was compared with the records of the whole page was not compared with this one.
        for looked in &self.head[LOOKED] {
            looked.store(0, Relaxed);
        }
        held.set(IN_WHOLE, true);
        insert(self.whole(), &access, view).or(conflict)
    }

    /// Records a load or store of the program at an offset, within eight bytes, whose record has
    /// these words.
    /// Returns false if the clock of the thread is needed, because another actor's access to the
    /// eight bytes may be incomplete, because the access was not compared with the records of the
    /// whole page, or because there is no room.
    /// [`record_access`](Page::record_access) must then record it.
    #[inline(always)]
    pub fn record_if_done(
        self,
        offset: usize,
        [first, second]: [u64; 2],
        is_done: impl Fn(u64) -> bool,
    ) -> bool {
        let mut held = lock(&self.head[LOCK]);
        let writes = first & u64::from(ShadowKind::STORE.0);
        let looked = &self.head[LOOKED][writes as usize];
        if held.has(IN_WHOLE) && looked.load(Relaxed) != first & !MASK {
            return false;
        }

        let records = self.granule(offset / 8);
        let mut first = first;
        // The index of a record that is free or replaced, and of one that reads, which is forgotten
        // if there is no other room.
        let mut free = None;
        let mut read = None;
        for i in 0..RECORDS {
            let old = records[i * 2].load(Relaxed);
            if old >> ACTOR == 0 {
                free = free.or(Some(i));
                continue;
            }
            if old >> ACTOR != first >> ACTOR && !is_done(old) {
                return false;
            }

            if are_like(old, first) && records[i * 2 + 1].load(Relaxed) == second {
                first |= old & MASK;
            }

            // The same rule as `ShadowKind::replaces`, for loads and stores of own memory.
            let is_replaced = old & !first & MASK == 0
                && ((old ^ first) & KIND == 0 || writes != 0 && old & LIBRARY == 0);
            let old_writes = old & u64::from(ShadowKind::STORE.0) != 0;
            if is_replaced && free.is_none() {
                free = Some(i);
            } else if is_replaced {
                records[i * 2].store(0, Relaxed);
            } else if !old_writes {
                read = read.or(Some(i));
            }
        }
        let Some(index) = free.or(read) else {
            return false;
        };

        // `knows` reads the first word alone, without the lock, and only the thread itself stores
        // one with its stamp. So the order of the two stores does not matter.
        records[index * 2 + 1].store(second, Relaxed);
        records[index * 2].store(first, Relaxed);
        held.set(IN_PARTS, true);
        self.add_to_parts(first);
        true
    }

    /// Returns the actors of the accesses to the eight bytes around an offset.
    pub fn actors(self, offset: usize) -> impl Iterator<Item = Actor> {
        let records = self.granule(offset / 8).chunks_exact(2);
        records.filter_map(record).map(|record| record.actor)
    }

    /// Adds the access with this first word to the list of accesses to parts of the page.
    #[inline]
    fn add_to_parts(self, first: u64) {
        for word in &self.head[IN_PARTS_BY] {
            let by = word.load(Relaxed);
            if by >> ACTOR == 0 || (by ^ first) & (!0 << ACTOR | KIND) == 0 {
                // Of two words of one actor and kind, the larger one has the later epoch.
                return word.store(by.max(first | MASK), Relaxed);
            }
        }
        // The list is full, which says that there may be more.
    }

    /// Searches the records of parts of the page for a conflict with `access`, which is to all of
    /// it. If all recorded accesses are complete, the parts are not searched: what stays there is
    /// complete for each later access.
    fn look_at_parts(self, access: &ShadowRecord, view: View<'_>) -> Search {
        let by = &self.head[IN_PARTS_BY];
        // A list that is full may lack entries.
        let mut are_done = by.last().is_some_and(|last| last.load(Relaxed) == 0);
        let mut is_left = false;
        for words in by {
            if let Some(old) = ShadowRecord::of([words.load(Relaxed), 0]) {
                are_done &= view.covers(&old);
                is_left |= !access.replaces(&old);
            }
        }

        let mut conflict = None;
        if !are_done {
            is_left = false;
            for index in 0..PAGE / 8 {
                let found = look(self.granule(index), access, view);
                conflict = conflict.or(found.conflict);
                is_left |= found.is_left;
            }
        }

        if !is_left {
            for words in by {
                words.store(0, Relaxed);
            }
        }
        Search { conflict, is_left }
    }

    /// Returns a recorded access to the whole page that conflicts with `access`, which is to a part
    /// of it. An actor that has found none does not look again in the same epoch, since its clock
    /// only grows.
    #[inline]
    fn look_at_whole(self, access: &ShadowRecord, view: View<'_>) -> Option<ShadowRecord> {
        let looked = &self.head[LOOKED][usize::from(access.kind.writes())];
        let key = ShadowRecord { mask: 0, ..*access }.words()[0];
        if looked.load(Relaxed) == key {
            return None;
        }
        let conflict = look_at(self.whole(), access, view);
        if conflict.is_none() {
            looked.store(key, Relaxed);
        }
        conflict
    }

    /// Forgets the recorded accesses to these bytes for which `is_seen` returns true.
    pub fn forget(self, bytes: Range<usize>, mut is_seen: impl FnMut(&ShadowRecord) -> bool) {
        self.revise(bytes, |old| if is_seen(&old) { None } else { Some(old) });
    }

    /// Replaces each recorded access to these bytes by the one that `revised` returns, or forgets
    /// it if `revised` returns `None`. Accesses to the whole page are included only if the bytes
    /// are the whole page.
    pub fn revise(
        self,
        bytes: Range<usize>,
        mut revised: impl FnMut(ShadowRecord) -> Option<ShadowRecord>,
    ) {
        // Most pages have no accesses at all. Without the lock: an access that is being recorded
        // now is concurrent to the revision, and either order is right.
        if self.head[LOCK].load(Relaxed) == 0 {
            return;
        }

        let _held = lock(&self.head[LOCK]);
        let granules = granules(&bytes).map(|index| self.granule(index));
        let whole = if bytes == (0..PAGE) {
            Some(self.whole())
        } else {
            None
        };
        for records in granules.chain(whole) {
            for words in records.chunks_exact(2) {
                if let Some(old) = record(words) {
                    // The second word has nothing that a revision changes.
                    let new = revised(old).map_or(0, |new| new.words()[0]);
                    words[0].store(new, Relaxed);
                }
            }
        }
    }
}

/// Returns a bit for each of `nbytes` bytes at an offset, which are within eight bytes at a
/// multiple of eight.
#[inline(always)]
pub fn word_mask(offset: usize, nbytes: usize) -> u64 {
    ((1 << nbytes) - 1) << (offset % 8)
}

/// Returns the numbers of the groups of eight bytes that contain these bytes of a page.
fn granules(bytes: &Range<usize>) -> Range<usize> {
    bytes.start / 8..bytes.end.div_ceil(8)
}

/// Returns the mask of group number `index` of eight bytes of a page: those that are in `bytes`.
fn mask(bytes: &Range<usize>, index: usize) -> u8 {
    let first = bytes.start.saturating_sub(index * 8).min(8);
    let last = bytes.end.saturating_sub(index * 8).min(8);
    (0xffu16 << first) as u8 & (0xffu16 >> (8 - last)) as u8
}

fn record(words: &[AtomicU64]) -> Option<ShadowRecord> {
    ShadowRecord::of([words[0].load(Relaxed), words[1].load(Relaxed)])
}

/// Returns a recorded access that conflicts with a new one and is not ordered before it.
fn look_at(records: &Records, access: &ShadowRecord, view: View<'_>) -> Option<ShadowRecord> {
    records
        .chunks_exact(2)
        .filter_map(record)
        .find(|old| old.conflicts(access) && !view.covers(old))
}

/// The result of a search of records for a conflict with a new access.
struct Search {
    /// A recorded access that conflicts with the new one and is not ordered before it.
    conflict: Option<ShadowRecord>,
    /// True if there is a record that the new access does not replace.
    is_left: bool,
}

/// Searches records for a conflict with a new access, and forgets those that it replaces.
fn look(records: &Records, access: &ShadowRecord, view: View<'_>) -> Search {
    let conflict = look_at(records, access, view);
    let mut is_left = false;
    for words in records.chunks_exact(2) {
        let Some(old) = record(words) else { continue };
        if view.covers(&old) && access.replaces(&old) {
            words[0].store(0, Relaxed);
        } else {
            is_left = true;
        }
    }
    Search { conflict, is_left }
}

/// Returns true if two accesses, by the first words of their records, are of one actor, epoch and
/// kind.
#[inline(always)]
fn are_like(a: u64, b: u64) -> bool {
    (a ^ b) & !MASK == 0
}

/// Records an access, and returns a recorded one that conflicts with it. Accesses that differ only
/// in their bytes become one record. If there is no room, the access replaces a read that is
/// complete or of the same actor and epoch; else [`make_room`] decides. What is forgotten is in no
/// race that is found later.
#[inline]
fn insert(records: &Records, access: &ShadowRecord, view: View<'_>) -> Option<ShadowRecord> {
    let [mut first, second] = access.words();
    let mut conflict = None;
    // The index of a record that is free or replaced, and of one that reads, which is forgotten if
    // there is no other room.
    let mut free = None;
    let mut read = None;
    for i in 0..RECORDS {
        let word = records[i * 2].load(Relaxed);
        if are_like(word, first) && records[i * 2 + 1].load(Relaxed) == second {
            first |= word & MASK;
        }
        // The second word is not used here.
        let Some(old) = ShadowRecord::of([word, 0]) else {
            free = free.or(Some(i));
            continue;
        };

        // An access that may not be complete is kept beside the new one.
        if old.stamp() != access.stamp() && !view.covers(&old) {
            if old.conflicts(access) {
                conflict = record(&records[i * 2..]);
            }
            continue;
        }

        let widened = ShadowRecord {
            mask: (first >> 8) as u8,
            ..*access
        };
        let is_replaced = widened.replaces(&old);
        if is_replaced && free.is_none() {
            free = Some(i);
        } else if is_replaced {
            records[i * 2].store(0, Relaxed);
        } else if !old.kind.writes() {
            read = read.or(Some(i));
        }
    }

    let index = match free.or(read) {
        Some(index) => index,
        None => make_room(records, &mut first),
    };
    records[index * 2 + 1].store(second, Relaxed);
    records[index * 2].store(first, Relaxed);
    conflict
}

/// Makes room for a new access, the first word of whose record is `first`: joins two accesses that
/// differ only in their bytes and sites, of which one may be the new one, or else forgets the
/// oldest access. The record of two accesses has the later site. Returns the index of the record
/// that is free then.
fn make_room(records: &Records, first: &mut u64) -> usize {
    for i in 0..RECORDS {
        let word = records[i * 2].load(Relaxed);
        let mut later = records[i * 2 + 2..].iter().step_by(2);
        if let Some(like) = later.find(|later| are_like(later.load(Relaxed), word)) {
            like.fetch_or(word & MASK, Relaxed);
            return i;
        }
        if are_like(word, *first) {
            *first |= word & MASK;
            return i;
        }
    }

    // Moves the accesses down by one, which forgets the first: mostly the oldest, since new ones
    // are mostly written at the end.
    for i in 2..GRANULE {
        records[i - 2].store(records[i].load(Relaxed), Relaxed);
    }
    RECORDS - 1
}
