//! Jobs one after the other, and jobs in which a PE is killed, leave nothing behind.

use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use testkit::{Job, Traces, kill, scenario};

const PES: usize = 3;

/// Random numbers (splitmix64) for the choice of a PE and of a time.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(testkit::seed())
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % limit
    }
}

/// Returns a job with a directory of its own for temporary files.
fn job(temporary: &tempfile::TempDir) -> Job {
    Job::new(scenario!("soak.c"))
        .n(PES)
        .env("SHMEM_SYMMETRIC_SIZE", "256k")
        .env("TMPDIR", temporary.path().display())
}

fn assert_nothing_left(before: &Traces) {
    let traces = before.new_since();
    assert!(traces.is_empty(), "something was left behind: {traces:?}");
}

/// Runs this number of jobs that succeed and of jobs in which a PE is killed.
fn leave_nothing_behind(jobs: usize) {
    // Only one test of this file runs at a time, since they check the same shared directories.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);

    let temporary = tempfile::tempdir().expect("a temporary directory");
    let before = Traces::now(temporary.path());
    for _ in 0..jobs {
        job(&temporary).run().assert_ok(PES);
    }
    assert_nothing_left(&before);

    let mut dice = Dice::new();
    for _ in 0..jobs {
        kill_one(job(&temporary), &mut dice);
    }
    assert_nothing_left(&before);
}

/// Runs a job until it has connected its PEs, and kills one of them at a time up to 5 ms later.
fn kill_one(job: Job, dice: &mut Dice) {
    let mut running = job.arg("forever").start();
    let victim = dice.below(PES as u64);
    let prefix = format!("pe {victim} pid ");
    let pid: i32 = running.wait_for(|lines| {
        lines
            .iter()
            .find_map(|line| line.strip_prefix(&prefix)?.parse().ok())
    });

    sleep(Duration::from_micros(dice.below(5000)));
    kill(pid);

    let outcome = running.finish();
    outcome.assert_fails(&[&format!("PE {victim}"), &pid.to_string(), "SIGKILL"]);
    assert_eq!(outcome.code(), 137, "{outcome}");
}

#[test]
fn ten_jobs_and_ten_deaths_leave_nothing_behind() {
    leave_nothing_behind(10);
}

#[test]
#[ignore = "half a minute; part of `cargo xtask test --full`"]
fn a_hundred_jobs_and_a_hundred_deaths_leave_nothing_behind() {
    leave_nothing_behind(100);
}
