//! States of healthy jobs: the conclusion calls nothing a deadlock or a mistake.

use crate::jobs::{TestJob, strided, team, word, world};
use rushmem_explain::snapshot::ProcessState;
use rushmem_explain::status::{AwaitedObject, Stage};

/// Checks that the conclusion for the job has the sentence, with 4 and with 64 PEs, and calls
/// nothing a deadlock or a mistake.
fn check(job: impl Fn(u32) -> TestJob, sentence: &str) {
    for n_pes in [4, 64] {
        let conclusion = job(n_pes).explained(n_pes).conclusion;
        let sentence = sentence.replace("{last}", &(n_pes - 1).to_string());
        assert!(
            conclusion.contains(&sentence),
            "{conclusion}\nlacks: {sentence}"
        );
        for verdict in [
            "Deadlock",
            "Mismatch",
            "No PE is left",
            "has ended",
            "different arg",
        ] {
            let is_allowed =
                verdict == "different arg" && sentence.contains("No member is missing");
            assert!(is_allowed || !conclusion.contains(verdict), "{conclusion}");
        }
    }
}

#[test]
fn all_pes_compute() {
    check(
        TestJob::new,
        "All PEs compute (99 % of a CPU each): none waits for another.",
    );
}

#[test]
fn all_pes_have_finalized() {
    let job = |n| TestJob::new(n).stage(0..n, Some(Stage::Finalized));
    check(
        job,
        "PEs 0-{last} have finalized, but not exited: they compute outside the library.",
    );
}

#[test]
fn a_pe_computes_for_an_hour() {
    let job = |n| TestJob::new(n).wait(1..n, "shmem_barrier_all", 3600.0, |_| world(n, 2));
    check(
        job,
        "PE 0 computes (99 % of a CPU). PEs 1-{last} wait for PE 0 in shmem_barrier_all",
    );
}

/// Without the limit it would be a deadlock.
#[test]
fn a_wait_with_a_limit_ends() {
    let job = |n| {
        TestJob::new(n)
            .barrier_all((0..n).filter(|pe| *pe != 3))
            .wait_until(3, 7)
            .limit(3, 40)
    };
    check(
        job,
        "PE 3 has waited 31 s in shmem_long_wait_until, at most 40 s, on flag[2] >= 8, which is 7.",
    );

    let snapshots = &job(4).0;
    let n_unlimited = |pe: usize| snapshots[pe].unlimited_waits().count();
    assert_eq!((n_unlimited(2), n_unlimited(3)), (1, 0));
}

#[test]
fn a_consumer_waits_for_a_producer_that_computes() {
    let job = |n| {
        let others = (0..n).filter(|pe| *pe != 0 && *pe != 3);
        TestJob::new(n).wait_until(3, 7).barrier_all(others)
    };
    check(job, "which is 7. PE 0 can still write this word. PEs 1-2");
}

#[test]
fn a_word_compares_already() {
    let job = |n| {
        TestJob::new(n)
            .wait_until(3, 8)
            .barrier_all((0..n).filter(|pe| *pe != 3))
    };
    check(
        job,
        "flag[2] >= 8, which is 8 by now. It is about to continue.",
    );
}

#[test]
fn locks_are_waited_for_while_the_holder_computes() {
    let job = |n| {
        (1..n).fold(TestJob::new(n).holds(0, 8), |job, pe| {
            job.set_lock([pe], 8, Some(pe - 1))
        })
    };
    check(
        job,
        "PE 0 computes (99 % of a CPU). PEs 1-{last} wait for PE 0 in shmem_set_lock on heap offset 0x8, for 20 s.",
    );
}

#[test]
fn threads_compute_while_others_wait() {
    let job = |n| {
        let mut job = (0..n).fold(TestJob::new(n), |job, pe| job.wait_until(pe, 7));
        job.0[3].other_threads.busy = 7;
        job
    };
    check(job, "PE 3 can still write");
}

#[test]
fn a_thread_computes_in_the_pe_for_which_the_others_wait() {
    let job = |n| {
        let others = (0..n).filter(|pe| *pe != 3);
        let mut job = TestJob::new(n).wait_until(3, 7).barrier_all(others);
        job.0[3].other_threads.busy = 1;
        job
    };
    check(job, "PE 3 computes in another thread, and has waited ");
}

#[test]
fn waits_that_are_only_counted_may_end() {
    let job = |n| {
        let mut job = (0..n).fold(TestJob::new(n), |job, pe| job.wait_until(pe, 7));
        job.0[3].status.as_mut().expect("a status").further_waits = vec![7, 8, 9];
        job
    };
    check(job, "Perhaps a deadlock: ");
    check(job, "A thread of PE 3 whose wait is not listed");
}

#[test]
fn a_thread_sleeps_while_all_others_wait() {
    let job = |n| {
        let mut job = (0..n).fold(TestJob::new(n), |job, pe| job.wait_until(pe, 7));
        job.0[3].other_threads.sleeping = 1;
        job
    };
    check(job, "Perhaps a deadlock: PEs 0-{last} have waited");
    check(job, "A thread of PE 3 that sleeps outside the library");
}

#[test]
fn pes_of_other_hosts_may_write_a_word() {
    let job = |n: u32| {
        let mut job = (0..n).fold(TestJob::new(n), |job, pe| job.wait_until(pe, 7));
        job.0.drain(1..3);
        job
    };
    check(job, "PEs 1-2 may, on other hosts, write these words.");
}

#[test]
fn waits_in_a_circle_are_young() {
    let job = |n| {
        let next = |pe: u32| AwaitedObject::Message { from: (pe + 1) % n };
        TestJob::new(n).wait(0..n, "shmem_team_split_2d", 0.5, next)
    };
    check(job, "The waits are shorter than 1 s");
}

#[test]
fn a_word_is_young() {
    let job = |n| {
        TestJob::new(n)
            .wait([3], "shmem_wait", 0.5, |_| word())
            .barrier_all(0..3)
    };
    check(
        job,
        "PE 3 has waited 0.50 s in shmem_wait on the static variable at 0x4010 >= 8. This is too short",
    );
}

#[test]
fn a_broadcast_is_under_way_while_its_root_is_in_the_next_collective() {
    let job = |n| {
        let awaits_root = |_| team("SHMEM_TEAM_WORLD", 0, strided(0, 1, n), 5, Some(0));
        let job = TestJob::new(n).wait(1..n, "shmem_broadcastmem", 9.0, awaits_root);
        job.wait([0], "shmem_barrier_all", 8.0, |_| world(n, 6))
    };
    check(job, "No member is missing");
}

#[test]
fn a_pe_that_is_done_waits_for_the_others_to_finalize() {
    let job = |n| TestJob::new(n).wait([0], "shmem_finalize", 600.0, |_| world(n, 2));
    check(job, "PE 0 waits for them in shmem_finalize");
}

#[test]
fn all_pes_are_at_the_end_of_finalize() {
    let job = |n| TestJob::new(n).wait(0..n, "shmem_finalize", 8.0, |_| AwaitedObject::Exit);
    check(
        job,
        "PEs 0-{last} have waited 8 s in shmem_finalize. No target",
    );
}

#[test]
fn members_call_a_routine_by_its_different_names() {
    for [one, other] in [
        ["shmem_sync_all", "shmem_team_sync"],
        ["shmem_malloc", "shmalloc"],
        ["shmem_free", "drop of a symmetric object"],
        ["SHMEM_SYNC_ALL", "shmem_sync_all"],
        ["Shmem::sync_all", "Team::sync"],
        ["shmem_barrier_all", "Shmem::barrier_all"],
    ] {
        let job = |n| {
            let job = TestJob::new(n).wait([1], one, 9.0, |_| world(n, 41));
            job.wait(2..n, other, 9.0, |_| world(n, 41))
        };
        check(job, "PE 0 computes (99 % of a CPU).");
    }
}

#[test]
fn different_calls_are_young() {
    let job = |n| {
        let job = TestJob::new(n).barrier_all(1..n);
        job.wait([0], "shmem_long_sum_reduce", 0.5, |_| world(n, 41))
    };
    check(job, "No member is missing");
}

#[test]
fn a_network_is_slow() {
    let job = |n| {
        let to = |_| AwaitedObject::Operations { peers: vec![3] };
        TestJob::new(n)
            .wait([0], "shmem_quiet", 4.0, to)
            .barrier_all(1..n)
    };
    check(job, "the network is slow");
}

#[test]
fn processes_sleep_outside_the_library() {
    let job = |n| TestJob::new(n).process(0..n, ProcessState::Sleeps);
    check(job, "All PEs sleep outside the library");
}

#[test]
fn no_pe_has_come_to_init() {
    check(
        |n| TestJob::new(n).stage(0..n, None),
        "No PE has a status that can be read; perhaps",
    );
}

#[test]
fn a_reduction_of_much_data_is_behind_on_one_pe() {
    let job = |n| {
        let job = TestJob::new(n).wait([3], "shmem_long_sum_reduce", 9.0, |_| world(n, 5));
        let others = (0..n).filter(|pe| *pe != 3);
        job.wait(others, "shmem_barrier_all", 8.0, |_| world(n, 6))
    };
    check(job, "No member is missing: the collective is under way");
}

#[test]
fn operations_of_a_barrier_are_slow() {
    let job = |n| {
        let to = |_| AwaitedObject::Operations { peers: vec![0] };
        let job = TestJob::new(n).wait([3], "shmem_barrier_all", 4.0, to);
        job.barrier_all((1..n).filter(|pe| *pe != 3))
            .wait_until(0, 7)
    };
    check(job, "PE 3 can still write this word.");
}
