//! Teams and active sets that share PEs, beyond what one program in every setting shows: other drawn programs, a thousand
//! teams at once, the highest thread level.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use testkit::{Job, program};

/// Where PEs share memory, and where none do.
const SETTINGS: [(&str, &str); 2] = [("SHMEM_ONNODE", "on"), ("SHMEM_ONNODE", "off")];

/// What every run draws anew, unless RUSHMEM_SEED repeats one.
fn seed() -> u64 {
    let seed = std::env::var("RUSHMEM_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
    });
    println!("RUSHMEM_SEED={seed}");
    seed
}

#[test]
fn programs_drawn_anew() {
    let seed = seed();
    for (name, value) in SETTINGS {
        Job::new(program!("teams_overlap.c")).n(4).arg(seed).env(name, value).run().assert_ok(4);
        Job::new(program!("threads_overlap.c")).n(3).arg(seed).env(name, value).run().assert_ok(3);
        Job::new(program!("splits_deep.c")).n(3).arg(seed).env(name, value).run().assert_ok(3);
    }
}

/// Where active sets have channels of their own.
#[test]
fn teams_and_active_sets_at_the_highest_thread_level() {
    for (name, value) in SETTINGS {
        let job = Job::new(program!("teams_overlap.c")).n(5).arg(2).arg(300).arg("multiple");
        job.env(name, value).run().assert_ok(5);
    }
}

#[test]
fn a_thousand_teams_at_once() {
    Job::new(program!("teams_thousand.c")).n(3).run().assert_ok(3);
}

#[test]
#[ignore = "minutes; part of `cargo xtask test --full`"]
fn long_programs_drawn_anew() {
    let seed = seed();
    let long = Duration::from_secs(300);
    for n in [1, 2, 3, 5, 7, 12] {
        for (name, value) in SETTINGS {
            let job = |program| Job::new(program).n(n).timeout(long).arg(seed).env(name, value);
            job(program!("teams_thousand.c")).run().assert_ok(n);
            job(program!("threads_overlap.c")).arg(400).run().assert_ok(n);
            job(program!("teams_overlap.c")).arg(3000).run().assert_ok(n);
            job(program!("teams_overlap.c")).arg(3000).arg("multiple").run().assert_ok(n);
            for turn in 0..5 {
                let job = Job::new(program!("splits_deep.c")).n(n).arg(seed + turn);
                job.timeout(long).env(name, value).run().assert_ok(n);
            }
        }
    }
}
