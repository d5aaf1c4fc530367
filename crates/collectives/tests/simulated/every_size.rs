//! Every plan at every size up to 130, around the powers of two, and at samples up to 1,100.

use crate::call::Call::{self, *};
use crate::simulator::{Team, run};

const SMALL: std::ops::RangeInclusive<u32> = 1..=130;
const LARGE: [u32; 16] =
    [150, 200, 255, 256, 257, 300, 333, 511, 512, 513, 777, 1000, 1023, 1024, 1025, 1100];

/// Calls of logarithmic plans, so that kinds follow one another in many ways.
fn mixed(n: u32) -> [Call; 18] {
    [
        AllReduce,
        AllReduce,
        ExclusiveScan,
        InclusiveScan,
        LongAllReduce,
        NextPiece,
        NextPiece,
        InclusiveScan,
        Words,
        Dissemination,
        AllReduce,
        Broadcast { root: n / 2 },
        Broadcast { root: n - 1 },
        ExclusiveScan,
        ExclusiveScan,
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
    for n in SMALL {
        check(n, &mixed(n), true, n.into());
    }
}

#[test]
fn mixed_programs_survive_adversaries_at_small_sizes() {
    for n in SMALL {
        for seed in 0..4 {
            check(n, &mixed(n), false, seed);
        }
    }
}

#[test]
fn mixed_programs_survive_an_adversary_at_large_sizes() {
    for n in LARGE {
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
    for n in SMALL {
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
fn a_broadcast_works_from_every_root() {
    for n in 1..=40 {
        for root in 0..n {
            check(n, &[Broadcast { root }], true, root.into());
        }
    }
}

#[test]
fn one_copy_of_the_landings_is_enough_for_scans() {
    let program = [InclusiveScan, ExclusiveScan, ExclusiveScan, InclusiveScan];
    for n in SMALL {
        let team = Team {
            n,
            program: &program,
            plan: &|call, me| program[call].plan(n, me),
            landing_copies: 1,
            clocks: true,
        };
        assert_eq!(team.run(n.into()).err(), None);
    }
}
