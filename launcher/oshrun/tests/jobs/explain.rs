//! Checks that a job that hangs is explained: on request, after a while, at the time limit, with
//! and without daemons. Few of the PEs here have statuses; `crates/shmem-c/tests/sites/hangs.rs`
//! tests the explanations of real programs.

use std::io::{BufRead, BufReader};
use std::process::ChildStderr;
use std::time::Duration;

use crate::support::{Outcome, Running, TestAgent, TestJob, executable, pids, state};
use rustix::process::{Pid, Signal, kill_process};
use testkit::eventually;

/// Starts a job that prints its process IDs and sleeps.
fn start(job: TestJob, n_pes: usize) -> (Running, Vec<u32>, BufReader<ChildStderr>) {
    let mut job = job.start();
    let pids = pids(&mut job.stdout(), n_pes);
    let stderr = BufReader::new(job.stderr());
    (job, pids, stderr)
}

const SLEEP: [&str; 4] = ["init", "pid", "barrier", "sleep:60000"];

/// Reads lines of oshrun up to one that contains all of `texts`, or one that contains `other`.
/// Returns true for the former.
#[track_caller]
fn read_to(stderr: &mut BufReader<ChildStderr>, texts: &[&str], other: Option<&str>) -> bool {
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        assert!(
            stderr.read_line(&mut line).expect("stderr") > 0,
            "no {texts:?} in {seen}"
        );
        assert!(line.starts_with("oshrun:"), "{line:?} after {seen}");

        if texts.iter().all(|text| line.contains(text)) {
            return true;
        }
        if other.is_some_and(|other| line.contains(other)) {
            return false;
        }
        seen += &line;
    }
}

/// Requests explanations until one has a line that contains all of `texts`. On a busy machine, a
/// daemon may answer too late.
#[track_caller]
fn request(job: &Running, signal: Signal, stderr: &mut BufReader<ChildStderr>, texts: &[&str]) {
    loop {
        job.signal(signal);
        if read_to(stderr, texts, Some("does not answer")) {
            return;
        }
    }
}

fn end(job: Running, stderr: &mut BufReader<ChildStderr>) {
    job.signal(Signal::TERM);
    read_to(stderr, &["the job was ended by SIGTERM"], None);
    assert_eq!(job.wait().expect_nothing_left().status, 143);
}

fn stop(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).expect("a process"), Signal::STOP).expect("own");
    eventually("it has stopped", || state(pid) == 'T');
}

#[test]
fn a_request_is_answered_and_the_job_goes_on() {
    for signal in [Signal::QUIT, Signal::USR1] {
        let (job, pids, mut stderr) = start(TestJob::steps(3, &SLEEP), 3);
        stop(pids[1]);
        for _ in 0..2 {
            request(&job, signal, &mut stderr, &["PE", "is stopped"]);
        }

        eventually("they are as before", || {
            pids.iter().map(|&pid| state(pid)).eq("STS".chars())
        });
        end(job, &mut stderr);
    }
}

#[test]
fn daemons_report_on_their_pes() {
    let agent = TestAgent::new("");
    for (hosts, stopped) in [
        ("a:2,b:2", "PEs 1 and 3"),
        ("a:1,b:2,c:1", "PE 2"),
        ("a:1,localhost:3", "PE 2"),
    ] {
        let steps = ["init", "pid", "barrier", "1?kill:19", "sleep:60000"];
        let (job, pids, mut stderr) = start(agent.steps(hosts, "", &steps), 4);

        let n_stopped = if stopped == "PE 2" { 1 } else { 2 };
        eventually("they have stopped", || {
            pids.iter().filter(|&&pid| state(pid) == 'T').count() == n_stopped
        });

        request(&job, Signal::QUIT, &mut stderr, &[stopped, "stopped"]);
        end(job, &mut stderr);
    }
}

/// The daemon of host b is stopped, so that it does not answer.
#[test]
fn a_host_that_does_not_answer_is_named() {
    let name = format!("oshrun-silent-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let agent = TestAgent::new(&format!("[ $1 = a ] || echo $$ > {}", file.display()));

    let (job, _, mut stderr) = start(agent.steps("a:2,b:2", "", &SLEEP), 4);
    let daemon = std::fs::read_to_string(&file).expect("written before the start");
    let daemon = daemon.trim().parse().expect("a number");
    stop(daemon);

    job.signal(Signal::QUIT);
    read_to(&mut stderr, &["PEs 2-3", "host b"], None);

    kill_process(
        Pid::from_raw(daemon as i32).expect("a process"),
        Signal::CONT,
    )
    .expect("own");

    end(job, &mut stderr);
    let _ = std::fs::remove_file(&file);
}

#[test]
fn a_pe_that_has_not_called_init_is_named() {
    let steps = ["pid", "1?sleep:60000", "init", "barrier"];
    let (job, _, mut stderr) = start(TestJob::steps(3, &steps), 3);
    request(
        &job,
        Signal::QUIT,
        &mut stderr,
        &["PE 1", "has not called shmem_init"],
    );
    end(job, &mut stderr);
}

#[test]
fn the_time_limit_explains() {
    let pe = crate::support::pe();
    let words = [
        "-n",
        "2",
        "--timeout",
        "0.5",
        &pe,
        "1?kill:19",
        "sleep:60000",
    ];
    let outcome = TestJob::new(&words).run().expect_nothing_left();
    assert_eq!(outcome.status, 124, "{outcome:?}");

    let mut lines = outcome.stderr.lines();
    let sentence = "oshrun: the job did not end within 0.5 seconds (--timeout)";
    assert_eq!(lines.next(), Some(sentence), "{outcome:?}");
    assert!(lines.clone().count() > 0 && lines.all(|line| line.starts_with("oshrun:")));
}

/// Returns the lines of an explanation that name the barrier of the statuses.
fn mentions(stderr: &str) -> usize {
    stderr
        .lines()
        .filter(|line| line.contains("in shmem_barrier_all"))
        .count()
}

#[test]
fn a_long_wait_is_explained_once() {
    let run = |options: &[&str], sleep: &str| {
        let pe = crate::support::pe();
        let words = ["-n", "2", &pe];
        let steps = [
            "init",
            "waits:100",
            "barrier",
            "statuses",
            sleep,
            "finalize",
        ];
        TestJob::new(&[options, &words, &steps].concat())
            .run()
            .expect_nothing_left()
    };

    let late = run(&["--timeout", "5"], "sleep:60000");
    assert_eq!(
        (late.status, mentions(&late.stderr) > 0),
        (124, true),
        "{late:?}"
    );

    // Later searches find the same waits, which are not explained again.
    let outcome = run(&["--explain-after", "0.1"], "sleep:4000");
    let once = mentions(&late.stderr);
    assert_eq!(
        (outcome.status, mentions(&outcome.stderr)),
        (0, once),
        "{outcome:?}"
    );

    for options in [&["--explain-after", "1000"][..], &[]] {
        run(options, "sleep:1500").expect(0, "");
    }
}

#[test]
fn a_loss_is_explained_if_others_had_waited_long() {
    let agent = TestAgent::new("");
    let run = |waits| {
        let steps = [
            "init",
            waits,
            "barrier",
            "statuses",
            "barrier",
            "2?kill:9",
            "sleep:60000",
        ];
        agent.steps("a:1,b:3", "", &steps).run()
    };

    let outcome = run("waits:100").expect_nothing_left();
    assert_eq!(
        (outcome.status, mentions(&outcome.stderr)),
        (137, 1),
        "{outcome:?}"
    );

    run("waits:2").expect(
        137,
        "oshrun: PE 3 (pid PID, host b) was killed by SIGKILL\n",
    );
}

/// Sends signals to a job of two PEs that run these steps, and then sleep.
fn interrupted(job: impl Fn(&[&str]) -> TestJob, steps: &[&str], signals: &[Signal]) -> Outcome {
    let last = ["barrier", "statuses", "barrier", "pid", "sleep:600000"];
    let mut job = job(&[&["init"], steps, &last].concat()).start();
    pids(&mut job.stdout(), 2);

    for (index, signal) in signals.iter().enumerate() {
        if index > 0 {
            // One that comes earlier counts as the same one.
            std::thread::sleep(Duration::from_millis(250));
        }
        job.signal(*signal);
    }
    job.wait()
}

/// Asserts that a signal has ended the job, after an explanation.
#[track_caller]
fn expect_explained(outcome: Outcome, signal: &str, status: i32) {
    let outcome = outcome.expect_nothing_left();
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let end = format!("oshrun: the job was ended by {signal}");

    assert_eq!(outcome.status, status, "{outcome:?}");
    assert_eq!(lines.last(), Some(&end.as_str()), "{outcome:?}");
    assert!(
        !outcome.stderr.contains("when the job ended"),
        "{outcome:?}"
    );
    // On a busy machine, a daemon may answer too late.
    let is_late = outcome.stderr.contains("does not answer");
    assert!(is_late || mentions(&outcome.stderr) == 1, "{outcome:?}");
}

#[test]
fn a_job_that_hangs_is_explained_before_a_signal_ends_it() {
    let agent = TestAgent::new("");
    let here = |steps: &[&str]| TestJob::steps(2, steps);
    let elsewhere = |steps: &[&str]| agent.steps("a:1,b:1", "", steps);
    for job in [&here as &dyn Fn(&[&str]) -> TestJob, &elsewhere] {
        for (signal, name, status) in [
            (Signal::INT, "SIGINT", 130),
            (Signal::TERM, "SIGTERM", 143),
            (Signal::HUP, "SIGHUP", 129),
        ] {
            let outcome = interrupted(job, &["waits:100"], &[signal]);
            expect_explained(outcome, name, status);
        }

        interrupted(job, &["waits:2"], &[Signal::INT])
            .expect(130, "oshrun: the job was ended by SIGINT\n");
    }
}

/// PE 1 is outside the library, so gdb is attached to it.
#[test]
fn a_gdb_that_does_not_answer_holds_no_signal_for_long() {
    let name = format!("oshrun-late-gdb-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).expect("a directory");
    executable(&dir.join("gdb"), "#!/bin/sh\nexec sleep 600\n");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", dir.display());
    let job = |steps: &[&str]| TestJob::steps(2, steps).env("PATH", &path);

    let outcome = interrupted(job, &["0?waits:100"], &[Signal::TERM]);
    expect_explained(outcome, "SIGTERM", 143);

    interrupted(job, &["0?waits:100"], &[Signal::TERM, Signal::TERM])
        .expect(143, "oshrun: the job was killed by a second SIGTERM\n");
    std::fs::remove_dir_all(dir).expect("own directory");
}

#[test]
fn a_handler_gets_the_signal_and_others_survive() {
    // The shell of PE 0 has a handler. That of PE 1 has none, so oshrun must not send it the
    // signal.
    let script = "if [ $SHMEM_LOCAL_ID = 0 ]; then trap 'echo caught' USR1; fi; echo pid $$; \
                  while :; do sleep 0.05; done";
    let mut job = TestJob::new(&["-n", "2", "sh", "-c", script]).start();
    let mut stdout = job.stdout();
    let pids = pids(&mut stdout, 2);

    job.signal(Signal::USR1);
    let mut line = String::new();
    stdout.read_line(&mut line).expect("stdout");
    assert_eq!(line, "caught\n");
    assert!(pids.iter().all(|&pid| state(pid) != 'X'));

    let mut stderr = BufReader::new(job.stderr());
    end(job, &mut stderr);
}
