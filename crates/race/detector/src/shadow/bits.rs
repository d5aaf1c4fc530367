//! Keeps the loads and stores of a PE's first thread, in its last epochs, as one bit for each byte.
//! This thread sets the bits without the lock, so that repeated accesses need no records.
//!
//! Any other access that may conflict changes the word of the page's lock before it reads the bits.
//! The thread compares that word before it sets a bit, and again before its clock changes. So of
//! two accesses that nothing orders, one finds the other, unless a third access follows the bit and
//! precedes the comparison.

use super::{
    ACTOR, Bits, CHECKED, FIRSTS, IN_PARTS, IN_PARTS_BY, KEYS, LOCK, MASK, OWNER, PAGE, PAUSE,
    Page, SECONDS, SETS, Shadow, View, granules, insert, look_at, mask, record,
};
use crate::access::{ShadowKind, ShadowRecord};
use crate::clock::VectorClock;
use crate::shared::{Held, lock};
use std::ops::Range;
use std::sync::atomic::{
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// After an epoch with bits, but fewer than this, the page gets records instead of bits, which are
/// cheaper then: to begin the bits of an epoch takes about as long for one byte as for a page.
const FEW_BITS: u32 = 256;
/// The number of epochs for which the page then gets records instead of bits. A page that is used
/// more later gets bits again after them; one that is not pays for bits in one epoch of 32.
const FEW_EPOCHS: u64 = 31;
/// The flag of an owner whose further accesses are recorded one by one.
const IS_SHARED: u64 = 1;
/// The flag of an owner that another actor has set, which has accessed the page after the owner's
/// epoch: an operation that the thread has issued, or a PE that has seen a word which the thread
/// has stored. That access is ordered after the accesses that are bits so far, but not after later
/// ones, so the thread must begin new bits before it adds another access.
const IS_SEEN: u64 = 2;
const FLAGS: u64 = IS_SHARED | IS_SEEN;
/// The upper bits of a key, whose other bits are the second word of the records: the bit of stores,
/// and the number of the set, from 1.
const STORES: u64 = 1 << 63;
const SET: u64 = 0xf << SET_SHIFT;
const SET_SHIFT: u32 = 59;

/// Returns the index of the set in a key.
#[inline(always)]
fn set_of(key: u64) -> usize {
    ((key & SET) >> SET_SHIFT) as usize - 1
}

/// A set of bits that stands for accesses.
struct MarkedSet<'a> {
    index: usize,
    access: ShadowRecord,
    bits: &'a Bits,
}

/// The result of an attempt to keep an access as a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// The access is a bit now.
    Yes,
    /// The access must be recorded.
    No,
    /// The caller must first begin the bits of the page, or check them.
    AfterBegin,
}

/// An access that is a bit, and a recorded one that conflicts with it.
pub struct Conflict {
    /// The offset in the page of the first byte that both access.
    pub offset: usize,
    /// The access that is a bit.
    pub new: ShadowRecord,
    /// The recorded access.
    pub old: ShadowRecord,
}

impl Shadow<'_> {
    /// Keeps a load or store of the first thread within eight bytes as bits: `stamp` is the first
    /// word of its record without kind and mask, `second` the other word. `offset` is that of its
    /// first byte in the memory of the shadow.
    #[inline(always)]
    pub fn mark(
        &self,
        offset: usize,
        stamp: u64,
        mask: u64,
        kind: ShadowKind,
        second: u64,
    ) -> Marked {
        let page = offset / PAGE;
        let head = &self.heads[page];
        let owner = head[OWNER].load(Relaxed);
        if owner != stamp || head[CHECKED].load(Relaxed) != head[LOCK].load(Relaxed) {
            return if owner == stamp | IS_SHARED {
                Marked::No
            } else {
                Marked::AfterBegin
            };
        }

        let key = second | if kind.writes() { STORES } else { 0 };

        for slot in &head[KEYS] {
            let found = slot.load(Relaxed);
            if found & !SET != key {
                if found & !SET != 0 {
                    continue;
                }
                // The first set that is not used yet.
                slot.store(found | key, Relaxed);
            }

            let bits = &self.bits.sets[set_of(found) * self.bits.n_pages + page];
            let word = &bits[offset % PAGE / 64];
            // No exchange: only this thread sets bits. The release orders the store of the key
            // before the bit, so that a search (`by_granule`, which acquires) that finds the bit
            // knows what it stands for.
            word.store(word.load(Relaxed) | mask << (offset / 8 % 8 * 8), Release);
            return Marked::Yes;
        }
        Marked::No
    }
}

impl<'a> Page<'a> {
    /// Returns true if the page has bits of this thread and epoch, and other accesses were recorded
    /// since they were last compared.
    pub fn must_be_checked(self, stamp: u64) -> bool {
        let owner = self.head[OWNER].load(Relaxed);
        let checked = self.head[CHECKED].load(Relaxed);
        owner == stamp && checked != self.head[LOCK].load(Relaxed)
    }

    /// Counts the epoch of the PE's first thread as one without bits, if that was not done yet.
    /// Returns false if the epoch is to have bits: no epochs without bits are left.
    pub fn skip_epoch(self, stamp: u64) -> bool {
        let left = self.head[PAUSE].load(Relaxed);
        if left > 0 && self.head[OWNER].load(Relaxed) != stamp | IS_SHARED {
            self.head[PAUSE].store(left - 1, Relaxed);
            // No set has bits.
            self.head[OWNER].store(stamp | IS_SHARED, Relaxed);
        }
        left > 0
    }

    /// Begins the bits of a thread's epoch, or, if they have begun, compares them with the records.
    /// Returns the conflicts. If accesses of other actors are not complete, or few bits were set
    /// before, further accesses of the epoch get records.
    pub fn begin(self, stamp: u64, view: View<'_>) -> Vec<Conflict> {
        let mut held = lock(&self.head[LOCK]);
        let are_done = self.are_others_done(stamp, view);

        let mut conflicts = Vec::new();
        if self.head[OWNER].load(Relaxed) & !IS_SHARED != stamp {
            self.move_bits(&mut held);
        } else if !are_done {
            conflicts = self.conflicts_with_bits(view);
        }

        let is_shared = !are_done || self.head[PAUSE].load(Relaxed) > 0;
        self.head[OWNER].store(stamp | if is_shared { IS_SHARED } else { 0 }, Relaxed);
        self.head[CHECKED].store(held.bits(), Relaxed);
        conflicts
    }

    /// Returns true if all recorded accesses of other actors than that of `stamp` are complete.
    fn are_others_done(self, stamp: u64, view: View<'_>) -> bool {
        // A list that is full may lack entries.
        let by = &self.head[IN_PARTS_BY];
        let is_full = by.last().is_none_or(|last| last.load(Relaxed) != 0);
        if is_full {
            return false;
        }

        let in_parts = by
            .iter()
            .filter_map(|by| ShadowRecord::of([by.load(Relaxed), 0]));
        let in_whole = self.whole().chunks_exact(2).filter_map(record);
        in_parts
            .chain(in_whole)
            .all(|old| u64::from(old.actor) == stamp >> ACTOR || view.covers(&old))
    }

    /// Returns the records that conflict with the owner's bits.
    fn conflicts_with_bits(self, view: View<'_>) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for set in self.new_sets() {
            for (index, new) in by_granule(set.access, set.bits, &(0..PAGE)) {
                let old = look_at(self.granule(index), &new, view);
                if let Some(old) = old.or_else(|| look_at(self.whole(), &new, view)) {
                    let first = (new.mask & old.mask).trailing_zeros() as usize;
                    conflicts.push(Conflict {
                        offset: index * 8 + first,
                        new,
                        old,
                    });
                }
            }
        }
        conflicts
    }

    fn set(self, index: usize) -> &'a Bits {
        &self.bits.sets[index * self.bits.n_pages]
    }

    /// Returns the sets that the owner has used.
    fn new_sets(self) -> impl Iterator<Item = MarkedSet<'a>> + Clone {
        // Relaxed: the caller has the lock of the page. Without it the owner changes only while
        // there are no sets.
        let owner = self.head[OWNER].load(Relaxed) & !FLAGS;
        self.head[KEYS].iter().filter_map(move |key| {
            // Acquire: the bits are read after the key, which the owner stores before its bits.
            let key = key.load(Acquire);
            if key & !SET == 0 {
                return None;
            }

            let index = set_of(key);
            let writes = u64::from(key & STORES != 0);
            Some(MarkedSet {
                index,
                access: ShadowRecord::of([owner | MASK | writes, key & !(STORES | SET)])?,
                bits: self.set(index),
            })
        })
    }

    /// Returns the sets of earlier owners.
    fn old_sets(self) -> impl Iterator<Item = MarkedSet<'a>> {
        (0..SETS).filter_map(move |index| {
            Some(MarkedSet {
                index,
                access: self.old_access(index)?,
                bits: self.set(index),
            })
        })
    }

    /// Returns the access of an earlier owner for which a set stands, if there is one.
    fn old_access(self, set: usize) -> Option<ShadowRecord> {
        let first = self.head[FIRSTS][set].load(Relaxed);
        let second = self.head[SECONDS + set].load(Relaxed);
        ShadowRecord::of([first, second])
    }

    /// Makes room for the bits of another epoch. Clears the bits of earlier epochs that an access
    /// of the last one replaces. Then the sets with the fewest bits become records, as many as
    /// another owner needs; all of them, if the last epoch had few bits.
    fn move_bits(self, held: &mut Held<'_>) {
        self.clear_replaced_bits();

        let mut sizes = [0u32; SETS];
        for set in self.new_sets().chain(self.old_sets()) {
            let counts = set.bits.iter().map(|word| word.load(Relaxed).count_ones());
            sizes[set.index] = counts.sum();
        }

        let n_bits: u32 = self.new_sets().map(|set| sizes[set.index]).sum();
        let has_few = (1..FEW_BITS).contains(&n_bits);
        self.head[PAUSE].store(if has_few { FEW_EPOCHS } else { 0 }, Relaxed);

        // The owner's sets become those of an earlier owner.
        for set in self.new_sets() {
            let [first, second] = set.access.words();
            self.head[FIRSTS][set.index].store(first, Relaxed);
            self.head[SECONDS + set.index].store(second, Relaxed);
        }

        let mut by_size: [usize; SETS] = std::array::from_fn(|set| set);
        by_size.sort_by_key(|set| sizes[*set]);
        let n_free = if has_few { SETS } else { KEYS.len() };
        for set in by_size.into_iter().take(n_free) {
            if sizes[set] > 0 {
                self.record_bits(set, held);
            }
            self.head[FIRSTS][set].store(0, Relaxed);
        }

        for (key, set) in self.head[KEYS].iter().zip(by_size) {
            key.store((set as u64 + 1) << SET_SHIFT, Relaxed);
        }
    }

    /// Clears the bits of earlier epochs of the owner that an access of its last epoch replaces: a
    /// later access replaces an earlier load, a later store also an earlier store.
    fn clear_replaced_bits(self) {
        let mut accessed = [0; PAGE / 64];
        let mut written = [0; PAGE / 64];
        for set in self.new_sets() {
            for (i, word) in set.bits.iter().enumerate() {
                let word = word.load(Relaxed);
                accessed[i] |= word;
                if set.access.kind.writes() {
                    written[i] |= word;
                }
            }
        }

        let owner = self.head[OWNER].load(Relaxed) >> ACTOR;
        for set in self.old_sets() {
            if u64::from(set.access.actor) != owner {
                continue;
            }
            let replaced = if set.access.kind.writes() {
                &written
            } else {
                &accessed
            };
            for (word, replaced) in set.bits.iter().zip(replaced) {
                word.store(word.load(Relaxed) & !replaced, Relaxed);
            }
        }
    }

    /// Turns the bits of a set into records. The bits were compared with the records of other
    /// actors already, so they replace only records of their own actor.
    fn record_bits(self, set: usize, held: &mut Held<'_>) {
        let Some(access) = self.old_access(set) else {
            return;
        };

        // The view of the actor itself, which replaces its own records alone.
        let view = View {
            clock: &VectorClock::default(),
            fenced: &[access.stamp()],
        };

        for (index, access) in by_granule(access, self.set(set), &(0..PAGE)) {
            let replaces = |new: ShadowRecord| {
                new.actor == access.actor && new.epoch >= access.epoch && new.replaces(&access)
            };
            let mut records = self.granule(index).chunks_exact(2).filter_map(record);
            if !records.any(replaces) {
                insert(self.granule(index), &access, view);
            }
        }

        held.set(IN_PARTS, true);
        self.add_to_parts(access.words()[0]);
        for bits in self.set(set) {
            bits.store(0, Relaxed);
        }
    }

    /// Returns an access that is kept as bits and conflicts with `access`, which is to `bytes`. The
    /// caller has changed the lock's word: an owner that sets a bit after this search finds the
    /// change.
    pub(super) fn look_at_bits(
        self,
        bytes: &Range<usize>,
        access: &ShadowRecord,
        view: View<'_>,
    ) -> Option<ShadowRecord> {
        let owner = self.head[OWNER].load(Relaxed);
        if owner == 0 {
            return None;
        }

        // Pairs with the fence of `ProcessDetector::check_pages`. The lock of the page has changed
        // its word before.
        fence(SeqCst);

        if owner & FLAGS == 0
            && let Some(thread) = ShadowRecord::of([owner, 0])
            && thread.actor != access.actor
            && view.covers(&thread)
        {
            self.head[OWNER].fetch_or(IS_SEEN, Relaxed);
        }

        for set in self.new_sets().chain(self.old_sets()) {
            if !set.access.kind.conflicts(access.kind) || view.covers(&set.access) {
                continue;
            }
            for (index, old) in by_granule(set.access, set.bits, bytes) {
                let access = ShadowRecord {
                    mask: mask(bytes, index),
                    ..*access
                };
                if old.conflicts(&access) {
                    return Some(old);
                }
            }
        }
        None
    }
}

/// Returns the access of a set of bits as records, one for each eight of `bytes` that have a bit,
/// with the number of the eight bytes.
fn by_granule<'a>(
    access: ShadowRecord,
    bits: &'a Bits,
    bytes: &Range<usize>,
) -> impl Iterator<Item = (usize, ShadowRecord)> + use<'a> {
    granules(bytes).filter_map(move |index| {
        let mask = (bits[index / 8].load(Acquire) >> (index % 8 * 8)) as u8;
        if mask == 0 {
            return None;
        }
        Some((index, ShadowRecord { mask, ..access }))
    })
}
