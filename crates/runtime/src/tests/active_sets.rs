//! The deprecated collectives on active sets: their teams are made at the first call, kept while
//! there is room, and otherwise end with the call.
//!
//! Without threads only, where pSync does not count. With threads its location in symmetric memory
//! is looked up in the map of the process, which these PEs do not have.

use super::kit::{Shape, TestPe, job};
use super::model::{Case, Collective, OPERATORS, Place};
use crate::coll::collectives::{self, TeamOrActiveSet};
use rushmem_pe::memory::areas::TEAM_SLOTS;
use std::ptr::null_mut;

/// Returns an active set, and its members.
fn set(pe: TestPe, [start, log_stride, size]: [i32; 3]) -> (TeamOrActiveSet, Vec<usize>) {
    let set = TeamOrActiveSet::ActiveSet {
        start,
        log_stride,
        size,
        psync: null_mut(),
    };
    let member = |i| (start + (i << log_stride)) as usize;
    let members: Vec<usize> = (0..size).map(member).collect();
    assert!(members.iter().all(|&member| member < pe.n()));
    (set, members)
}

#[test]
fn collectives_on_active_sets_are_right() {
    for shape in [
        Shape::of(&[5]),
        Shape::of(&[3, 2]),
        Shape::over_tcp(&[3, 2]),
    ] {
        job(&shape.late(6), |pe| {
            let mut salt = 0;
            for triplet in [[0, 0, 5], [1, 1, 2], [0, 2, 2], [2, 0, 3], [4, 3, 1]] {
                let (team, members) = set(pe, triplet);
                for collective in [
                    Collective::Sync,
                    Collective::Reduce(&OPERATORS[0]),
                    Collective::Fcollect,
                    Collective::Collect,
                    Collective::Alltoall,
                    Collective::Alltoalls { dst: 2, sst: 1 },
                    Collective::Broadcast(1),
                ] {
                    salt += 1;
                    let case = Case::of(collective, [1, 300][salt % 2], salt as u64);
                    let place = Place {
                        team,
                        members: &members,
                        source: 0,
                        dest: case.room(5),
                    };
                    if members.contains(&pe.me()) {
                        case.run(pe, place);
                        collectives::barrier(pe, team);
                    }
                    pe.sync_all();
                }
            }
        });
    }
}

/// The root of broadcasts does not wait for the others, which are late, but it does not run so far
/// ahead that an array is written while another PE still reads it.
#[test]
fn broadcasts_that_follow_each_other_alternate_between_two_arrays() {
    for shape in [Shape::of(&[5]), Shape::over_tcp(&[2, 2])] {
        let last = shape.n_pes() as i32;
        job(&shape.late(7), move |pe| {
            let sets = [[0, 0, last], [1, 0, last - 1]].map(|triplet| set(pe, triplet));
            let mut n_broadcasts = [0, 0];
            for turn in 0..60_usize {
                let which = turn / 3 % 2;
                let (team, members) = &sets[which];
                n_broadcasts[which] += 1;
                if !members.contains(&pe.me()) {
                    continue;
                }
                let case = Case::of(Collective::Broadcast(turn / 8), 20, turn as u64);
                // A source of its own for each turn: a receiver may still read the last one.
                let place = Place {
                    team: *team,
                    members,
                    source: 4096 * (4 + turn),
                    dest: 4096 * (2 * which + n_broadcasts[which] % 2),
                };
                case.run(pe, place);
                if turn % 8 == 7 {
                    collectives::sync(pe, *team);
                }
            }
            pe.sync_all();
        });
    }
}

/// A root that goes on to another set waits until its receivers have entered this broadcast, so
/// that they have read the result of the one before. PE 1 gets the data of PE 0 on each set.
#[test]
fn broadcasts_on_other_sets_alternate_between_two_arrays() {
    job(&Shape::of(&[4]).late(15), |pe| {
        let sets = [2, 3, 4].map(|size| set(pe, [0, 0, size]));
        for turn in 0..90_usize {
            let (team, members) = &sets[turn % 3];
            if !members.contains(&pe.me()) {
                continue;
            }
            let case = Case::of(Collective::Broadcast(0), 30, turn as u64);
            let place = Place {
                team: *team,
                members,
                source: 4096 * (2 + turn),
                dest: 4096 * (turn % 2),
            };
            let place = case.prepare(pe, place);
            case.call(pe, place);
            if pe.me() == 1 {
                case.check(pe, place);
            }
        }
        pe.sync_all();
    });
}

/// More sets than are kept: PE 20 is in all of them, and other PEs in some.
#[test]
fn more_sets_than_are_kept() {
    const N: i32 = 41;
    let mut triplets = Vec::new();
    for log_stride in 0..4 {
        for start in 0..=20 {
            let sizes = 1..=((N - 1 - start) >> log_stride) + 1;
            let has_20 = |size| (0..size).any(|i| start + (i << log_stride) == 20);
            triplets.extend(
                sizes
                    .filter(|&size| has_20(size))
                    .map(|size| [start, log_stride, size]),
            );
        }
    }
    assert!(triplets.len() > TEAM_SLOTS / 2 + 50, "{}", triplets.len());

    job(&Shape::of(&[N as u32]), move |pe| {
        for turn in 0..2_u64 {
            // The second time some of the sets were kept, and some were not.
            let skipped = if turn == 0 { 0 } else { triplets.len() - 70 };
            for (index, &triplet) in triplets.iter().enumerate().skip(skipped) {
                let (team, members) = set(pe, triplet);
                if !members.contains(&pe.me()) {
                    continue;
                }
                let place = Place {
                    team,
                    members: &members,
                    source: 1024 * index,
                    dest: 1024 * index + 512,
                };
                let salt = turn * 1000 + index as u64;
                Case::of(Collective::Reduce(&OPERATORS[0]), 2, salt).run(pe, place);
            }
            pe.sync_all();
        }
    });
}
