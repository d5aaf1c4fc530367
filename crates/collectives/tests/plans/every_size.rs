//! Runs programs of most plans for team sizes up to 130, and of many for some sizes up to 1,100.
//! Unless every size is asked for, only some of those up to 130 are used, among them those around
//! the powers of two.

use crate::call::Call::{self, *};
use crate::call::{Gathering, Reduction};
use crate::simulator::{Team, run};
use testkit::every_size;

const LARGE: [u32; 16] = [
    150, 200, 255, 256, 257, 300, 333, 511, 512, 513, 777, 1000, 1023, 1024, 1025, 1100,
];

/// Returns the sizes up to 130: all with `every_size`, otherwise those up to 33, those around the
/// powers of two, and multiples of 10.
fn small() -> impl Iterator<Item = u32> {
    let is_special =
        |n: u32| n <= 33 || n.is_multiple_of(10) || (n - 1..=n + 1).any(|n| n.is_power_of_two());
    (1..=130).filter(move |&n| every_size() || is_special(n))
}

/// Returns the sizes up to 1,100: all of [`LARGE`] with `every_size`, otherwise some.
fn large() -> impl Iterator<Item = u32> {
    LARGE
        .into_iter()
        .filter(|n| every_size() || [257, 512, 777].contains(n))
}

/// Returns calls with logarithmic plans, such that different kinds of calls follow one another.
fn mixed(n: u32) -> [Call; 32] {
    [
        AllReduce,
        AllReduce,
        ExclusiveScan,
        InclusiveScan,
        LongAllReduce,
        NextPiece,
        NextPiece,
        InclusiveScan,
        NextScanPiece,
        NextScanPiece,
        OwnInclusiveScan,
        AllReduce,
        OwnExclusiveScan,
        OwnInclusiveScan,
        Words,
        Dissemination,
        AllReduce,
        Broadcast { root: n / 2 },
        ReduceTo { root: n / 2 },
        ReduceTo { root: n - 1 },
        DirectGatherTo { root: n - 1 },
        DirectScatter { root: n / 2 },
        Broadcast { root: n - 1 },
        ReduceTo { root: 0 },
        ExclusiveScan,
        ExclusiveScan,
        ReduceTo { root: n / 3 },
        GatherTo { root: n / 3 },
        Scatter { root: n - 1 },
        GatherSync,
        AllReduce,
        AllReduce,
    ]
}

fn check(n: u32, program: &[Call], clocks: bool, seed: u64) {
    if let Err(fault) = run(n, program, clocks, seed) {
        panic!("{fault} (seed {seed}, clocks {clocks})");
    }
}

#[test]
fn mixed_programs_are_free_of_races_at_small_sizes() {
    for n in small() {
        check(n, &mixed(n), true, n.into());
    }
}

#[test]
fn mixed_programs_survive_adversaries_at_small_sizes() {
    for n in small() {
        for seed in 0..4 {
            check(n, &mixed(n), false, seed);
        }
    }
}

#[test]
fn mixed_programs_survive_an_adversary_at_large_sizes() {
    for n in large() {
        check(n, &mixed(n), false, 0);
    }
}

#[test]
fn mixed_programs_are_free_of_races_around_a_large_power_of_two() {
    for n in [511, 512, 513] {
        check(n, &mixed(n), true, 1);
    }
}

#[test]
fn gathers_between_reductions_work_at_small_sizes() {
    for n in small() {
        let program = [
            AllReduce,
            Bruck,
            AllToAll,
            LongAllReduce,
            Ring,
            ExclusiveScan,
            AllToAll,
            Words,
            AllToAll,
        ];
        check(n, &program, n <= 48, n.into());
    }
}

#[test]
fn lines_are_not_overwritten_unread() {
    for n in 1..=16 {
        let gather = Call::Gather(Gathering::Lines);
        let program = [
            gather,
            AllToAllInLines,
            AllToAllInLines,
            gather,
            AllReduce,
            Broadcast { root: n - 1 },
            gather,
            Dissemination,
            AllToAllInLines,
            gather,
        ];
        for seed in 0..16 {
            check(n, &program, true, seed);
            check(n, &program, false, seed);
        }
    }
}

/// Returns calls on vectors and other calls, in one order and then in the reverse order.
fn vectors(n: u32) -> Vec<Call> {
    let mut calls = Vec::new();
    for by in [
        Reduction::Rabenseifner,
        Reduction::TwoLevel { p: 2, lanes: 2 },
        Reduction::TwoLevel { p: 3, lanes: 1 },
        Reduction::TwoLevel { p: 8, lanes: 5 },
    ] {
        calls.push(Call::reduce(by, 3));
        calls.push(Call::reduce_in_place(by, n + 5));
    }

    let own_piece = Reduction::TwoLevelPiece {
        p: 3,
        shared: false,
    };
    let shared_piece = Reduction::TwoLevelPiece { p: 4, shared: true };
    calls.extend([
        LongBroadcast {
            root: n / 2,
            parts: 6,
        },
        TwoLevelSync { p: 2 },
        TwoLevelShort { p: 5 },
        TwoLevelSync { p: 16 },
        Call::reduce(own_piece, 1),
        Call::reduce_in_place(shared_piece, 1),
        AllReduce,
        TwoLevelShort { p: 2 },
        InclusiveScan,
        Gather(Gathering::RecursiveDoubling),
        LongAllReduce,
    ]);
    // A direct scan of n parts makes n^2 accesses.
    if n <= 48 {
        calls.push(DirectScan {
            exclusive: true,
            parts: n + 5,
            in_place: true,
        });
    }
    calls.retain(|call| call.fits(n));

    let reversed: Vec<Call> = calls.iter().rev().copied().collect();
    calls.extend(reversed);
    calls
}

#[test]
fn vectors_are_free_of_races_at_small_sizes() {
    for n in small() {
        check(n, &vectors(n), true, n.into());
    }
}

#[test]
fn vectors_survive_adversaries() {
    for n in small().chain([255, 256, 257, 512]) {
        check(n, &vectors(n), false, n.into());
    }
}

#[test]
fn what_takes_linear_plans_works_at_small_sizes() {
    for n in small() {
        let program = [
            Call::reduce(Reduction::Ring, 3),
            LongBroadcast {
                root: n / 3,
                parts: 5,
            },
            Call::reduce_in_place(Reduction::Ring, n + 5),
            BruckAllToAll,
            LongBroadcast {
                root: n - 1,
                parts: n + 5,
            },
            Gather(Gathering::NeighborExchange),
            BruckAllToAll,
            Gather(Gathering::Pairwise),
            ExclusiveScan,
            BruckAllToAll,
        ];
        let program: Vec<Call> = program.into_iter().filter(|call| call.fits(n)).collect();
        check(n, &program, n <= 48, n.into());
    }
}

fn gathers(n: u32) {
    check(n, &[Bruck], false, 1);
    check(n, &[Ring], false, 2);
    check(n, &[AllToAll], false, 3);
}

#[test]
fn gathers_work_around_a_power_of_two() {
    for n in [255, 256, 257] {
        gathers(n);
    }
}

#[test]
#[ignore = "a million messages; part of `cargo xtask test --full`"]
fn gathers_work_at_large_sizes() {
    gathers(1025);
    for n in LARGE {
        check(n, &[Bruck], false, 4);
    }
}

#[test]
fn every_member_can_be_the_root() {
    for n in 1..=40 {
        for root in 0..n {
            check(n, &[Broadcast { root }], true, root.into());
            check(n, &[LongBroadcast { root, parts: n }], true, root.into());
            for call in [GatherTo { root }, Scatter { root }] {
                check(n, &[call], true, root.into());
            }
            for call in [DirectGatherTo { root }, DirectScatter { root }] {
                check(n, &[call], true, root.into());
            }
            check(n, &[ReduceTo { root }], true, root.into());
            check(n, &[DirectReduceTo { root, parts: 5 }], true, root.into());
            check(n, &[CentralReduceTo { root, parts: 5 }], true, root.into());
        }
    }
}

#[test]
fn one_copy_of_the_receive_buffers_is_enough_where_there_are_credits() {
    let program = [ReduceTo { root: 0 }; 3];
    for n in small() {
        let team = Team {
            n,
            program: &program,
            plan: &|call, me| program[call].plan(n, me),
            receive_buffer_copies: 1,
            clocks: true,
        };
        assert_eq!(team.run(n.into()).err(), None);
    }
}
