//! Nothing of a job is left, whatever happens to oshrun or to a PE.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{TestAgent, TestJob, eventually_nothing_left, oshrun, pe, pids};
use rustix::process::{Pid, Signal, kill_process};
use testkit::eventually;

/// A generator of pseudo-random numbers (splitmix64). It prints its seed, with which a run can be
/// repeated.
struct Random(u64);

impl Random {
    fn seeded() -> Random {
        let clock = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .expect("after 1970")
                .as_nanos() as u64
        };

        let seed = std::env::var("OSHRUN_TEST_SEED")
            .map_or_else(|_| clock(), |seed| seed.parse().expect("a seed"));
        println!("OSHRUN_TEST_SEED={seed}");
        Random(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).expect("a process"), Signal::KILL).expect("it is there");
}

#[test]
fn a_killed_oshrun_leaves_nothing() {
    let wrapped = format!("{} init pid barrier sleep:600000; true", pe());
    let nested = format!("sh -c '{wrapped}'; true");
    let background = format!("trap '' TERM HUP INT; sleep 600 & {wrapped}");
    for script in [wrapped, nested, background] {
        let mut job = TestJob::new(&["-n", "3", "sh", "-c", &script]).start();
        let mut stdout = job.stdout();
        pids(&mut stdout, 3);

        let mark = job.mark();
        // oshrun, its guard, and at least a wrapper and a program for each PE.
        assert!(job.processes().len() >= 2 + 3 * 2, "{:?}", job.processes());

        job.signal(Signal::KILL);
        assert_eq!(job.wait().status, 137);
        eventually_nothing_left(&mark);
    }
}

/// The name that libfabric gives its shared memory, for a shell to expand.
const SHARED: &str = "/dev/shm/$$:$(id -u):7";

/// Returns the shared memory files of these processes that exist.
fn shared(pids: &[u32]) -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let files = pids
        .iter()
        .map(|pid| PathBuf::from(format!("/dev/shm/{pid}:{uid}:7")));
    files.filter(|file| file.exists()).collect()
}

#[test]
fn shared_memory_of_killed_pes_is_removed() {
    let agent = TestAgent::new("");
    for end in ["kill -KILL $$", "exit 3"] {
        let script = format!("echo pid $$; : > {SHARED}; {end}");
        let program = ["sh", "-c", script.as_str()];
        let here = TestJob::new(&[&["-n", "2"], &program[..]].concat());
        for job in [here, agent.job("a:1,b:1", "", &program)] {
            let run = job.run();
            assert_ne!(run.status, 0);

            let pids: Vec<u32> = run
                .sorted()
                .iter()
                .map(|pid| pid[4..].parse().expect("a number"))
                .collect();

            assert!(!pids.is_empty());
            assert_eq!(shared(&pids), [] as [PathBuf; 0], "after {end}");
        }
    }
}

#[test]
fn a_killed_oshrun_leaves_no_shared_memory() {
    let script = format!(": > {SHARED}; echo pid $$; exec sleep 600");
    let mut job = TestJob::new(&["-n", "2", "sh", "-c", &script]).start();
    let pids = pids(&mut job.stdout(), 2);
    assert_eq!(shared(&pids).len(), 2);

    job.signal(Signal::KILL);
    job.wait();
    eventually("no shared memory is left", || shared(&pids).is_empty());
}

#[test]
fn an_oshrun_killed_while_it_starts_leaves_nothing() {
    let mut random = Random::seeded();
    for _ in 0..40 {
        let job = TestJob::new(&["-n", "12", "sh", "-c", "sleep 600; true"]).start();
        // oshrun, its guard, 12 shells and what they start.
        let n_processes = random.below(1 + 1 + 2 * 12) as usize;

        eventually("so much of the job is there", || {
            job.processes().len() >= n_processes
        });

        job.signal(Signal::KILL);
        let mark = job.mark();
        job.wait();
        eventually_nothing_left(&mark);
    }
}

#[test]
fn the_guard_ignores_what_can_be_ignored() {
    let mut job = TestJob::steps(2, &["init", "pid", "barrier", "sleep:600000"]).start();
    let mut stdout = job.stdout();
    pids(&mut stdout, 2);

    let guard = job.guard().expect("a guard");
    for signal in [
        Signal::HUP,
        Signal::INT,
        Signal::TERM,
        Signal::QUIT,
        Signal::PIPE,
        Signal::USR1,
        Signal::TSTP,
        Signal::ALARM,
    ] {
        kill_process(Pid::from_raw(guard as i32).expect("a process"), signal).expect("it is there");
    }

    let mark = job.mark();
    job.signal(Signal::KILL);
    job.wait();
    eventually_nothing_left(&mark);
}

#[test]
fn a_killed_guard_does_not_end_the_job() {
    let mut job = TestJob::steps(2, &["init", "pid", "barrier", "0?cat", "finalize"])
        .input("")
        .start();
    let mut stdout = job.stdout();
    pids(&mut stdout, 2);

    if let Some(guard) = job.guard() {
        kill(guard);
    }

    job.wait().expect(0, "");
}

fn jobs_leave_nothing(rounds: usize) {
    for round in 0..rounds {
        let n_pes = [1, 2, 3, 4, 8][round % 5];
        TestJob::steps(n_pes, &["init", "exchange:2", "finalize"])
            .run()
            .expect(0, "");
    }
}

#[test]
fn ten_jobs_leave_nothing() {
    jobs_leave_nothing(10);
}

#[test]
#[ignore = "part of `cargo xtask test --full`"]
fn a_hundred_jobs_leave_nothing() {
    jobs_leave_nothing(100);
}

#[test]
fn twenty_jobs_with_a_killed_pe_leave_nothing() {
    jobs_with_a_killed_pe_leave_nothing(20);
}

#[test]
#[ignore = "part of `cargo xtask test --full`"]
fn two_hundred_jobs_with_a_killed_pe_leave_nothing() {
    jobs_with_a_killed_pe_leave_nothing(200);
}

fn jobs_with_a_killed_pe_leave_nothing(rounds: usize) {
    let mut random = Random::seeded();
    for round in 0..rounds {
        let n_pes = 1 + random.below(6) as usize;
        let script = format!(
            "{} pid init exchange:50 pid barrier sleep:600000; exit $?",
            pe()
        );

        let wrapped = random.below(2) == 0;
        let steps = [
            pe(),
            "pid".into(),
            "init".into(),
            "exchange:50".into(),
            "pid".into(),
            "barrier".into(),
            "sleep:600000".into(),
        ];

        let program: Vec<&str> = if wrapped {
            vec!["sh", "-c", &script]
        } else {
            steps.iter().map(String::as_str).collect()
        };

        let count = n_pes.to_string();
        let mut job = TestJob::new(&[&["-n", &count][..], &program].concat()).start();
        let mut stdout = job.stdout();
        let victims = pids(&mut stdout, n_pes);

        // Early, in the exchange, or when all but the barrier is done.
        if random.below(2) == 0 {
            pids(&mut stdout, n_pes);
        }

        kill(victims[random.below(n_pes as u64) as usize]);
        let outcome = job.wait();
        assert_eq!(outcome.status, 137, "round {round}: {outcome:?}");

        let lines: Vec<&str> = outcome
            .stderr
            .lines()
            .filter(|line| line.starts_with("oshrun: "))
            .collect();

        let silent = wrapped && n_pes == 1;
        assert_eq!(
            lines.len(),
            usize::from(!silent),
            "round {round}: {outcome:?}"
        );

        outcome.expect_nothing_left();
    }
}

#[test]
fn an_ordinary_user_needs_nothing() {
    let limits = format!(
        "ulimit -n 1024 -l 64 2>/dev/null || exit 1; exec {} -n 8 {} init memory finalize",
        oshrun(),
        pe()
    );
    TestJob::by("bash", &["-c", &limits]).run().expect(0, "");
}
