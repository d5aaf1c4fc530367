//! Collectives among several PEs in one process, each a value in a thread of its own. They run the
//! routines of the standard, down to the copies and flags in memory that they share.

#![allow(unsafe_code)]

use crate::api::team;
use crate::coll::collectives::{self, ElementCount, TeamOrActiveSet};
use crate::coll::combine::Combine;
use crate::own_pe::OwnPe;
use crate::two_jobs::{TestJob, run_job};
use rushmem_pe::call::{Call, call};
use rushmem_pe::job::handle::TeamHandle;
use rushmem_transport::Pe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const CALL: Call = call!("test");
const N: u32 = 4;
static SUM: Combine = Combine::sum::<i64>();

/// The element `index` of the heap of a PE, as the program would have it from `shmem_malloc`.
fn element(pe: &OwnPe, index: usize) -> *mut i64 {
    pe.job().memory.heap().cast::<i64>().wrapping_add(index)
}

fn words(nelems: usize) -> ElementCount {
    ElementCount::of::<i64>(nelems)
}

fn store(pe: &OwnPe, index: usize, value: i64) {
    // SAFETY: the heap has more elements than a test uses, and no PE accesses this one meanwhile.
    unsafe { element(pe, index).write_volatile(value) }
}

fn load(pe: &OwnPe, index: usize) -> i64 {
    // SAFETY: as in `store`.
    unsafe { element(pe, index).read_volatile() }
}

fn sum(pe: &'static OwnPe, team: TeamHandle, dest: usize, source: usize, nelems: usize) {
    let [dest, source] = [dest, source].map(|index| element(pe, index).cast::<u8>());
    // SAFETY: the elements are in the heaps of all PEs.
    unsafe { collectives::reduce((pe, CALL), team.into(), dest, source, nelems, &SUM) };
}

/// No PE leaves a barrier before all have entered it.
#[test]
fn a_barrier_of_four_pes() {
    let entered = Arc::new(AtomicU32::new(0));
    run_job(&TestJob::of(N), move |pe| {
        for turn in 1..=100 {
            entered.fetch_add(1, Relaxed);
            collectives::barrier_all((pe, CALL));
            assert!(entered.load(Relaxed) >= N * turn, "turn {turn}");
            collectives::sync_all((pe, CALL));
        }
    });
}

/// A split, and reductions of many sizes on its team and on the world, by whichever algorithms the
/// table chooses.
#[test]
fn a_split_and_reductions_of_four_pes() {
    let results = run_job(&TestJob::of(N), |pe| {
        let me = i64::from(pe.job().me.0);
        let even = team::split_strided((pe, CALL), TeamHandle::WORLD, 0, 2, 2, Default::default())
            .expect("a slot is free");
        let is_member = me % 2 == 0;
        assert_eq!(even != TeamHandle::INVALID, is_member);

        for nelems in [1, 2, 7, 64, 1000, 8000] {
            for i in 0..nelems {
                store(pe, i, me + 1 + i as i64);
            }
            sum(pe, TeamHandle::WORLD, 10_000, 0, nelems);
            for i in 0..nelems {
                assert_eq!(load(pe, 10_000 + i), 10 + 4 * i as i64, "{nelems} elements");
            }
            if is_member {
                sum(pe, even, 20_000, 0, nelems);
                for i in 0..nelems {
                    assert_eq!(load(pe, 20_000 + i), 4 + 2 * i as i64, "{nelems} elements");
                }
            }
            collectives::sync_all((pe, CALL));
        }

        let members = team::n_pes((pe, CALL), even);
        if is_member {
            team::destroy((pe, CALL), even);
        }
        members
    });
    assert_eq!(results, [2, -1, 2, -1]);
}

#[test]
fn a_broadcast_and_a_collect_of_four_pes() {
    run_job(&TestJob::of(N), |pe| {
        let world = TeamOrActiveSet::Team(TeamHandle::WORLD);
        let me = pe.job().me;
        for root in 0..N {
            store(
                pe,
                0,
                if me == Pe(root) {
                    70 + i64::from(root)
                } else {
                    0
                },
            );
            let [dest, source] = [1, 0].map(|index| element(pe, index).cast::<u8>());
            // SAFETY: the elements are in the heaps of all PEs.
            unsafe {
                collectives::broadcast((pe, CALL), world, dest, source, words(1), root as i32)
            };
            assert_eq!(load(pe, 1), 70 + i64::from(root));
            collectives::sync_all((pe, CALL));
        }

        store(pe, 0, i64::from(me.0));
        let [dest, source] = [8, 0].map(|index| element(pe, index).cast::<u8>());
        // SAFETY: the elements are in the heaps of all PEs.
        unsafe { collectives::fcollect((pe, CALL), world, dest, source, words(1)) };
        let all: Vec<i64> = (0..N as usize).map(|i| load(pe, 8 + i)).collect();
        assert_eq!(all, [0, 1, 2, 3]);
    });
}

/// Two jobs in one process share nothing.
#[test]
fn two_jobs_at_once() {
    let other = std::thread::spawn(|| {
        run_job(&TestJob::of(3), |pe| {
            for _ in 0..50 {
                collectives::barrier_all((pe, CALL));
            }
            pe.job().n_pes
        })
    });
    let own = run_job(&TestJob::of(N), |pe| {
        for _ in 0..50 {
            collectives::barrier_all((pe, CALL));
        }
        pe.job().n_pes
    });
    assert_eq!(own, [N; 4]);
    assert_eq!(other.join().expect("its PEs end"), [3; 3]);
}

/// Each algorithm has the right results, also at sizes at which it is never chosen: the same jobs as
/// those of shmem-c/tests/jobs/algorithms.rs, except those over a network.
#[test]
fn forced_algorithms_are_right() {
    let forced = [
        (
            "reduce",
            &[
                "recursive_doubling",
                "rabenseifner",
                "ring",
                "direct",
                "central",
                "two_level",
            ][..],
        ),
        (
            "sync",
            &["dissemination", "binomial", "central", "two_level"],
        ),
        (
            "collect",
            &[
                "lines",
                "bruck",
                "recursive_doubling",
                "ring",
                "neighbor_exchange",
            ],
        ),
        ("broadcast", &["binomial", "scatter_all_gather"]),
        ("alltoall", &["lines", "pairwise", "bruck"]),
        ("scan", &["recursive_doubling", "direct"]),
    ];
    for (operation, algorithms) in forced {
        for algorithm in algorithms {
            for nodes in [vec![5], vec![3, 2], vec![2]] {
                let job = TestJob {
                    n_pes: nodes.iter().sum(),
                    nodes,
                    rows: format!("{operation} 0+ any any any any {algorithm}"),
                    has_threads_somewhere: false,
                    is_over_tcp: false,
                };
                run_job(&job, check_collectives);
            }
        }
    }
}

/// Makes each collective with several sizes, and checks the results.
fn check_collectives(pe: &'static OwnPe) {
    let world = TeamOrActiveSet::Team(TeamHandle::WORLD);
    let by = (pe, CALL);
    let n = pe.job().n_pes as usize;
    let me = pe.job().me.index();
    let at = |index| element(pe, index).cast::<u8>();
    const DEST: usize = 40_000;

    for nelems in [1, 3, 64, 1000, 5000] {
        for i in 0..nelems * n {
            store(pe, i, (1000 * me + i) as i64);
        }
        collectives::barrier_all(by);
        // SAFETY: the elements are in the heaps of all PEs.
        unsafe { collectives::reduce(by, world, at(DEST), at(0), nelems, &SUM) };
        for i in 0..nelems {
            let expected = 1000 * n * (n - 1) / 2 + n * i;
            assert_eq!(
                load(pe, DEST + i),
                expected as i64,
                "element {i} of {nelems}"
            );
        }
        collectives::sync_all(by);

        // SAFETY: as above.
        unsafe { collectives::inscan(by, world, at(DEST), at(0), nelems, &SUM) };
        for i in 0..nelems {
            let expected = 1000 * me * (me + 1) / 2 + (me + 1) * i;
            assert_eq!(
                load(pe, DEST + i),
                expected as i64,
                "element {i} of {nelems}"
            );
        }
        collectives::sync_all(by);

        let root = nelems % n;
        // SAFETY: as above.
        unsafe { collectives::broadcast(by, world, at(DEST), at(0), words(nelems), root as i32) };
        for i in 0..nelems {
            assert_eq!(load(pe, DEST + i), (1000 * root + i) as i64);
        }
        collectives::sync_all(by);

        // SAFETY: as above.
        unsafe { collectives::fcollect(by, world, at(DEST), at(0), words(nelems)) };
        for i in 0..n * nelems {
            let expected = 1000 * (i / nelems) + i % nelems;
            assert_eq!(load(pe, DEST + i), expected as i64);
        }
        collectives::sync_all(by);

        // SAFETY: as above.
        unsafe { collectives::alltoall(by, world, at(DEST), at(0), words(nelems)) };
        for i in 0..n * nelems {
            let expected = 1000 * (i / nelems) + me * nelems + i % nelems;
            assert_eq!(load(pe, DEST + i), expected as i64);
        }
        collectives::sync_all(by);
    }
}

/// The same over loopback, by the provider of TCP: nodes of one PE, and of several.
#[test]
fn collectives_over_tcp_are_right() {
    for nodes in [vec![1, 1], vec![1, 1, 1], vec![3, 2]] {
        let job = TestJob {
            n_pes: nodes.iter().sum(),
            nodes,
            is_over_tcp: true,
            ..TestJob::of(0)
        };
        run_job(&job, check_collectives);
    }
}

/// Draws numbers, the same on all PEs for the same seed.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Collectives that follow each other without a sync between them, on teams that come and go, while
/// each PE is late in its own way.
#[test]
fn drawn_programs_are_right() {
    for (seed, nodes, is_over_tcp) in [
        (1, vec![4], false),
        (2, vec![5], false),
        (3, vec![2, 2], false),
        (4, vec![1, 1, 1], true),
        (5, vec![2, 1], true),
    ] {
        for rows in [
            "",
            "reduce 0+ any any any any recursive_doubling",
            "reduce 0+ any any any any central",
        ] {
            let job = TestJob {
                n_pes: nodes.iter().sum(),
                nodes: nodes.clone(),
                rows: rows.to_owned(),
                is_over_tcp,
                has_threads_somewhere: false,
            };
            run_job(&job, move |pe| drawn_program(pe, seed));
        }
    }
}

fn drawn_program(pe: &'static OwnPe, seed: u64) {
    let by = (pe, CALL);
    let me = pe.job().me.index();
    let n = pe.job().n_pes as usize;
    let mut drawn = Drawn(seed);
    let mut late = Drawn(seed * 1000 + me as u64);
    let at = |index| element(pe, index).cast::<u8>();

    for step in 0..300_usize {
        match late.below(12) {
            0 => std::thread::sleep(std::time::Duration::from_micros(200)),
            1..4 => std::thread::yield_now(),
            _ => {}
        }
        // Each step has arrays of its own, so that a PE may be ahead of the others.
        let base = step % 50 * 2500;
        let nelems = [1, 2, 3, 30, 400][drawn.below(5) as usize];
        let (source, dest) = (base, base + 400);
        if step % 50 == 0 {
            collectives::barrier_all(by);
        }
        for i in 0..nelems {
            store(pe, source + i, (step + 1000 * me + i) as i64);
        }
        let root = drawn.below(n as u64) as usize;
        let what = drawn.below(6);
        match what {
            0 | 1 => {
                sum(pe, TeamHandle::WORLD, dest, source, nelems);
                for i in 0..nelems {
                    let expected = n * step + 1000 * n * (n - 1) / 2 + n * i;
                    assert_eq!(load(pe, dest + i), expected as i64, "step {step}");
                }
            }
            2 => {
                // SAFETY: the elements are in the heaps of all PEs.
                unsafe {
                    let world = TeamHandle::WORLD.into();
                    collectives::fcollect(by, world, at(dest), at(source), words(nelems.min(30)))
                };
                for i in 0..n * nelems.min(30) {
                    let member = i / nelems.min(30);
                    let expected = step + 1000 * member + i % nelems.min(30);
                    assert_eq!(load(pe, dest + i), expected as i64, "step {step}");
                }
            }
            3 => collectives::sync_all(by),
            4 => {
                // SAFETY: the elements are in the heaps of all PEs.
                unsafe {
                    let world = TeamHandle::WORLD.into();
                    collectives::broadcast(
                        by,
                        world,
                        at(dest),
                        at(source),
                        words(nelems),
                        root as i32,
                    )
                };
                for i in 0..nelems {
                    assert_eq!(
                        load(pe, dest + i),
                        (step + 1000 * root + i) as i64,
                        "step {step}"
                    );
                }
            }
            _ => {
                let start = drawn.below(2) as i32;
                let size = n as i32 - start;
                let team =
                    team::split_strided(by, TeamHandle::WORLD, start, 1, size, Default::default());
                let team = team.expect("a slot is free");
                if team != TeamHandle::INVALID {
                    for turn in 0..3 {
                        sum(pe, team, dest, source, nelems);
                        let size = size as usize;
                        let members: usize = (start as usize..n).sum();
                        for i in 0..nelems {
                            let expected = size * step + 1000 * members + size * i;
                            assert_eq!(load(pe, dest + i), expected as i64, "step {step} {turn}");
                        }
                    }
                    team::destroy(by, team);
                }
            }
        }
    }
    collectives::barrier_all(by);
}
