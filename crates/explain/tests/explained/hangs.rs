//! Constructed hangs: the conclusion names the PEs, the calls and the cause.

use crate::jobs::{TestJob, strided, team, world};
use rushmem_explain::snapshot::ProcessState;
use rushmem_explain::status::{AwaitedObject, HeapBlock, PolledObject, Stage, SymmetricLocation};

/// Checks that the conclusion for the hang has these sentences in jobs of 4 and of 64 PEs. `{last}`
/// stands for the last PE, and `{rest}` for all PEs but 3.
fn check(hang: impl Fn(u32) -> TestJob, sentences: &[&str]) {
    for n_pes in [4, 64] {
        let conclusion = hang(n_pes).explained(n_pes).conclusion;
        let rest = if n_pes == 4 {
            "0-2".to_owned()
        } else {
            format!("0-2 and 4-{}", n_pes - 1)
        };
        let last = (n_pes - 1).to_string();
        for sentence in sentences {
            let sentence = sentence.replace("{rest}", &rest).replace("{last}", &last);
            assert!(
                conclusion.contains(&sentence),
                "{conclusion}\nlacks: {sentence}"
            );
        }
    }
}

/// Returns all PEs but `without`.
fn others(n_pes: u32, without: &[u32]) -> Vec<u32> {
    (0..n_pes).filter(|pe| !without.contains(pe)).collect()
}

const REST_WAITS: &str = "PEs {rest} wait for PE 3 in shmem_barrier_all, the 41st collective on SHMEM_TEAM_WORLD, for 12 s.";

const EXCEPTION: &str = "An operation that is still in flight over a network could end such waits; \
                         nothing else can.";

#[test]
fn a_word_that_nobody_is_left_to_write() {
    check(
        |n| {
            TestJob::new(n)
                .barrier_all(others(n, &[3]))
                .wait_until(3, 7)
        },
        &[
            "Deadlock: PE 3 has waited 31 s in shmem_long_wait_until on flag[2] >= 8, which is 7. \
             No PE is left to write this word: all others wait.",
            REST_WAITS,
            EXCEPTION,
        ],
    );
}

const CHECK_HINT: &str = "Run with SHMEM_CHECK=1 to learn which members call another collective, or \
                          pass other arguments.";

#[test]
fn a_deadlock_of_a_collective_advises_the_check_of_collectives() {
    let hang = |n| {
        let exit = |_| AwaitedObject::Message { from: 0 };
        TestJob::new(n)
            .wait([0], "shmem_long_sum_reduce", 9.0, move |_| {
                team("SHMEM_TEAM_WORLD", 0, strided(0, 1, n), 2, Some(1))
            })
            .wait(1..n, "shmem_finalize", 9.0, exit)
    };
    check(hang, &["Deadlock: PE 0 has waited 9 s for PE", CHECK_HINT]);

    let mut checked = hang(4);
    for snapshot in &mut checked.0 {
        snapshot.status.as_mut().expect("a status").checks = true;
    }
    let conclusion = checked.explained(4).conclusion;
    assert!(conclusion.contains("Deadlock"), "{conclusion}");
    assert!(!conclusion.contains("SHMEM_CHECK"), "{conclusion}");
}

#[test]
fn the_first_of_many_cycles_is_described_although_it_is_found_last() {
    let job = [4, 6, 8, 10, 12]
        .into_iter()
        .fold(TestJob::new(16), |job, pe| {
            let first = u64::from(pe) * 8;
            let second = u64::from(pe + 1) * 8;
            let job = job.holds(pe, first).holds(pe + 1, second);
            job.set_lock([pe], second, None)
                .set_lock([pe + 1], first, None)
        });
    // The search begins with these PEs, which wait for members of the later pairs.
    let job = (0..4).fold(job, |job, pe: u32| {
        job.set_lock([pe], u64::from(6 + 2 * pe) * 8, None)
    });
    let conclusion = job.explained(16).conclusion;
    assert!(
        conclusion.contains("PE 4 has waited 20 s for PE 5 in shmem_set_lock"),
        "{conclusion}"
    );
}

#[test]
fn a_block_of_the_heap_is_named_by_its_allocation() {
    let hang = |n, block, allocated_at: Option<&str>| {
        let lock = SymmetricLocation::Heap { offset: 80, block };
        let lock = |_| AwaitedObject::Lock {
            lock: lock.clone(),
            behind: Some(0),
        };
        let mut job = TestJob::new(n).wait([3], "shmem_set_lock", 6.0, lock);
        let status = job.0[3].status.as_mut().expect("a status");
        status.waits[0].allocated_at = allocated_at.map(str::to_owned);
        job
    };
    let named = |text: &str| format!("PE 3 waits for PE 0 in shmem_set_lock on {text}, for 6 s.");
    let block = Some(HeapBlock {
        offset: 64,
        nbytes: 32,
        is_buffer: false,
    });
    let place = named("byte 16 of the 32 bytes allocated at ring.c:5 in main");
    check(|n| hang(n, block, Some("ring.c:5 in main")), &[&place]);
    let offset = named("byte 16 of the allocation of 32 bytes at heap offset 0x40");
    check(|n| hang(n, block, None), &[&offset]);
    let buffer = block.map(|block| HeapBlock {
        is_buffer: true,
        ..block
    });
    let in_buffer = named("byte 16 of the registered buffer of 32 bytes at heap offset 0x40");
    check(|n| hang(n, buffer, None), &[&in_buffer]);
    check(
        |n| hang(n, None, Some("ring.c:5 in main")),
        &[&named("heap offset 0x50")],
    );
}

#[test]
fn of_writes_at_the_same_time_the_newest_is_the_last_one() {
    let other = SymmetricLocation::Heap {
        offset: 8,
        block: None,
    };
    let mut job = TestJob::new(4)
        .barrier_all([0, 1, 2])
        .wait_until(3, 7)
        .writes(0, 3, 1.0)
        .writes(0, 3, 1.0);
    let writes = job.0[0].writes.as_mut().expect("writes");
    writes[0].location = other;
    let conclusion = job.explained(4).conclusion;
    let last = "PE 0 wrote it last, 1 s ago, in shmem_long_p.";
    assert!(conclusion.contains(last), "{conclusion}");
    assert!(!conclusion.contains("The last write"), "{conclusion}");
}

#[test]
fn operations_of_a_wait_are_no_wait_of_their_own() {
    let mut job = TestJob::new(4)
        .process([1], ProcessState::Stopped)
        .barrier_all([0])
        .wait([0], "shmem_barrier_all", 12.0, |_| {
            AwaitedObject::Operations { peers: vec![1] }
        });
    for wait in &mut job.0[0].status.as_mut().expect("a status").waits {
        wait.thread = 7;
    }
    let conclusion = job.explained(4).conclusion;
    let once = "PE 0 waits for PE 1 in shmem_barrier_all, the 41st collective on SHMEM_TEAM_WORLD, \
                for 12 s.";
    assert!(conclusion.contains(once), "{conclusion}");
}

#[test]
fn a_pe_that_has_left_its_program_or_its_main_thread_is_described() {
    let replaced = |n| {
        let program = ProcessState::RunsOtherProgram("sleep".into());
        TestJob::new(n)
            .process([3], program)
            .barrier_all(others(n, &[3]))
    };
    check(
        replaced,
        &[
            "PE 3 has called exec and runs sleep, which is not a part of the job.",
            REST_WAITS,
        ],
    );

    let in_vfork = |n| {
        TestJob::new(n)
            .process([3], ProcessState::WaitsForChild)
            .barrier_all(others(n, &[3]))
    };
    let waits = "PE 3 waits for a child of vfork, until it calls exec or _exit.";
    check(in_vfork, &[waits, REST_WAITS]);

    let without_main = |n| {
        let mut job = TestJob::new(n)
            .process([3], ProcessState::Sleeps)
            .barrier_all(others(n, &[3]));
        job.0[3].has_no_main_thread = true;
        job
    };
    let sleeps = "PE 3 sleeps outside the library; its main thread has ended (pthread_exit).";
    check(without_main, &[sleeps, REST_WAITS]);
}

#[test]
fn a_pe_that_has_finalized_and_does_not_exit_is_the_reason() {
    let job = |n| {
        TestJob::new(n)
            .process(others(n, &[3]), ProcessState::Ended(None))
            .stage([3], Some(Stage::Finalized))
            .process([3], ProcessState::Sleeps)
    };
    check(
        job,
        &["PE 3 has finalized, but not exited: it sleeps outside the library."],
    );
    let conclusion = job(4).explained(4).conclusion;
    assert!(!conclusion.contains("have ended"), "{conclusion}");
}

#[test]
fn the_last_write_of_a_word_is_named() {
    let hang = |n| {
        TestJob::new(n)
            .barrier_all(others(n, &[3]))
            .wait_until(3, 7)
    };
    let hint =
        "Run with SHMEM_CHECK=1, or with oshrun --explain-after, to learn who wrote words last.";
    check(hang, &[hint]);

    let none = "No PE has written it in its last 32 writes. The last write of PE 0, 1 s ago, was to \
                the static variable at 0x4010 of PE 2, in shmem_long_p.";
    let all = |n| (0..n).fold(hang(n), |job, writer| job.writes(writer, 2, 1.0));
    check(all, &[none]);

    // PEs on other hosts may have written the word.
    check(
        |n| hang(n).writes(0, 2, 1.0),
        &["all others wait. The last write of PE 0, 1 s ago, was to"],
    );

    let three = |n| {
        hang(n)
            .writes(0, 3, 40.0)
            .writes(1, 3, 33.0)
            .writes(2, 3, 35.0)
    };
    check(
        three,
        &["PE 1 wrote it last, 33 s ago, in shmem_long_p. PEs"],
    );
}

#[test]
fn what_is_in_flight_to_the_word_is_named() {
    let hang = |n| {
        TestJob::new(n)
            .barrier_all(others(n, &[3]))
            .wait_until(3, 7)
    };
    let none = |n| hang(n).in_flight(0..n, 0, &[], false);
    let nothing = "all others wait. Nothing in flight targets it. PEs";
    check(none, &[nothing]);
    assert!(
        !none(4)
            .explained(4)
            .conclusion
            .contains("could end such waits")
    );

    // An operation to another PE does not end the wait, but that PE may then write the word.
    check(
        |n| none(n).in_flight([2], 14, &[1], false),
        &[nothing, EXCEPTION],
    );

    let all = "all others wait. PE 2 has 14 operations in flight, among them to PE 3. PEs";
    check(
        |n| none(n).in_flight([2], 14, &[1, 3], false),
        &[all, EXCEPTION],
    );
    check(
        |n| hang(n).in_flight([2], 14, &[1, 3], false),
        &[all, EXCEPTION],
    );
    check(
        |n| none(n).in_flight([2], 1, &[1], true),
        &["all others wait. PE 2 has an operation in flight, to PE 1. PEs"],
    );

    // The operations of PE 2 are not known.
    check(
        |n| hang(n).in_flight(others(n, &[2]), 0, &[], false),
        &["all others wait. PEs"],
    );

    let finalized = |n| {
        none(n)
            .stage([2], Some(Stage::Finalized))
            .in_flight([2], 1, &[3], false)
    };
    check(finalized, &["Nothing in flight targets it."]);
}

#[test]
fn a_pe_computes_while_the_others_wait() {
    check(
        |n| TestJob::new(n).barrier_all(others(n, &[3])),
        &["PE 3 computes (99 % of a CPU).", REST_WAITS],
    );
}

#[test]
fn a_single_pe_after_three_described_ones_is_in_another_situation() {
    let job = (1..5).fold(TestJob::new(5), |job, pe| job.wait_until(pe, pe.into()));
    let conclusion = job.explained(5).conclusion;
    assert!(
        conclusion.contains("which is 3. PE 4 is in another situation. PE 0 can"),
        "{conclusion}"
    );
}

#[test]
fn a_pe_repeats_a_call_while_the_others_wait() {
    let polls = |call: &'static str, of| {
        move |n| {
            TestJob::new(n)
                .barrier_all(others(n, &[3]))
                .holds(1, 0x40)
                .polls(3, call, of, 0x40)
        }
    };
    for (call, of, on) in [
        (
            "shmem_long_test",
            PolledObject::MemoryOf(3),
            "flag[2], which another PE must change.",
        ),
        (
            "shmem_long_g",
            PolledObject::MemoryOf(1),
            "flag[2] of PE 1, which that PE or another one must change.",
        ),
        (
            "shmem_test_lock",
            PolledObject::Lock,
            "heap offset 0x40, a lock that PE 1 holds.",
        ),
    ] {
        let sentence = format!("PE 3 calls {call} again and again (ring.c:12 in exchange) on {on}");
        check(polls(call, of), &[&sentence, REST_WAITS]);
    }
}

#[test]
fn a_process_does_not_run() {
    let silent = ProcessState::HostSilent("n2".into());
    let cases = [
        (ProcessState::Sleeps, "PE 3 sleeps outside the library."),
        (
            ProcessState::Stopped,
            "PE 3 is stopped by a signal. It continues after",
        ),
        (
            ProcessState::Traced,
            "PE 3 is stopped by a debugger. It continues after",
        ),
        (
            ProcessState::WaitsForDisk,
            "PE 3 waits for a disk or for swapped memory.",
        ),
        (
            ProcessState::Ended(Some("killed by signal 9".into())),
            "PE 3 has ended (killed by signal 9).",
        ),
        (silent, "PE 3 is on host n2, which does not answer."),
    ];
    for (process, sentence) in cases {
        let hang = |n| {
            TestJob::new(n)
                .barrier_all(others(n, &[3]))
                .process([3], process.clone())
        };
        check(hang, &[sentence, REST_WAITS]);
    }
}

#[test]
fn a_pe_is_stopped_within_the_barrier() {
    let hang = |n| {
        TestJob::new(n)
            .barrier_all(0..n)
            .process([3], ProcessState::Stopped)
    };
    check(hang, &["PE 3 is stopped by a signal", REST_WAITS]);
}

#[test]
fn nothing_is_concluded_on_pes_of_other_hosts() {
    check(
        |n| {
            let mut job = TestJob::new(n).barrier_all(0..n);
            job.0.drain(1..3);
            job
        },
        &[
            "PEs 1-2 are on other hosts, of which nothing is known here.",
            "may wait for them in shmem_barrier_all",
        ],
    );
}

#[test]
fn a_pe_has_finalized() {
    let hang = |n| {
        TestJob::new(n)
            .barrier_all(others(n, &[3]))
            .stage([3], Some(Stage::Finalized))
    };
    check(hang, &["PE 3 has finalized.", REST_WAITS]);
}

#[test]
fn a_pe_exits_without_finalize() {
    let hang = |n| {
        TestJob::new(n)
            .barrier_all(others(n, &[3]))
            .wait([3], "exit", 5.0, |_| AwaitedObject::Leaving)
    };
    check(
        hang,
        &[
            "PE 3 has reached the exit without shmem_finalize.",
            REST_WAITS,
        ],
    );
}

#[test]
fn pes_wait_at_the_end_of_finalize_for_one_that_completes_its_operations() {
    check(
        |n| {
            let to = |_| AwaitedObject::Operations { peers: vec![1] };
            let job = TestJob::new(n).wait([3], "shmem_finalize", 9.0, to);
            let job = job.wait(others(n, &[3]), "shmem_finalize", 8.0, |_| {
                AwaitedObject::Exit
            });
            job.process([1], ProcessState::Stopped)
        },
        &[
            "PE 1 is stopped by a signal",
            "PEs 0 and 2-{last} wait for PE 1 in shmem_finalize, for 8 s to 9 s.",
        ],
    );
    check(
        |n| {
            let finalized = TestJob::new(n).stage([0], Some(Stage::Finalized));
            finalized.wait(others(n, &[0, 3]), "Shmem::drop", 8.0, |_| {
                AwaitedObject::Exit
            })
        },
        &[
            "PE 3 computes (99 % of a CPU). PEs 1-2 ",
            "wait for PE 3 in Shmem::drop, for 8 s.",
        ],
    );
}

#[test]
fn a_word_is_waited_for_after_all_others_have_finalized() {
    check(
        |n| {
            TestJob::new(n)
                .stage(others(n, &[3]), Some(Stage::Finalized))
                .wait_until(3, 7)
        },
        &["No PE is left to write this word: all others have finalized."],
    );
}

#[test]
fn two_pes_take_two_locks_in_different_order() {
    check(
        |n| {
            let locks = TestJob::new(n)
                .holds(0, 64)
                .holds(1, 72)
                .set_lock([0], 72, Some(1));
            locks
                .set_lock([1], 64, Some(0))
                .barrier_all(others(n, &[0, 1]))
        },
        &[
            "Deadlock: PE 0 has waited 20 s for PE 1 in shmem_set_lock on heap offset 0x48, which PE 1 \
             holds. PE 1 has waited 20 s for PE 0 in shmem_set_lock on heap offset 0x40, which PE 0 \
             holds.",
            "PEs 2-{last} wait for them in shmem_barrier_all",
            EXCEPTION,
        ],
    );
}

#[test]
fn a_pe_takes_its_own_lock() {
    check(
        |n| {
            TestJob::new(n)
                .holds(3, 64)
                .set_lock([3], 64, None)
                .barrier_all(others(n, &[3]))
        },
        &[
            "Deadlock: PE 3 has waited 20 s for itself in shmem_set_lock on heap offset 0x40, which \
             PE 3 holds.",
        ],
    );
}

#[test]
fn the_holder_of_a_lock_has_finalized() {
    check(
        |n| {
            let queue = (1..n).fold(TestJob::new(n), |job, pe| {
                job.set_lock([pe], 64, Some(pe - 1))
            });
            queue.stage([0], Some(Stage::Finalized))
        },
        &[
            "PE 0 has finalized. PEs 1-{last} wait for PE 0 in shmem_set_lock on heap offset 0x40, for 20 s.",
        ],
    );
}

#[test]
fn two_pes_are_in_collectives_of_different_teams() {
    let row = |n| team("team 5", 5, strided(0, 1, n / 2 + 1), 3, None);
    let column = |n| team("team 6", 6, strided(0, 1, n), 8, None);
    let hang = |n| {
        let job = TestJob::new(n).wait(0..n / 2, "shmem_team_sync", 9.0, |_| row(n));
        job.wait(n / 2..n, "shmem_long_sum_reduce", 8.0, |_| column(n))
    };
    let conclusion = hang(4).explained(4).conclusion;
    assert!(!conclusion.contains(EXCEPTION), "{conclusion}");
    check(
        hang,
        &[
            "Deadlock of collectives on different teams: PE 0 has waited 9 s for PE",
            "in shmem_team_sync, the 3rd collective on team 5.",
            "has waited 8 s for PE 0 in shmem_long_sum_reduce, the 8th collective on team 6.",
            "PEs must call collectives in the same order on all teams that they share.",
        ],
    );
}

#[test]
fn a_member_is_in_a_collective_of_another_team_with_a_pe_that_computes() {
    let pair = || team("team 7", 7, strided(3, -1, 2), 1, None);
    check(
        |n| {
            TestJob::new(n).barrier_all(others(n, &[2, 3])).wait(
                [3],
                "shmem_team_sync",
                9.0,
                |_| pair(),
            )
        },
        &[
            "PE 2 computes (99 % of a CPU).",
            "PE 3 waits for PE 2 in shmem_team_sync, the 1st collective on team 7, for 9 s.",
        ],
    );
}

#[test]
fn different_collectives_of_the_same_number() {
    check(
        |n| {
            let job = TestJob::new(n).barrier_all(others(n, &[3]));
            job.wait([3], "shmem_long_sum_reduce", 31.0, |_| world(n, 41))
        },
        &[
            "Mismatched collectives on SHMEM_TEAM_WORLD: as the 41st one, PEs {rest} have called \
           shmem_barrier_all and PE 3 has called shmem_long_sum_reduce. They have waited 12 s to 31 s. All members must call the \
           same collectives in the same order.",
        ],
    );
}

#[test]
fn reductions_of_different_types() {
    check(
        |n| {
            let job = TestJob::new(n).wait([3], "shmem_int_sum_reduce", 9.0, |_| world(n, 41));
            job.wait(others(n, &[3]), "shmem_long_sum_reduce", 9.0, |_| {
                world(n, 41)
            })
        },
        &["shmem_long_sum_reduce and PE 3 has called shmem_int_sum_reduce."],
    );
}

#[test]
fn finalize_instead_of_a_barrier() {
    check(
        |n| {
            let job = TestJob::new(n).barrier_all(others(n, &[3]));
            job.wait([3], "shmem_finalize", 31.0, |_| AwaitedObject::Exit)
        },
        &[
            "Deadlock: PE 0 has waited",
            "for PE 3 in shmem_barrier_all, the 41st collective on SHMEM_TEAM_WORLD.",
            "PE 3 has waited 31 s for PE 0 in shmem_finalize.",
        ],
    );
}

/// One thread of PE 3 waits for the request that another thread of it carries out.
#[test]
fn a_collective_that_does_not_block_instead_of_one_that_does() {
    check(
        |n| {
            let job = TestJob::new(n).barrier_all(others(n, &[3]));
            let call = "shmemx_long_sum_reduce_nb";
            let job = job.wait([3], call, 31.0, |_| world(n, 41));
            job.wait([3], call, 31.0, |_| world(n, 41))
        },
        &["shmem_barrier_all and PE 3 has called shmemx_long_sum_reduce_nb."],
    );
}

#[test]
fn a_pe_is_one_collective_ahead() {
    check(
        |n| {
            let job = TestJob::new(n).barrier_all(others(n, &[3]));
            job.wait([3], "shmem_sync_all", 31.0, |_| world(n, 42))
        },
        &[
            "Mismatched collectives on SHMEM_TEAM_WORLD: PEs {rest} are in shmem_barrier_all, the \
           41st one, but PE 3 is in shmem_sync_all, already the 42nd one. ",
        ],
    );
}

#[test]
fn members_pass_different_active_sets() {
    let small = |_| {
        team(
            "the active set PE_start 1, logPE_stride 0, PE_size 3",
            9,
            strided(1, 1, 3),
            1,
            None,
        )
    };
    let large = |n| {
        team(
            "the active set PE_start 0, logPE_stride 0, PE_size 4",
            8,
            strided(0, 1, n),
            1,
            None,
        )
    };
    check(
        |n| {
            TestJob::new(n)
                .wait(others(n, &[3]), "shmem_barrier", 9.0, |_| large(n))
                .wait([3], "shmem_barrier", 9.0, |_| small(n))
        },
        &[
            "Mismatched active sets: PE",
            "in shmem_barrier, the 1st collective on \
           the active set PE_start 1, logPE_stride 0, PE_size 3",
            "All members must pass the same active set.",
        ],
    );
}

#[test]
fn all_pes_wait_for_words_of_each_other() {
    check(
        |n| (0..n).fold(TestJob::new(n), |job, pe| job.wait_until(pe, 0)),
        &[
            "Deadlock: PEs 0-{last} have waited 31 s in shmem_long_wait_until on flag[2] >= 8, which \
             is 0. No PE is left to write these words: all PEs wait for such words.",
        ],
    );
}

#[test]
fn a_message_comes_from_a_pe_that_waits_for_a_word() {
    check(
        |n| {
            let from = |_| AwaitedObject::Message { from: 3 };
            TestJob::new(n)
                .wait(others(n, &[3]), "shmem_team_split_2d", 4.0, from)
                .wait_until(3, 7)
        },
        &[
            "Deadlock: PE 3 has waited 31 s in shmem_long_wait_until",
            "wait for PE 3 in shmem_team_split_2d",
        ],
    );
}

#[test]
fn operations_are_for_a_stopped_pe() {
    check(
        |n| {
            let to = |_| AwaitedObject::Operations { peers: vec![3] };
            let job = TestJob::new(n)
                .wait([0], "shmem_quiet", 4.0, to)
                .barrier_all(1..3);
            job.barrier_all(4.min(n)..n)
                .process([3], ProcessState::Stopped)
        },
        &[
            "PE 3 is stopped by a signal",
            "PE 0 waits for PE 3 in shmem_quiet, for 4 s.",
        ],
    );
}

#[test]
fn a_pe_has_not_come_to_init() {
    let cases = [
        (
            None,
            "has no status that can be read; perhaps it has not passed shmem_init",
        ),
        (Some(Stage::Uninitialized), "has not called shmem_init"),
    ];
    for (stage, predicate) in cases {
        check(
            |n| {
                TestJob::new(n)
                    .stage(others(n, &[3]), Some(Stage::Starting))
                    .stage([3], stage)
            },
            &[&format!(
                "PE 3 {predicate}. PEs {{rest}} wait for PE 3 in shmem_init."
            )],
        );
    }
}

#[test]
fn a_broadcast_waits_for_the_parent_of_a_parent() {
    let in_broadcast = |n, awaited| team("SHMEM_TEAM_WORLD", 0, strided(0, 1, n), 5, Some(awaited));
    check(
        |n| {
            TestJob::new(n)
                .wait([3], "shmem_broadcastmem", 6.0, |_| in_broadcast(n, 2))
                .wait([2], "shmem_broadcastmem", 6.0, |_| in_broadcast(n, 1))
        },
        &[
            "PE 1 computes (99 % of a CPU). PEs 2-3 wait for PE 1 in shmem_broadcastmem, the 5th \
           collective on SHMEM_TEAM_WORLD, for 6 s.",
        ],
    );
}

#[test]
fn a_member_that_has_left_a_reduction_is_not_missing_in_it() {
    let awaits_3 = |n| team("SHMEM_TEAM_WORLD", 0, strided(0, 1, n), 5, Some(3));
    let hang = |n| {
        let waiting = others(n, &[0, 3]);
        let job = TestJob::new(n).wait(waiting, "shmem_int_sum_reduce", 6.0, |_| awaits_3(n));
        job.wait_until(0, 7)
    };
    check(
        hang,
        &[
            "PE 3 can still write this word.",
            "PE 3 computes (99 % of a CPU). PEs 1-2 ",
            "wait for PE 3 in shmem_int_sum_reduce, the 5th collective on SHMEM_TEAM_WORLD, for 6 s.",
        ],
    );
    let conclusion = hang(4).explained(4).conclusion;
    assert!(!conclusion.contains("wait for PE 0"), "{conclusion}");
}

#[test]
fn a_word_is_waited_for_in_the_barrier_of_others_behind_a_lock() {
    check(
        |n| {
            let job = TestJob::new(n)
                .wait_until(1, 7)
                .holds(1, 64)
                .set_lock([2], 64, Some(1));
            job.barrier_all(others(n, &[1, 2]))
        },
        &[
            "Deadlock: PE 1 has waited 31 s in shmem_long_wait_until",
            "PE 2 waits for PE 1 in shmem_set_lock on heap offset 0x40, for 20 s.",
        ],
    );
}

#[test]
fn the_members_of_a_reduction_pass_different_arguments() {
    check(
        |n| TestJob::new(n).wait(0..n, "shmem_long_sum_reduce", 40.0, |_| world(n, 2)),
        &[
            "PEs 0-{last} have waited 40 s in shmem_long_sum_reduce, the 2nd collective on \
             SHMEM_TEAM_WORLD. No member is missing: the collective is under way, or the members \
             have passed different arguments.",
        ],
    );
}
