//! Jobs of 512 and of 100,000 PEs: the text stays short, and is made within a time limit.

use crate::jobs::{Explanation, TestJob, strided, team, world};
use rushmem_explain::snapshot::ProcessState;
use rushmem_explain::status::{AwaitedObject, Stage};
use std::time::{Duration, Instant};

/// The time limit of an explanation: far more than the second or two that it needs, and less than
/// the minutes of an algorithm that grows with the square of the PEs.
const LIMIT: Duration = Duration::from_secs(60);

/// The number of PEs of a large job.
const LARGE: u32 = 100_000;

fn explained(job: &TestJob) -> Explanation {
    let start = Instant::now();
    let explanation = job.explained(job.n_pes());
    assert!(start.elapsed() < LIMIT, "it took {:?}", start.elapsed());
    explanation
}

#[test]
fn the_text_folds_512_pes() {
    let others = (0..512).filter(|pe| ![100, 200, 300].contains(pe));
    let job = TestJob::new(512).barrier_all(others).wait_until(200, 7);
    let job = job.process([300], ProcessState::Sleeps);
    let Explanation { table, conclusion } = explained(&job);
    let others = "PEs 0-99, 101-199, 201-299 and 301-511";
    let expected = format!(
        "PE 300 sleeps outside the library. {others} wait for PE 300 in shmem_barrier_all, the \
         41st collective on SHMEM_TEAM_WORLD, for 12 s. PE 100 computes (99 % of a CPU). {others} \
         wait for PE 100 too. PE 200 has waited 31 s in shmem_long_wait_until on flag[2] >= 8, \
         which is 7. PEs 100 and 300 can still write this word. {others} wait for PE 200 too. Run"
    );
    assert!(conclusion.starts_with(&expected), "{conclusion}");
    assert_eq!(table, "", "all PEs are described");

    let job = TestJob::new(512)
        .wait_until(200, 10)
        .process([300], ProcessState::Sleeps);
    let table = explained(&job).table;
    let expected = "510 PEs (0-199, 201-299, 301-511) compute (99 % of a CPU each)\n\
                    PE 300 sleeps outside the library";
    assert_eq!(table, expected);
}

#[test]
fn a_table_of_many_different_words_is_folded() {
    let job = (1..512).fold(TestJob::new(512), |job, pe| {
        job.wait_until(pe, u64::from(pe % 100))
    });
    let Explanation { table, conclusion } = explained(&job);
    assert!(
        table.contains("in shmem_long_wait_until, for 31 s"),
        "{table}"
    );
    assert!(conclusion.contains(
        "PEs 1, 101, 201, ..., 501 have waited 31 s in shmem_long_wait_until on flag[2] >= 8, which is 1."
    ));
    // Values of 8 and more satisfy the condition. The PEs with the values 1 to 3 are listed before,
    // so those with 0 and 4 to 7 are left.
    assert!(
        conclusion.contains("PEs 4-7, 100, 104-107, "),
        "{conclusion}"
    );
    assert!(
        conclusion.contains(" are in other situations."),
        "{conclusion}"
    );
}

#[test]
fn a_table_of_many_different_calls_ends_with_their_number() {
    let calls = |job: TestJob, pe: u32| {
        job.wait([pe], &format!("shmem_call{}", pe % 40), 3.0, |_| {
            AwaitedObject::Message { from: 0 }
        })
    };
    let table = explained(&(1..512).fold(TestJob::new(512), calls)).table;
    assert_eq!(table.lines().count(), 25);
    assert!(table.ends_with("in 16 other situations"), "{table}");
}

#[test]
fn one_of_100_000_pes_is_missing() {
    let others = (0..LARGE).filter(|pe| *pe != 77_777);
    let conclusion = explained(
        &TestJob::new(LARGE)
            .barrier_all(others)
            .wait_until(77_777, 7),
    )
    .conclusion;
    assert!(conclusion.contains("Deadlock: PE 77777 has waited 31 s in shmem_long_wait_until"));
    assert!(
        conclusion.contains("PEs 0-77776 and 77778-99999 wait for PE 77777 in shmem_barrier_all")
    );
}

#[test]
fn rows_of_100_000_pes_wait_for_their_first_members() {
    let row = |pe: u32| {
        team(
            "row",
            u64::from(pe / 10),
            strided(pe / 10 * 10, 1, 10),
            6,
            None,
        )
    };
    let others = (0..LARGE).filter(|pe| pe % 10 != 0);
    let job = TestJob::new(LARGE).wait(others, "shmem_team_sync", 5.0, row);
    let conclusion = explained(&job).conclusion;
    assert!(
        conclusion.contains("PEs 0, 10, 20, ..., 99990 compute (99 % of a CPU each)."),
        "{conclusion}"
    );
}

#[test]
fn all_of_100_000_pes_are_in_collectives_of_different_numbers() {
    let nth = |pe: u32| world(LARGE, u64::from(pe));
    let job = TestJob::new(LARGE).wait(0..LARGE, "shmem_sync_all", 5.0, nth);
    let conclusion = explained(&job).conclusion;
    assert!(conclusion.contains("PE 0 is in shmem_sync_all, the 0th one, but PE 1"));
}

#[test]
fn pairs_of_100_000_pes_hold_the_locks_of_each_other() {
    let pairs = (0..LARGE).step_by(2).fold(TestJob::new(LARGE), |job, pe| {
        let first = u64::from(pe) * 8;
        let second = u64::from(pe + 1) * 8;
        let held = job.holds(pe, first).holds(pe + 1, second);
        held.set_lock([pe], second, None)
            .set_lock([pe + 1], first, None)
    });
    let conclusion = explained(&pairs).conclusion;
    assert!(
        conclusion.contains("There are 49997 more cases of this kind."),
        "{conclusion}"
    );
}

#[test]
fn a_ring_of_100_000_pes_waits_for_messages() {
    let next = |pe: u32| AwaitedObject::Message {
        from: (pe + 1) % LARGE,
    };
    let ring = TestJob::new(LARGE).wait(0..LARGE, "shmem_team_split_2d", 5.0, next);
    let conclusion = explained(&ring).conclusion;
    assert!(conclusion.contains("PE 0 has waited 5 s for PE 1 in shmem_team_split_2d"));
    assert!(conclusion.contains("it has 100000 PEs."), "{conclusion}");
}

#[test]
fn a_queue_of_100_000_pes_waits_for_a_lock() {
    let queue = (1..LARGE).fold(TestJob::new(LARGE), |job, pe| {
        job.set_lock([pe], 64, Some(pe - 1))
    });
    let conclusion = explained(&queue.stage([0], Some(Stage::Finalized))).conclusion;
    assert!(conclusion.contains(
        "PE 0 has finalized. PEs 1-99999 wait for PE 0 in shmem_set_lock on heap offset 0x40"
    ));
}
