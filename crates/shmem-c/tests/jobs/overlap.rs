//! Further tests of teams and active sets that share PEs: random programs, a thousand teams at
//! once, and the highest thread level.

use std::time::Duration;

use testkit::{Job, program, scenario};

/// Settings in which all PEs share memory, none do, and some do.
const SETTINGS: [(&str, &str); 3] = [
    ("SHMEM_ONNODE", "on"),
    ("SHMEM_ONNODE", "off"),
    ("SHMEM_VIRTUAL_NODES", "2"),
];

#[test]
fn programs_drawn_anew() {
    let seed = testkit::seed();
    for (name, value) in SETTINGS {
        for (program, n) in [
            (program!("teams_overlap.c"), 4),
            (program!("threads_overlap.c"), 3),
            (program!("splits_deep.c"), 3),
        ] {
            Job::new(program)
                .n(n)
                .arg(seed)
                .env(name, value)
                .run()
                .assert_ok(n);
        }
    }
}

/// At this level, active sets do not share the channels of teams.
#[test]
fn teams_and_active_sets_at_the_highest_thread_level() {
    for (name, value) in SETTINGS {
        Job::new(program!("teams_overlap.c"))
            .n(5)
            .args(["2", "300", "multiple"])
            .env(name, value)
            .run()
            .assert_ok(5);
    }
}

/// Teams of one node and teams of several nodes use different algorithms, one after the other in
/// the same slots.
#[test]
fn slots_are_used_by_teams_of_one_node_and_of_several() {
    for (nodes, n) in [("2+2", 4), ("1+2+3", 6)] {
        Job::new(program!("teams_overlap.c"))
            .n(n)
            .args([21, 1000])
            .env("SHMEM_VIRTUAL_NODES", nodes)
            .run()
            .assert_ok(n);
    }
}

/// Forces algorithms, since those chosen by default depend on whether PEs outnumber CPUs.
#[test]
fn forced_algorithms_overlap() {
    for (variable, algorithm) in [
        ("SHMEM_REDUCE_ALGORITHM", "recursive_doubling"),
        ("SHMEM_REDUCE_ALGORITHM", "central"),
        ("SHMEM_SYNC_ALGORITHM", "dissemination"),
        ("SHMEM_SYNC_ALGORITHM", "central"),
        ("SHMEM_COLLECT_ALGORITHM", "ring"),
        ("SHMEM_COLLECT_ALGORITHM", "central"),
        ("SHMEM_ALLTOALL_ALGORITHM", "central"),
        ("SHMEM_SCAN_ALGORITHM", "central"),
    ] {
        for n in [2, 4] {
            Job::new(program!("teams_overlap.c"))
                .n(n)
                .args([3, 1000])
                .env(variable, algorithm)
                .run()
                .assert_ok(n);

            Job::new(program!("threads_overlap.c"))
                .n(n)
                .arg(3)
                .env(variable, algorithm)
                .run()
                .assert_ok(n);
        }
    }
}

#[test]
fn a_slot_is_reused_while_a_slow_member_is_in_it() {
    for n in [3, 7] {
        Job::new(scenario!("slots_reused.c"))
            .n(n)
            .run()
            .assert_ok(n);
    }
}

#[test]
fn a_thousand_teams_at_once() {
    Job::new(scenario!("teams_thousand.c"))
        .n(3)
        .run()
        .assert_ok(3);
}

#[test]
#[ignore = "minutes; part of `cargo xtask test --full`"]
fn long_programs_drawn_anew() {
    let seed = testkit::seed();
    for n in [1, 2, 3, 5, 7, 12] {
        for (name, value) in SETTINGS {
            // One PE cannot be split into two nodes.
            let is_two_nodes = value == "2";
            if is_two_nodes && n == 1 {
                continue;
            }

            let teams_overlap = Job::new(program!("teams_overlap.c")).args([seed, 3000]);
            let mut jobs = vec![
                Job::new(scenario!("teams_thousand.c")).arg(seed),
                Job::new(program!("threads_overlap.c")).args([seed, 400]),
                teams_overlap.clone(),
                teams_overlap.arg("multiple"),
            ];
            for turn in 0..5 {
                jobs.push(Job::new(program!("splits_deep.c")).arg(seed + turn));
            }

            for job in jobs {
                job.n(n)
                    .env(name, value)
                    .timeout(Duration::from_secs(300))
                    .run()
                    .assert_ok(n);
            }
        }
    }
}
