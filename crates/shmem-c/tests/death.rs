//! A job ends as a whole: with the status of the PE that failed, one message, and nothing left of it.

use std::time::Duration;

use testkit::{Job, Outcome, Running, kill, program};

/// A job of `n` PEs whose PE 1 ends in the way `how`.
fn death(how: &str, n: usize) -> Outcome {
    let outcome = Job::new(program!("death.c")).n(n).arg(how).run();
    assert!(!outcome.stdout.contains("a barrier ended"), "a barrier ended without PE 1\n{outcome}");
    outcome
}

#[test]
fn a_pe_that_is_killed_by_a_signal_ends_the_job() {
    for (how, signal, status) in
        [("segv", "SIGSEGV", 139), ("abort", "SIGABRT", 134), ("kill", "SIGKILL", 137)]
    {
        for n in [2, 4, 12] {
            let outcome = death(how, n);
            outcome.assert_fails(&["PE 1", "pid ", "killed by", signal]);
            assert_eq!(outcome.code(), status, "{outcome}");
        }
    }
}

#[test]
fn a_pe_that_exits_without_finalize_ends_the_job() {
    for how in ["exit3", "_exit3"] {
        let outcome = death(how, 4);
        outcome.assert_fails(&["PE 1", "exited with status 3", "shmem_finalize"]);
        assert_eq!(outcome.code(), 3, "{outcome}");
    }
    for how in ["exit0", "_exit0"] {
        death(how, 4).assert_fails(&["PE 1", "exited with status 0", "shmem_finalize"]);
    }
}

#[test]
fn a_pe_that_never_initialises_ends_the_job() {
    death("never_init", 3).assert_fails(&["PE 1", "shmem_init"]);
}

#[test]
fn the_status_of_a_pe_after_finalize_is_the_jobs() {
    assert_eq!(death("finalize5", 3).code(), 5);
    assert_eq!(death("finalize0", 3).code(), 0);
}

/// Point 78.
#[test]
fn global_exit_ends_the_job_with_its_status() {
    let outcome = death("global_exit0", 4);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{outcome}");
    for n in [2, 3, 8] {
        let outcome = death("global_exit7", n);
        assert_eq!(outcome.code(), 7, "{outcome}");
        assert!(outcome.stdout.contains("last words"), "what was printed is lost\n{outcome}");
        assert!(outcome.stderr.lines().count() <= 1, "{outcome}");
    }
}

/// A running job of `n` PEs and the process numbers of its PEs.
fn lingering(job: Job, n: usize) -> (Running, Vec<i32>) {
    let mut running = job.n(n).arg("forever").start();
    let pids = running.wait_for(|lines| {
        let pids: Vec<i32> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("pe ")?.split(" pid ").nth(1)?.parse().ok())
            .collect();
        (pids.len() == n).then_some(pids)
    });
    (running, pids)
}

#[test]
fn nothing_outlives_oshrun() {
    let program = program!("soak.c");
    let (running, _) = lingering(Job::new(&program), 3);
    kill(running.pid());
    assert_eq!(running.finish().code(), 137);
}

#[test]
fn nothing_outlives_oshrun_with_a_shell_between() {
    let script = format!("{} \"$@\"; exit $?", program!("soak.c").display());
    let (running, pids) = lingering(Job::new("/bin/sh").arg("-c").arg(script).arg("sh"), 3);
    assert!(running.processes().len() > pids.len() + 3, "no shell is between");
    kill(running.pid());
    assert_eq!(running.finish().code(), 137);
}

#[test]
fn a_pe_behind_a_shell_is_missed_too() {
    let script = format!("{} \"$@\"; exit $?", program!("soak.c").display());
    let (running, pids) = lingering(Job::new("/bin/sh").arg("-c").arg(script).arg("sh"), 3);
    kill(pids[1]);
    assert_ne!(running.finish().code(), 0);
}

#[test]
fn a_signal_to_oshrun_ends_the_job() {
    for signal in ["TERM", "INT", "HUP"] {
        let (running, _) = lingering(Job::new(program!("soak.c")), 3);
        let sent = std::process::Command::new("kill")
            .args(["-s", signal, &running.pid().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert_ne!(running.finish().code(), 0);
    }
}

#[test]
fn a_missing_program_is_one_sentence() {
    let outcome = Job::new("/nowhere/no-such-program").n(3).timeout(Duration::from_secs(20)).run();
    outcome.assert_fails(&["/nowhere/no-such-program"]);
    assert_eq!(outcome.code(), 127, "{outcome}");
}
