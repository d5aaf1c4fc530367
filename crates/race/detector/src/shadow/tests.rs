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
        let own = (actor, epochs[usize::from(actor)]);
        let to_peer = ShadowKind::WRITE.to_peer();
        let kind = [
            ShadowKind::LOAD,
            ShadowKind::STORE,
            ShadowKind::READ,
            ShadowKind::WRITE,
            to_peer,
        ][random.below(5) as usize];

        let clock = knowing(&[1, 2, 3, 4].map(|other| {
            if other == actor {
                return own;
            }
            // Seldom, what another actor did last is not known.
            let missed = Epoch::from(random.below(50) == 0);
            (other, epochs[usize::from(other)] - missed)
        }));
        let view = View {
            clock: &clock,
            fenced: &[],
        };

        if random.below(500) == 0 {
            let access = access(own.0, own.1, kind);
            let found = long.record_access(0..PAGE, access, view);
            assert_eq!(short.record_access(0..PAGE, access, view), found);
            continue;
        }

        let nbytes = 1 << random.below(4);
        let group = random.below(4) as usize;
        let offset = 8 * group + nbytes * random.below(8 / nbytes as u64) as usize;
        let access = access(own.0, own.1, kind);
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

/// The actor of the thread's operations in flight.
const FLIGHT: Actor = 4;

/// Random accesses of a thread, some of which become bits, and of two actors of other PEs, which
/// synchronize at random. With `flights`, operations in flight of the thread replace the second of
/// these actors, and the first one at times sees a word that the thread has stored.
#[test]
fn bits_find_what_records_find() {
    for flights in [false, true] {
        let missed = random_accesses(1, flights);
        assert!(
            missed[1] <= missed[0],
            "{missed:?} races not found by records, and by bits"
        );
        random_accesses(4, flights);
    }
}

/// Returns the numbers of races that were not found because there was no room: by records alone,
/// and with bits.
fn random_accesses(sizes: u64, flights: bool) -> [usize; 2] {
    let long = page();
    let shadow = shadow();
    let short = shadow.page(0);
    let mut random = Random(1);

    let mut clocks = [1, 2, 3].map(|actor| knowing(&[(actor, 1)]));
    let stamp = |clock: &VectorClock| 1 << ACTOR | u64::from(clock.of(1)) << 16;
    let mut all: Vec<(usize, ShadowRecord)> = Vec::new();
    let mut races = HashSet::new();
    let mut n_bits = 0;
    let mut missed = [0; 2];
    let mut last_flight = 0;

    let begin = |clock: &VectorClock, races: &HashSet<(usize, _, _)>| {
        for Conflict { offset, new, old } in short.begin(stamp(clock), View::of(clock)) {
            let pair = (offset / 8, (new.actor, new.epoch), (old.actor, old.epoch));
            assert!(races.contains(&pair), "{new:?} and {old:?}");
        }
    };

    for _ in 0..100_000 {
        // Mostly the thread.
        let who = (random.below(300) as usize).saturating_sub(297);
        let event = random.below(600);
        if event == 4 && flights {
            // The actor of the other PE has seen a word that the thread stored.
            let epoch = clocks[0].of(1);
            clocks[1].raise(1, epoch);
        }

        if event < 4 {
            if short.must_be_checked(stamp(&clocks[0])) {
                begin(&clocks[0], &races);
            }
            clocks[0].raise(FLIGHT, last_flight);

            let before = clocks.clone();
            for (clock, actor) in clocks.iter_mut().zip(1..) {
                // Mostly all actors synchronize, otherwise one of them with another one.
                if event < 3 {
                    for other in &before {
                        clock.join(other);
                    }
                }
                clock.raise(actor, clock.of(actor) + 1);
            }
            clocks[who].join(&before[random.below(3) as usize]);
            let is_left =
                |old: &ShadowRecord| clocks.iter().any(|clock| clock.of(old.actor) < old.epoch);
            all.retain(|(_, old)| is_left(old));
            continue;
        }

        let nbytes = 8 >> random.below(sizes);
        let index = 8 * random.below(64) as usize;
        let offset = index * 8 + nbytes * random.below(8 / nbytes as u64) as usize;
        let kind = match (who, random.below(20)) {
            (0, n) => [ShadowKind::LOAD, ShadowKind::STORE][n as usize % 2],
            (1, _) => ShadowKind::WRITE,
            _ => ShadowKind::STORE.to_peer(),
        };

        let in_flight = who == 2 && flights;
        last_flight += Epoch::from(in_flight);
        let clock = &clocks[if in_flight { 0 } else { who }];
        let (actor, epoch, kind) = if in_flight {
            (FLIGHT, last_flight, ShadowKind::WRITE)
        } else {
            (who as Actor + 1, clock.of(who as Actor + 1), kind)
        };

        let view = View { clock, fenced: &[] };
        let mask = word_mask(offset, nbytes) as u8;
        let site = random.below(3) as u32 + 1;
        let access = access(actor, epoch, kind);
        let access = ShadowRecord {
            mask,
            site,
            nbytes: nbytes as u32,
            ..access
        };
        let unordered = |(i, old): &&(usize, ShadowRecord)| {
            *i == index && old.conflicts(&access) && !view.covers(old)
        };

        let mut is_race = false;
        for (_, old) in all.iter().filter(unordered) {
            is_race = true;
            races.insert((index, (old.actor, old.epoch), (actor, epoch)));
        }
        all.push((index, access));

        let by_records = long.record_access(offset..offset + nbytes, access, view);
        let mark = || shadow.mark(offset, stamp(clock), mask.into(), kind, access.words()[1]);
        if who == 0 && mark() == Marked::AfterBegin && !short.skip_epoch(stamp(clock)) {
            begin(clock, &races);
        }

        let by_bits = if who == 0 && mark() == Marked::Yes {
            None
        } else {
            short.record_access(offset..offset + nbytes, access, view)
        };
        n_bits += usize::from(who == 0 && mark() == Marked::Yes);

        for (found, missed) in [by_records, by_bits].into_iter().zip(&mut missed) {
            assert!(is_race || found.is_none(), "{found:?} and {access:?}");
            *missed += usize::from(is_race && found.is_none());
        }
    }
    assert!(
        n_bits > 100 && races.len() > 500,
        "{n_bits} bits and {} races",
        races.len()
    );
    missed
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
