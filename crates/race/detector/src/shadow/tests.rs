//! Tests of the shadow: the conflicts that are found by records of eight bytes, by records of whole
//! pages, and by bits.

use super::bits::{Conflict, Marked};
use super::*;
use crate::clock::Epoch;
use std::collections::HashSet;

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn shadow() -> Shadow<'static> {
    let words = |n| (0..n).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    Shadow::new(words(HEAD_WORDS + BIT_WORDS + PART_WORDS))
}

fn page() -> Page<'static> {
    shadow().page(0)
}

fn access(actor: Actor, epoch: Epoch, kind: ShadowKind) -> ShadowRecord {
    ShadowRecord {
        actor,
        epoch,
        mask: 0,
        kind,
        site: 1,
        nbytes: 8,
    }
}

fn knowing(known: &[(Actor, Epoch)]) -> VectorClock {
    let mut clock = VectorClock::default();
    for &(actor, epoch) in known {
        clock.raise(actor, epoch);
    }
    clock
}

#[test]
fn bytes_that_overlap_conflict_unless_the_clock_covers_them() {
    let page = page();
    let nothing = knowing(&[]);
    let first = knowing(&[(1, 1)]);
    let view = |clock| View { clock, fenced: &[] };

    assert_eq!(
        page.record_access(10..14, access(1, 1, ShadowKind::WRITE), view(&nothing)),
        None
    );
    assert_eq!(
        page.record_access(14..15, access(2, 1, ShadowKind::STORE), view(&nothing)),
        None
    );
    assert_eq!(
        page.record_access(12..13, access(2, 2, ShadowKind::LOAD), view(&first)),
        None
    );
    let found = page
        .record_access(13..20, access(3, 1, ShadowKind::LOAD), view(&nothing))
        .expect("a race");
    assert_eq!((found.actor, found.epoch), (1, 1));
}

/// Four actors make random accesses. The clock of each covers all accesses of another one so far,
/// or at random all but those of its last epoch.
#[test]
fn the_short_path_records_what_the_long_one_does() {
    let long = page();
    let short = page();
    let mut random = Random(1);
    let mut n_short = 0;
    let mut n_conflicts = 0;

    let mut epochs = [1 as Epoch; 5];
    for _ in 0..50_000 {
        let actor = 1 + random.below(4) as Actor;
        epochs[usize::from(actor)] += (random.below(3) == 0) as Epoch;
        let epoch = epochs[usize::from(actor)];
        let kinds = [
            ShadowKind::LOAD,
            ShadowKind::STORE,
            ShadowKind::READ,
            ShadowKind::WRITE,
            ShadowKind::WRITE.to_peer(),
        ];
        let kind = kinds[random.below(5) as usize];
        let access = access(actor, epoch, kind);

        let clock = knowing(&[1, 2, 3, 4].map(|other| {
            if other == actor {
                return (actor, epoch);
            }
            // Seldom, what another actor did last is not known.
            let missed = Epoch::from(random.below(50) == 0);
            (other, epochs[usize::from(other)] - missed)
        }));
        let view = View::of(&clock);

        if random.below(500) == 0 {
            let found = long.record_access(0..PAGE, access, view);
            assert_eq!(short.record_access(0..PAGE, access, view), found);
            continue;
        }

        let nbytes = 1 << random.below(4);
        let group = random.below(4) as usize;
        let offset = 8 * group + nbytes * random.below(8 / nbytes as u64) as usize;
        let found = long.record_access(offset..offset + nbytes, access, view);
        n_conflicts += usize::from(found.is_some());

        let words = ShadowRecord {
            mask: word_mask(offset, nbytes) as u8,
            ..access
        }
        .words();
        let is_done = |old: u64| clock.of((old >> ACTOR) as Actor) >= (old >> 16) as Epoch;
        if !kind.is_of_library() && short.record_if_done(offset, words, is_done) {
            n_short += 1;
            assert_eq!(found, None);
        } else {
            assert_eq!(
                short.record_access(offset..offset + nbytes, access, view),
                found
            );
        }

        for (a, b) in long
            .granule(offset / 8)
            .chunks_exact(2)
            .zip(short.granule(offset / 8).chunks_exact(2))
        {
            assert_eq!(record(a), record(b));
        }

        let words = |page: Page<'_>| {
            page.head
                .iter()
                .map(|word| word.load(Relaxed))
                .collect::<Vec<_>>()
        };
        assert_eq!(words(long), words(short));
    }

    assert!(
        n_short > 500 && n_conflicts > 100,
        "{n_short} and {n_conflicts}"
    );
}

/// Random accesses of a thread, some of which become bits, and of two actors of other PEs, which
/// synchronize at random. With flights, operations in flight of the thread replace the second of
/// these actors, and the first one at times sees a word that the thread has stored.
#[test]
fn bits_find_what_records_find() {
    for with_flights in [false, true] {
        let missed = RandomAccesses::new(1, with_flights).run();
        assert!(missed.by_bits <= missed.by_records, "{missed:?}");
        RandomAccesses::new(4, with_flights).run();
    }
}

/// The actor of the thread. Those of other PEs are 2 and 3.
const THREAD: Actor = 1;
/// The actor of the thread's operations in flight.
const FLIGHT: Actor = 4;

/// Two accesses to a group of eight bytes that nothing orders.
#[derive(PartialEq, Eq, Hash)]
struct Race {
    group: usize,
    earlier: Stamp,
    later: Stamp,
}

/// The numbers of races that were not found because there was no room.
#[derive(Debug)]
struct Missed {
    by_records: usize,
    by_bits: usize,
}

struct RandomAccesses {
    random: Random,
    /// The number of sizes of accesses, from eight bytes down.
    n_sizes: u64,
    with_flights: bool,
    /// A page that has records alone.
    records: Page<'static>,
    /// A shadow of one page, which also has bits.
    bits: Shadow<'static>,
    /// The clocks of actors 1 to 3.
    clocks: [VectorClock; 3],
    /// The number of the last operation in flight.
    last_flight: Epoch,
    /// The accesses that some clock does not include, each with its group of eight bytes.
    incomplete: Vec<(usize, ShadowRecord)>,
    races: HashSet<Race>,
    n_bits: usize,
    missed: Missed,
}

impl RandomAccesses {
    fn new(n_sizes: u64, with_flights: bool) -> RandomAccesses {
        RandomAccesses {
            random: Random(1),
            n_sizes,
            with_flights,
            records: page(),
            bits: shadow(),
            clocks: [1, 2, 3].map(|actor| knowing(&[(actor, 1)])),
            last_flight: 0,
            incomplete: Vec::new(),
            races: HashSet::new(),
            n_bits: 0,
            missed: Missed {
                by_records: 0,
                by_bits: 0,
            },
        }
    }

    fn run(mut self) -> Missed {
        for _ in 0..100_000 {
            // Mostly the thread.
            let who = (self.random.below(300) as usize).saturating_sub(297);
            let event = self.random.below(600);
            if event == 4 && self.with_flights {
                // The actor of the other PE has seen a word that the thread stored.
                let epoch = self.clocks[0].of(THREAD);
                self.clocks[1].raise(THREAD, epoch);
            }

            // Mostly all actors synchronize, otherwise one of them with another one.
            if event < 4 {
                self.synchronize(who, event < 3);
            } else {
                self.access(who);
            }
        }

        let n_races = self.races.len();
        assert!(
            self.n_bits > 100 && n_races > 500,
            "{} bits and {n_races} races",
            self.n_bits
        );
        self.missed
    }

    /// Returns the stamp of the thread's next access.
    fn stamp(&self) -> u64 {
        let thread = Stamp {
            actor: THREAD,
            epoch: self.clocks[0].of(THREAD),
        };
        thread.bits()
    }

    /// Begins the bits of the thread's epoch, or compares them.
    fn begin(&self) {
        let page = self.bits.page(0);
        let view = View::of(&self.clocks[0]);
        for Conflict { offset, new, old } in page.begin(self.stamp(), view) {
            // The thread set the bit (`new`) before the other access was recorded (`old`).
            let race = Race {
                group: offset / 8,
                earlier: new.stamp(),
                later: old.stamp(),
            };
            assert!(self.races.contains(&race), "{new:?} and {old:?}");
        }
    }

    /// Orders actor `who` after another one, or all actors after each other.
    fn synchronize(&mut self, who: usize, are_all: bool) {
        if self.bits.page(0).must_be_checked(self.stamp()) {
            self.begin();
        }
        self.clocks[0].raise(FLIGHT, self.last_flight);

        let before = self.clocks.clone();
        for (clock, actor) in self.clocks.iter_mut().zip(1..) {
            if are_all {
                for other in &before {
                    clock.join(other);
                }
            }
            clock.raise(actor, clock.of(actor) + 1);
        }
        let other = self.random.below(3) as usize;
        self.clocks[who].join(&before[other]);

        let clocks = &self.clocks;
        self.incomplete
            .retain(|(_, old)| clocks.iter().any(|clock| !clock.includes(old.stamp())));
    }

    /// Lets actor `who` make an access.
    fn access(&mut self, who: usize) {
        let nbytes = 8 >> self.random.below(self.n_sizes);
        let group = 8 * self.random.below(64) as usize;
        let offset = group * 8 + nbytes * self.random.below(8 / nbytes as u64) as usize;
        let mut kind = match (who, self.random.below(20)) {
            (0, n) => [ShadowKind::LOAD, ShadowKind::STORE][n as usize % 2],
            (1, _) => ShadowKind::WRITE,
            _ => ShadowKind::STORE.to_peer(),
        };

        let mut actor = who as Actor + 1;
        let mut clock = self.clocks[who].clone();
        let mut epoch = clock.of(actor);
        if actor == 3 && self.with_flights {
            self.last_flight += 1;
            actor = FLIGHT;
            clock = self.clocks[0].clone();
            epoch = self.last_flight;
            kind = ShadowKind::WRITE;
        }

        let access = ShadowRecord {
            mask: word_mask(offset, nbytes) as u8,
            site: self.random.below(3) as u32 + 1,
            nbytes: nbytes as u32,
            ..access(actor, epoch, kind)
        };
        let view = View::of(&clock);
        let mut is_race = false;
        for (other_group, old) in &self.incomplete {
            if *other_group == group && old.conflicts(&access) && !view.covers(old) {
                is_race = true;
                self.races.insert(Race {
                    group,
                    earlier: old.stamp(),
                    later: access.stamp(),
                });
            }
        }
        self.incomplete.push((group, access));

        let bytes = offset..offset + nbytes;
        let by_records = self.records.record_access(bytes.clone(), access, view);
        let by_bits = if actor == THREAD && self.mark(offset, access) {
            self.n_bits += 1;
            None
        } else {
            self.bits.page(0).record_access(bytes, access, view)
        };

        for found in [by_records, by_bits].into_iter().flatten() {
            assert!(is_race, "{found:?} and {access:?}");
        }
        self.missed.by_records += usize::from(is_race && by_records.is_none());
        self.missed.by_bits += usize::from(is_race && by_bits.is_none());
    }

    /// Keeps an access of the thread as a bit. Returns false if it must be recorded.
    fn mark(&self, offset: usize, access: ShadowRecord) -> bool {
        let stamp = self.stamp();
        let [_, second] = access.words();
        let mark = || {
            self.bits
                .mark(offset, stamp, access.mask.into(), access.kind, second)
        };
        if mark() == Marked::AfterBegin && !self.bits.page(0).skip_epoch(stamp) {
            self.begin();
        }
        mark() == Marked::Yes
    }
}

#[test]
fn a_fence_covers_what_a_clock_does_not() {
    let page = page();
    let clock = knowing(&[]);
    let fenced = |epoch| [Stamp { actor: 1, epoch }];

    page.record_access(0..8, access(1, 3, ShadowKind::WRITE), View::of(&clock));
    let too_early = View {
        clock: &clock,
        fenced: &fenced(2),
    };
    assert!(
        page.record_access(0..8, access(1, 4, ShadowKind::WRITE), too_early)
            .is_some()
    );

    let after = View {
        clock: &clock,
        fenced: &fenced(4),
    };
    assert!(
        page.record_access(0..8, access(1, 5, ShadowKind::WRITE), after)
            .is_none()
    );
}

#[test]
fn a_whole_page_conflicts_with_its_parts() {
    let page = page();
    let nothing = knowing(&[]);
    let first = knowing(&[(1, 1)]);
    let view = |clock| View { clock, fenced: &[] };
    page.record_access(100..104, access(1, 1, ShadowKind::STORE), view(&nothing));
    let put = access(2, 1, ShadowKind::WRITE);
    assert!(page.record_access(0..PAGE, put, view(&nothing)).is_some());
    assert!(
        page.record_access(4000..4001, access(1, 2, ShadowKind::LOAD), view(&first))
            .is_some()
    );

    let page = self::page();
    page.record_access(100..104, access(1, 1, ShadowKind::STORE), view(&nothing));
    assert!(page.record_access(0..PAGE, put, view(&first)).is_none());
    assert_eq!(
        page.head[LOCK].load(Relaxed) & (IN_PARTS | IN_WHOLE),
        IN_WHOLE,
        "the parts are forgotten"
    );
}

#[test]
fn a_bit_conflicts_with_a_whole_page_that_comes_later() {
    let shadow = shadow();
    let page = shadow.page(0);
    let nothing = knowing(&[]);
    let view = View::of(&nothing);
    let store = ShadowRecord {
        mask: 0xff,
        ..access(1, 1, ShadowKind::STORE)
    };
    let stamp = store.stamp().bits();
    let [_, second] = store.words();

    assert!(page.begin(stamp, view).is_empty());
    assert!(shadow.mark(104, stamp, 0xff, ShadowKind::STORE, second) == Marked::Yes);
    page.record_access(0..PAGE, access(2, 1, ShadowKind::WRITE), view);
    let found = page.begin(stamp, view);
    assert_eq!(found.iter().map(|found| found.offset).max(), Some(104));
    assert_eq!(found[0].old.actor, 2);
}

#[test]
fn parts_that_a_whole_page_does_not_replace_stay() {
    let page = page();
    let nothing = knowing(&[]);
    let stores = knowing(&[(1, 2), (2, 9)]);
    let view = |clock| View { clock, fenced: &[] };
    for epoch in 1..3 {
        page.record_access(100..104, access(1, epoch, ShadowKind::STORE), view(&stores));
    }
    assert!(
        page.record_access(0..PAGE, access(2, 1, ShadowKind::READ), view(&stores))
            .is_none()
    );
    let found = page.record_access(0..PAGE, access(3, 1, ShadowKind::READ), view(&nothing));
    assert_eq!(found.map(|old| (old.actor, old.epoch)), Some((1, 2)));
}

#[test]
fn a_whole_page_is_compared_with_all_who_access_parts() {
    for actors in 1..12 {
        let page = page();
        let mut known = knowing(&[]);
        for actor in 1..=actors {
            let offset = usize::from(actor) * 64;
            let store = access(actor, 1, ShadowKind::STORE);
            page.record_access(offset..offset + 8, store, View::of(&known));
        }

        for actor in 1..actors {
            known.raise(actor, 1);
        }
        let put = access(20, 1, ShadowKind::WRITE);
        let found = page.record_access(0..PAGE, put, View::of(&known));
        assert_eq!(
            found.map(|old| old.actor),
            Some(actors),
            "the last is not ordered"
        );
    }
}

#[test]
fn many_readers_do_not_hide_a_writer_that_comes() {
    let page = page();
    let nothing = knowing(&[]);
    let view = View {
        clock: &nothing,
        fenced: &[],
    };
    for reader in 1..20 {
        assert!(
            page.record_access(0..8, access(reader, 1, ShadowKind::READ), view)
                .is_none()
        );
    }
    assert!(
        page.record_access(0..8, access(30, 1, ShadowKind::WRITE), view)
            .is_some()
    );
}

#[test]
fn bytes_of_one_epoch_do_not_push_each_other_out() {
    for (is_one_place, is_backward) in [(true, false), (false, false), (true, true), (false, true)]
    {
        let page = page();
        let nothing = knowing(&[]);
        let view = View {
            clock: &nothing,
            fenced: &[],
        };
        for offset in 0..8 {
            let site = if is_one_place { 1 } else { offset as u32 + 1 };
            let access = ShadowRecord {
                site,
                mask: 1 << offset,
                ..access(1, 1, ShadowKind::STORE)
            };
            if !page.record_if_done(offset, access.words(), |_| false) {
                page.record_access(offset..offset + 1, access, view);
            }
        }
        let write = access(2, 1, ShadowKind::WRITE);
        let is_found = |offset: &usize| {
            let offset = if is_backward { 7 - offset } else { *offset };
            page.record_access(offset..offset + 1, write, view)
                .is_some()
        };
        assert_eq!(
            (0..8).filter(is_found).count(),
            8,
            "{is_one_place} {is_backward}"
        );
    }
}

#[test]
fn what_is_known_need_not_be_recorded_again() {
    let page = page();
    let nothing = knowing(&[]);
    let store = ShadowRecord {
        mask: 0x0f,
        ..access(1, 1, ShadowKind::STORE)
    };
    let is_known = |record: ShadowRecord| page.knows(0, record.words()[0]);
    assert!(!is_known(store));

    page.record_access(0..8, store, View::of(&nothing));
    assert!(is_known(store));
    assert!(is_known(ShadowRecord {
        mask: 0x03,
        ..store
    }));
    assert!(!is_known(ShadowRecord { epoch: 2, ..store }));
    assert!(!is_known(ShadowRecord {
        kind: ShadowKind::LOAD,
        ..store
    }));

    page.forget(0..8, |_| true);
    assert!(!is_known(store));
}
