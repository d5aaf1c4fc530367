//! No process of a job is left, even if it leaves the process group of its PE: by setsid, as a
//! daemon, without a known parent, or in a chain of short-lived processes.

use std::fs;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{
    Running, TestAgent, TestJob, eventually_nothing_left, executable, needs, oshrun, pe, pids,
    state,
};
use rustix::process::{Pid, Signal, kill_process};
use testkit::{LIMIT, absent, eventually, patient};

fn send(pid: u32, signal: Signal) {
    // The process may have ended.
    let _ = kill_process(Pid::from_raw(pid as i32).expect("a process"), signal);
}

/// Starts two PEs, each under a setsid that waits for it, and reads their process IDs.
fn behind_setsid(options: &[&str], steps: &[&str]) -> (Running, Vec<u32>) {
    let pe = pe();
    let words = [&["-n", "2"][..], options, &["setsid", "-w", &pe], steps].concat();
    let mut job = TestJob::new(&words).start();
    let pids = pids(&mut job.stdout(), 2);
    (job, pids)
}

/// In such a namespace, the numbers in /proc denote other processes, so oshrun must not search it
/// for processes of the job. A search would last until the time limit for killed processes, 5 s.
fn jobs_in_a_pid_namespace_with_the_proc_of_another_one_end_at_once() {
    let enter = ["unshare", "-rpf"];
    needs(&[enter[0], enter[1], "true"]);

    let is_quick = |_| {
        let start = Instant::now();
        let words = [
            enter[1],
            oshrun(),
            "-n",
            "2",
            &pe(),
            "init",
            "barrier",
            "finalize",
        ];
        TestJob::by(enter[0], &words).run().expect(0, "");
        start.elapsed() < Duration::from_secs(5)
    };

    assert!((0..5).any(is_quick), "each of five jobs took over 5 s");
}

const JOINED: &[&str] = &["init", "barrier", "pid", "sleep:600000"];
const UNJOINED: &[&str] = &["pid", "sleep:600000"];

fn programs_behind_setsid_end_with_a_killed_oshrun() {
    for steps in [JOINED, UNJOINED] {
        let (job, _) = behind_setsid(&[], steps);

        let mark = job.mark();
        job.signal(Signal::KILL);
        assert_eq!(job.wait().status, 137);
        eventually_nothing_left(&mark);
    }
}

fn programs_behind_setsid_end_with_a_killed_pe() {
    for steps in [JOINED, UNJOINED] {
        let (job, pids) = behind_setsid(&[], steps);
        send(pids[1], Signal::KILL);
        if steps == UNJOINED {
            send(pids[0], Signal::KILL);
        }

        let outcome = job.wait();
        assert_ne!(outcome.status, 0, "{outcome:?}");
        outcome.expect_nothing_left();
    }
}

fn programs_behind_setsid_end_with_an_interrupted_oshrun() {
    for steps in [JOINED, UNJOINED] {
        let (job, _) = behind_setsid(&[], steps);
        job.signal(Signal::TERM);
        job.wait()
            .expect(143, "oshrun: the job was ended by SIGTERM\n");
    }
}

fn programs_behind_setsid_end_at_the_time_limit() {
    let (job, _) = behind_setsid(&["--timeout", "5"], UNJOINED);

    let outcome = job.wait().expect_nothing_left();
    let sentence = "oshrun: the job did not end within 5 seconds (--timeout)\n";
    assert!(outcome.stderr.starts_with(sentence), "{outcome:?}");
    assert_eq!(outcome.status, 124);
}

fn programs_behind_setsid_end_on_all_hosts() {
    let agent = TestAgent::new("");
    let start = || {
        let program = [
            "setsid",
            "-w",
            &pe(),
            "init",
            "barrier",
            "pid",
            "sleep:600000",
        ];
        let mut job = agent.job("localhost,b:2,c", "", &program).start();
        let pids = pids(&mut job.stdout(), 4);
        (job, pids)
    };

    let (job, _) = start();
    let mark = job.mark();
    job.signal(Signal::KILL);
    assert_eq!(job.wait().status, 137);
    eventually_nothing_left(&mark);

    let (job, pids) = start();
    send(pids[3], Signal::KILL);
    let outcome = job.wait();
    assert_ne!(outcome.status, 0, "{outcome:?}");
    outcome.expect_nothing_left();

    let (job, _) = start();
    job.signal(Signal::INT);
    job.wait()
        .expect(130, "oshrun: the job was ended by SIGINT\n");
}

fn what_runs_in_the_background_ends_with_the_job() {
    for script in [
        "setsid sleep 600 & exit 0",
        "setsid sleep 600 >/dev/null 2>&1 <&- & exit 0",
        "(setsid sh -c 'sleep 600 & sleep 600 & exit 0' &); exit 0",
        "setsid sh -c 'trap \"\" TERM HUP; (setsid sleep 600 &); sleep 600' & exit 0",
    ] {
        TestJob::new(&["-n", "2", "sh", "-c", script])
            .run()
            .expect(0, "");

        let agent = TestAgent::new("");
        agent
            .job("a,localhost", "", &["sh", "-c", script])
            .run()
            .expect(0, "");
    }
}

/// A process without environment has no mark; only its ancestors show to which job it belongs.
fn a_daemon_without_variables_ends_with_the_job() {
    let daemon = "(setsid env -i sh -c 'echo pid $$; exec sleep 600' &); read line; exit 0";
    let mut job = TestJob::new(&["-n", "1", "sh", "-c", daemon])
        .input_later()
        .start();

    let daemon = pids(&mut job.stdout(), 1)[0];
    job.end_input();
    assert_eq!(job.wait().stderr, "");
    assert_eq!(state(daemon), 'X');
}

/// Processes that a shell started before it executed oshrun do not belong to the job.
fn processes_from_before_the_job_outlive_it() {
    let in_background = "sleep 600 >/dev/null 2>&1 & echo pid $!";
    let script = format!(
        "{in_background}; exec {} -n 2 sh -c 'setsid sleep 600 & exit 0'",
        oshrun()
    );

    let outcome = TestJob::by("sh", &["-c", &script]).run();
    let left = outcome.left();
    left.iter().for_each(|pid| send(*pid, Signal::KILL));

    assert_eq!(
        (outcome.status, outcome.stderr.as_str()),
        (0, ""),
        "{outcome:?}"
    );
    assert_eq!(left, pids(&mut outcome.stdout.as_bytes(), 1), "{outcome:?}");
}

/// An executable script; removed when dropped.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Script {
        let name = format!("oshrun-{name}-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        executable(&file, &format!("#!/bin/sh\n{text}\n"));
        Script(file)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("plain names")
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Each process starts one child in a new session and ends.
fn processes_that_start_others_all_the_time_end_with_the_job() {
    let text = "echo on; trap '' TERM HUP; setsid \"$0\" >&- 2>&- <&- & exit 0";
    let script = Script::new("successors", text);
    let first = format!("{}; exec {} pid sleep:600000", script.path(), pe());

    for signal in [Signal::TERM, Signal::KILL] {
        let mut job = TestJob::new(&["-n", "2", "sh", "-c", &first]).start();
        pids(&mut job.stdout(), 2);

        let mark = job.mark();
        job.signal(signal);
        let outcome = job.wait();
        assert_eq!(outcome.status, 128 + signal.as_raw());

        match signal {
            Signal::KILL => eventually_nothing_left(&mark),
            _ => drop(outcome.expect_nothing_left()),
        }
    }
}

/// Ends the PE, and kills oshrun as soon as its guard has ended: no process may be left then.
fn the_guard_outlives_processes_that_left_their_group() {
    let script =
        "n=0; while [ $n -lt 100 ]; do setsid sleep 600 & n=$((n+1)); done; echo pid $$; read line";
    for _ in 0..3 {
        let mut job = TestJob::new(&["-n", "1", "sh", "-c", script])
            .input_later()
            .start();

        pids(&mut job.stdout(), 1);
        let guard = job.guard().expect("a guard");
        let mark = job.mark();

        job.end_input();
        let since = Instant::now();
        while !['X', 'Z'].contains(&state(guard)) {
            assert!(since.elapsed() < patient(LIMIT), "the guard does not end");
        }

        job.signal(Signal::KILL);
        job.wait();
        eventually_nothing_left(&mark);
    }
}

fn a_pe_that_starts_many_ends_with_all_of_them() {
    let script = "n=0; while [ $n -lt 200 ]; do setsid sleep 600 & n=$((n+1)); echo $n; done; wait";

    for signal in [Signal::TERM, Signal::KILL] {
        let mut job = TestJob::new(&["-n", "1", "setsid", "-w", "sh", "-c", script]).start();

        let mut lines = job.stdout().lines();
        assert!(lines.any(|line| line.expect("text") == "20"));

        let mark = job.mark();
        job.signal(signal);
        let outcome = job.wait();
        assert_eq!(outcome.status, 128 + signal.as_raw(), "{outcome:?}");
        eventually_nothing_left(&mark);
    }
}

fn a_job_that_a_pe_has_started_ends_with_the_outer_one() {
    let pe = pe();
    let inner = [
        "setsid",
        "-w",
        oshrun(),
        "-n",
        "2",
        "setsid",
        "-w",
        &pe,
        "init",
        "barrier",
        "pid",
    ];

    for signal in [Signal::TERM, Signal::KILL] {
        let words = [&["-n", "2"][..], &inner, &["sleep:600000"]].concat();
        let mut job = TestJob::new(&words).start();

        pids(&mut job.stdout(), 4);
        let mark = job.mark();
        job.signal(signal);
        let outcome = job.wait();
        assert_eq!(outcome.status, 128 + signal.as_raw(), "{outcome:?}");
        eventually_nothing_left(&mark);
    }
}

/// ssh, for example, leaves a process for a shared connection.
fn what_an_agent_leaves_on_purpose_stays() {
    let agent = TestAgent::new("setsid sleep 600 </dev/null >/dev/null 2>&1 3<&- &");
    let outcome = agent
        .job("a,b", "", &["sh", "-c", "setsid sleep 600 & exit 0"])
        .run();

    assert_eq!(
        (outcome.status, outcome.stderr.as_str()),
        (0, ""),
        "{outcome:?}"
    );

    let left = outcome.left();
    left.iter().for_each(|pid| send(*pid, Signal::KILL));
    assert_eq!(left.len(), 2, "{left:?}");
}

/// The launcher's processes are stopped first, so that only the kernel can end the PEs.
fn pes_end_when_all_of_the_launcher_is_killed_at_once() {
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy();
    if release.starts_with("4.") || (0..6).any(|minor| release.starts_with(&format!("5.{minor}.")))
    {
        absent("this kernel cannot end PEs, from 5.6 on it can");
    }

    let launcher = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let first = line.split(|&byte| byte == 0).next().unwrap_or_default();
        [&b"oshrun"[..], b"oshrun-guard"]
            .iter()
            .any(|name| first.rsplit(|&byte| byte == b'/').next() == Some(*name))
    };

    let wrapped = format!("{} init barrier pid sleep:600000; true", pe());
    let agent = TestAgent::new("");
    let program = ["setsid", "-w", "sh", "-c", &wrapped];

    for (job, n_launchers) in [
        (TestJob::new(&[&["-n", "3"][..], &program].concat()), 2),
        (agent.job("localhost,b,c", "", &program), 6),
    ] {
        let mut job = job.start();
        let pes = pids(&mut job.stdout(), 3);

        let launchers: Vec<u32> = job.processes().into_iter().filter(launcher).collect();
        assert_eq!(launchers.len(), n_launchers, "{launchers:?}");

        for signal in [Signal::STOP, Signal::KILL] {
            launchers.iter().for_each(|pid| send(*pid, signal));
        }

        eventually("all PEs have ended", || {
            pes.iter().all(|pid| ['X', 'Z'].contains(&state(*pid)))
        });

        let mark = job.mark();
        job.wait();
        eventually_nothing_left(&mark);
    }
}

testkit::module_tests! {
    jobs_in_a_pid_namespace_with_the_proc_of_another_one_end_at_once,
    programs_behind_setsid_end_with_a_killed_oshrun,
    programs_behind_setsid_end_with_a_killed_pe,
    programs_behind_setsid_end_with_an_interrupted_oshrun,
    programs_behind_setsid_end_at_the_time_limit,
    programs_behind_setsid_end_on_all_hosts,
    what_runs_in_the_background_ends_with_the_job,
    a_daemon_without_variables_ends_with_the_job,
    processes_from_before_the_job_outlive_it,
    processes_that_start_others_all_the_time_end_with_the_job,
    the_guard_outlives_processes_that_left_their_group,
    a_pe_that_starts_many_ends_with_all_of_them,
    a_job_that_a_pe_has_started_ends_with_the_outer_one,
    what_an_agent_leaves_on_purpose_stays,
    pes_end_when_all_of_the_launcher_is_killed_at_once,
}
