//! Further tests of teams and active sets that share PEs: random programs, a thousand teams at
//! once, and the highest thread level.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use testkit::{Job, program, scenario};

/// Settings in which all PEs share memory, none do, and some do.
const SETTINGS: [(&str, &str); 3] = [
    ("SHMEM_ONNODE", "on"),
    ("SHMEM_ONNODE", "off"),
    ("SHMEM_VIRTUAL_NODES", "2"),
];

/// Returns a new seed in every run, or that of RUSHMEM_SEED.
fn seed() -> u64 {
    let seed = std::env::var("RUSHMEM_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64)
    });
    println!("RUSHMEM_SEED={seed}");
    seed
}

#[test]
fn programs_drawn_anew() {
    let seed = seed();
    for (name, value) in SETTINGS {
        Job::new(program!("teams_overlap.c"))
            .n(4)
            .arg(seed)
            .env(name, value)
            .run()
            .assert_ok(4);
        Job::new(program!("threads_overlap.c"))
            .n(3)
            .arg(seed)
            .env(name, value)
            .run()
            .assert_ok(3);
        Job::new(program!("splits_deep.c"))
            .n(3)
            .arg(seed)
            .env(name, value)
            .run()
            .assert_ok(3);
    }
}

/// At this level, active sets do not share the channels of teams.
#[test]
fn teams_and_active_sets_at_the_highest_thread_level() {
    for (name, value) in SETTINGS {
        let job = Job::new(program!("teams_overlap.c"))
            .n(5)
            .arg(2)
            .arg(300)
            .arg("multiple");
        job.env(name, value).run().assert_ok(5);
    }
}

/// Teams of one node and teams of several nodes use different algorithms, one after the other in
/// the same slots.
#[test]
fn slots_are_used_by_teams_of_one_node_and_of_several() {
    for (nodes, n) in [("2+2", 4), ("1+2+3", 6)] {
        let job = Job::new(program!("teams_overlap.c")).n(n).arg(21).arg(1000);
        job.env("SHMEM_VIRTUAL_NODES", nodes).run().assert_ok(n);
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
    ] {
        for n in [2, 4] {
            let job = |program| Job::new(program).n(n).env(variable, algorithm);
            job(program!("teams_overlap.c"))
                .arg(3)
                .arg(1000)
                .run()
                .assert_ok(n);
            job(program!("threads_overlap.c")).arg(3).run().assert_ok(n);
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
    let seed = seed();
    let long = Duration::from_secs(300);
    for n in [1, 2, 3, 5, 7, 12] {
        for (name, value) in SETTINGS
            .into_iter()
            .filter(|setting| n > 1 || setting.1 != "2")
        {
            let job = |program| {
                Job::new(program)
                    .n(n)
                    .timeout(long)
                    .arg(seed)
                    .env(name, value)
            };
            job(scenario!("teams_thousand.c")).run().assert_ok(n);
            job(program!("threads_overlap.c"))
                .arg(400)
                .run()
                .assert_ok(n);
            job(program!("teams_overlap.c"))
                .arg(3000)
                .run()
                .assert_ok(n);
            job(program!("teams_overlap.c"))
                .arg(3000)
                .arg("multiple")
                .run()
                .assert_ok(n);
            for turn in 0..5 {
                let job = Job::new(program!("splits_deep.c")).n(n).arg(seed + turn);
                job.timeout(long).env(name, value).run().assert_ok(n);
            }
        }
    }
}
