//! Every algorithm of the table has the right results in jobs of all shapes, also with sizes at
//! which the table would not choose it. The algorithms are those that the table itself lists.

use super::kit::{Shape, TestPe, WORLD, job};
use super::model::{Case, Collective, OPERATORS, Place};
use crate::api::team::{TeamConfig, destroy, split_strided};
use crate::coll::collectives::{barrier_all, sync_all};
use crate::coll::combine::Combine;
use crate::coll::private::{ReductionKind, combine};
use rushmem_collectives::choice::Table;
use rushmem_pe::job::handle::TeamHandle;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Returns the collectives that an operation of the table decides.
fn collectives_of(operation: &str) -> Vec<Collective> {
    let reductions = || OPERATORS.iter().map(Collective::Reduce);
    match operation {
        "reduce" => reductions().collect(),
        "reduce_to" => OPERATORS
            .iter()
            .zip([0, 3].into_iter().cycle())
            .map(|(operator, root)| Collective::ReduceTo(operator, root))
            .collect(),
        "reduce_scatter" => OPERATORS.iter().map(Collective::ReduceScatter).collect(),
        "broadcast" => vec![Collective::Broadcast(0), Collective::Broadcast(3)],
        "gather" => vec![Collective::Gather(0), Collective::Gather(3)],
        "scatter" => vec![Collective::Scatter(0), Collective::Scatter(3)],
        "collect" => vec![Collective::Collect, Collective::Fcollect],
        "alltoall" => vec![Collective::Alltoall, Collective::Alltoallv],
        "scan" => OPERATORS
            .iter()
            .take(4)
            .flat_map(|operator| [Collective::Inscan(operator), Collective::Exscan(operator)])
            .collect(),
        // Those that sync, and any operation that is new.
        _ => vec![
            Collective::Sync,
            Collective::Reduce(&OPERATORS[0]),
            Collective::Inscan(&OPERATORS[0]),
            Collective::Collect,
            Collective::Fcollect,
            Collective::Alltoall,
            Collective::Alltoalls { dst: 3, sst: 2 },
            Collective::Alltoalls { dst: 1, sst: 1 },
            Collective::Alltoallv,
        ],
    }
}

/// Makes each of the collectives on the world with each number of elements, both apart and in
/// place.
fn run_all(pe: TestPe, collectives: &[Collective], sizes: &[usize]) {
    let members: Vec<usize> = (0..pe.n()).collect();
    let mut salt = 0;
    for &collective in collectives {
        for &nelems in sizes {
            for is_in_place in [false, true] {
                salt += 1;
                let case = Case {
                    elem_bytes: [1, 2, 4, 8][salt % 4],
                    is_in_place,
                    ..Case::of(collective, nelems, salt as u64)
                };
                let place = Place {
                    team: WORLD,
                    members: &members,
                    source: 0,
                    dest: case.room(pe.n()),
                };
                case.run(pe, place);
                pe.sync_all();
            }
        }
    }
}

/// Runs a job of each shape with each algorithm of each operation.
fn force_each_algorithm(shapes: &[Shape], sizes: &'static [usize]) {
    for operation in Table::OPERATIONS {
        let algorithms = Table::algorithms(operation);
        assert!(!algorithms.is_empty(), "{operation}");
        for algorithm in algorithms {
            let rows = format!("{operation} 0+ any any any any {algorithm}");
            for shape in shapes {
                let shape = shape.clone().rows(&rows);
                job(&shape, move |pe| {
                    run_all(pe, &collectives_of(operation), sizes);
                });
            }
        }
    }
}

#[test]
fn forced_algorithms_are_right() {
    let shapes = [
        Shape::of(&[1]),
        Shape::of(&[2]),
        Shape::of(&[5]),
        Shape::of(&[3, 2]),
        Shape::of(&[4]).threads(),
    ];
    force_each_algorithm(&shapes, &[0, 1, 3, 64, 1030]);
}

#[test]
fn forced_algorithms_are_right_over_tcp() {
    let shapes = [
        Shape::over_tcp(&[1, 1]),
        Shape::over_tcp(&[1, 1, 1]),
        Shape::over_tcp(&[3, 2]),
        Shape::over_tcp(&[2, 2]),
    ];
    force_each_algorithm(&shapes, &[1, 40]);
}

#[test]
fn forced_algorithms_are_right_with_many_pes() {
    force_each_algorithm(&[Shape::of(&[12, 9])], &[1, 9]);
    if testkit::every_size() {
        let shapes = [&[64][..], &[16, 16, 16, 16], &[33], &[1; 40]].map(Shape::of);
        force_each_algorithm(&shapes, &[1, 9]);
    }
}

/// The algorithms that the table chooses by itself, with vectors of one and of many pieces.
#[test]
fn chosen_algorithms_are_right() {
    let shapes = [
        Shape::of(&[64]),
        Shape::of(&[7, 9]),
        Shape::of(&[5]),
        Shape::over_tcp(&[1, 1]),
        Shape::over_tcp(&[1, 1, 1]),
        Shape::over_tcp(&[2, 2]),
    ];
    for shape in shapes {
        job(&shape, |pe| {
            for operation in Table::OPERATIONS {
                let mut collectives = collectives_of(operation);
                collectives.truncate(2);
                let sizes: &[usize] = if pe.n() > 7 { &[3] } else { &[1, 700, 9000] };
                run_all(pe, &collectives, sizes);
            }
        });
    }
}

/// Vectors that pass through receive buffers in several pieces, on a team of some PEs and on the
/// world.
#[test]
fn long_vectors_are_right_in_pieces() {
    let rows = "reduce 0+ any any any any recursive_doubling
                reduce_to 0+ any any any any binomial
                scan 0+ any any any any recursive_doubling";
    for (seed, nodes) in [(1, &[3][..]), (2, &[2, 2]), (3, &[5])] {
        job(&Shape::of(nodes).rows(rows).late(seed), |pe| {
            let some: Vec<usize> = (1..pe.n()).collect();
            let all: Vec<usize> = (0..pe.n()).collect();
            let size = some.len() as i32;
            let team = split_strided(pe, TeamHandle::WORLD, 1, 1, size, TeamConfig::default());
            let team = team.expect("a slot is free");

            for turn in 0..9 {
                let collective = [
                    Collective::Reduce(&OPERATORS[0]),
                    Collective::Inscan(&OPERATORS[0]),
                    Collective::ReduceTo(&OPERATORS[0], turn),
                ][turn % 3];
                for (team, members) in [(team.into(), &some), (WORLD, &all)] {
                    let case = Case::of(collective, 14_000 - turn, turn as u64);
                    let place = Place {
                        team,
                        members,
                        source: 0,
                        dest: 2 << 20,
                    };
                    if members.contains(&pe.me()) {
                        case.run(pe, place);
                    }
                    pe.sync_all();
                }
            }
            destroy(pe, team);
        });
    }
}

/// Teams with members in common share receive buffers, and a PE may still be in a collective of one
/// when others are in the next one of another.
#[test]
fn teams_in_turn_do_not_disturb_each_other() {
    static SUM: Combine = Combine::sum::<u32>();
    let in_rounds = "alltoall 0+ any any any any bruck
                     collect 0+ any any any any bruck
                     reduce 0+ any any any any recursive_doubling
                     reduce_to 0+ any any any any binomial
                     reduce_scatter 0+ any any any any recursive_doubling
                     scan 0+ any any any any recursive_doubling";
    let by_exchanges = "alltoall 0+ any any any any pairwise
                        collect 0+ any any any any bruck
                        reduce_to 0+ any any any any gather
                        reduce_to 0+ any any any any binomial
                        reduce_scatter 0+ any any any any alltoall
                        scan 0+ any any any any recursive_doubling";
    let by_counters = "alltoall 0+ any any any any central
                       collect 0+ any any any any central
                       reduce 0+ any any any any central
                       reduce_to 0+ any any any any central
                       reduce_scatter 0+ any any any any central
                       scan 0+ any any any any central";
    for (seed, nodes, rows) in [
        (1, &[4][..], in_rounds),
        (2, &[4], in_rounds),
        (3, &[2, 2], in_rounds),
        (4, &[4], by_counters),
        (5, &[4], by_counters),
        (6, &[4], by_exchanges),
        (7, &[4], by_exchanges),
        (8, &[2, 2], by_exchanges),
    ] {
        job(&Shape::of(nodes).rows(rows).late(seed), |pe| {
            let mut teams = Vec::new();
            let parts = [
                [0, 1, 3],
                [1, 1, 3],
                [3, -1, 3],
                [0, 3, 2],
                [2, -2, 2],
                // All PEs, whose collectives use the receive buffers of the job.
                [0, 1, 4],
            ];
            for [start, stride, size] in parts {
                let config = TeamConfig::default();
                let team = split_strided(pe, TeamHandle::WORLD, start, stride, size, config);
                let member = |i| (start + i * stride) as usize;
                let members: Vec<usize> = (0..size).map(member).collect();
                teams.push((team.expect("a slot is free"), members));
            }
            let collectives = [
                Collective::Alltoall,
                Collective::Reduce(&OPERATORS[0]),
                Collective::ReduceTo(&OPERATORS[0], 1),
                Collective::Alltoall,
                Collective::Collect,
                Collective::ReduceScatter(&OPERATORS[0]),
                Collective::Gather(2),
                Collective::Scatter(0),
                Collective::Inscan(&OPERATORS[0]),
                Collective::Alltoallv,
                Collective::Exscan(&OPERATORS[0]),
            ];
            let n_collectives = collectives.len();
            for turn in 0..200 {
                let (team, members) = &teams[turn * 7 % teams.len()];
                if members.contains(&pe.me()) {
                    let which = turn * (turn / n_collectives) % n_collectives;
                    let case = Case::of(collectives[which], 9, turn as u64);
                    let place = Place {
                        team: (*team).into(),
                        members,
                        source: 4096 * turn,
                        dest: 4096 * turn + 2048,
                    };
                    case.run(pe, place);

                    // By counters, all teams share the areas of such short contributions.
                    let of = |pe: usize| (pe + turn) as u32;
                    let mut sum = of(pe.me()).to_ne_bytes();
                    combine(pe, *team, &mut sum, &SUM, ReductionKind::AllReduce);
                    let expected: u32 = members.iter().copied().map(of).sum();
                    assert_eq!(u32::from_ne_bytes(sum), expected, "turn {turn}");
                }
            }
            pe.sync_all();
            for (team, _) in teams {
                destroy(pe, team);
            }
        });
    }
}

/// No PE leaves a barrier or a sync before all have entered it.
#[test]
fn no_pe_leaves_a_barrier_early() {
    let shapes = [
        Shape::of(&[4]),
        Shape::of(&[3, 2]),
        Shape::of(&[64]),
        Shape::over_tcp(&[2, 2]),
    ];
    for shape in shapes {
        let n_pes = shape.n_pes();
        let entered = Arc::new(AtomicU32::new(0));
        let algorithms = Table::algorithms("sync");
        for (round, algorithm) in (0..).zip(algorithms) {
            let entered = entered.clone();
            let shape = shape.clone().late(round);
            let shape = shape.rows(&format!("sync 0+ any any any any {algorithm}"));
            let turns = if n_pes > 8 { 3 } else { 40 };
            job(&shape, move |pe| {
                for turn in 1..=turns {
                    let all = n_pes * (2 * (round as u32 * turns + turn) - 1);
                    entered.fetch_add(1, SeqCst);
                    barrier_all(pe);
                    assert!(entered.load(SeqCst) >= all, "turn {turn} of {algorithm}");
                    entered.fetch_add(1, SeqCst);
                    sync_all(pe);
                    assert!(entered.load(SeqCst) >= all + n_pes, "{turn} of {algorithm}");
                }
            });
        }
    }
}
