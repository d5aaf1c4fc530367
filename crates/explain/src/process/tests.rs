//! Tests with texts of /proc, with processes that end, and with threads that compute or sleep.

use super::*;
use crate::status::{AwaitedObject, Stage, Wait};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

/// Returns the line of /proc/PID/stat for a program with this state, CPU time and start.
fn stat(state: char, ticks: u64, start: u64) -> ProcessStat {
    let middle = "1 1 1 0 -1 4194304 0 0 0 0";
    let text = format!("7 (a ) (b) {state} {middle} {ticks} 0 0 0 20 0 1 0 {start} 1 1\n");
    parse(&text).expect("a stat")
}

#[test]
fn the_state_follows_from_two_looks() {
    let state = |from: &ProcessStat, to: &ProcessStat| between(Some(from), Some(to));
    let idle = stat('S', 5, 9);
    assert_eq!(state(&idle, &stat('S', 5, 9)), ProcessState::Sleeps);
    assert!(matches!(
        state(&idle, &stat('S', 25, 9)),
        ProcessState::Runs { cpu_ms: 1.., .. }
    ));
    let ready = stat('R', 5, 9);
    assert!(matches!(
        state(&ready, &ready),
        ProcessState::Runs { cpu_ms: 0, .. }
    ));
    assert_eq!(state(&idle, &ready), ProcessState::Sleeps);
    assert_eq!(state(&idle, &stat('T', 5, 9)), ProcessState::Stopped);
    assert_eq!(state(&idle, &stat('t', 5, 9)), ProcessState::Traced);
    assert_eq!(state(&idle, &stat('D', 5, 9)), ProcessState::Sleeps);
    assert_eq!(
        state(&stat('D', 5, 9), &stat('D', 5, 9)),
        ProcessState::WaitsForDisk
    );
    let ended = ProcessState::Ended("ended".to_owned());
    assert_eq!(state(&idle, &stat('Z', 5, 9)), ended);
    assert_eq!(
        state(&idle, &stat('S', 5, 10)),
        ended,
        "another process with the same number"
    );
    assert_eq!(between(Some(&idle), None), ended);
}

#[test]
fn a_process_is_seen_alive_and_then_not() {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("cat");
    let alive = read(child.id(), None).expect("it waits for input");
    drop(child.stdin.take());
    child.wait().expect("it ends");
    let ended = between(Some(&alive), read(child.id(), None).as_ref());
    assert_eq!(ended, ProcessState::Ended("ended".to_owned()));
}

#[test]
fn a_thread_that_computes_is_busy_unless_it_is_said_to_wait() {
    check_busy("worker", 1);
    check_busy("rushmem-tcp", 0);
}

/// Checks the number of busy threads while a thread with this name computes.
fn check_busy(name: &str, expected: u32) {
    let (stop, said) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let compute = || {
            said.0
                .send(rustix::thread::gettid().as_raw_nonzero().get() as u32)
                .expect("heard");
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
        };
        let named = std::thread::Builder::new().name(name.to_owned());
        named.spawn_scoped(scope, compute).expect("a thread");
        let pid = std::process::id();
        let thread = said.1.recv().expect("its number");
        let first = read(pid, None).expect("alive");
        let used = |look: &ProcessStat| look.threads.iter().find(|of| of.number == thread).cloned();
        let second = loop {
            let second = read(pid, None).expect("alive");
            if used(&second) != used(&first) {
                break second;
            }
        };
        let all = second.threads.iter().map(|thread| thread.number);
        let busy = |waiting: Vec<u32>| {
            let status = waiting_in(pid, waiting);
            let second = read(pid, Some(&status));
            other_threads(pid, Some(&status), Some(&first), second.as_ref()).busy
        };
        assert_eq!(
            busy(all.clone().filter(|other| *other != thread).collect()),
            expected,
            "{name}"
        );
        assert_eq!(busy(all.collect()), 0);
        stop.store(true, Relaxed);
    });
}

/// Returns the status of a PE in which these threads wait.
fn waiting_in(pid: u32, threads: Vec<u32>) -> Status {
    let wait = |thread| Wait {
        thread,
        call: "".into(),
        called_at: None,
        search: None,
        allocated_at: None,
        since: 0,
        subject: AwaitedObject::Exit,
    };
    let waits = threads.into_iter().map(wait).collect();
    let (stage, held_locks) = (Stage::Initialized, Vec::new());
    let (further_waits, in_flight, finalizing) = (Vec::new(), None, None);
    let pid_namespace = 0;
    Status {
        pid,
        pid_namespace,
        stage,
        waits,
        further_waits,
        held_locks,
        in_flight,
        finalizing,
        finds_polls: false,
        poll: None,
    }
}

#[test]
fn a_thread_that_sleeps_in_a_system_call_sleeps() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
    let status = waiting_in(child.id(), Vec::new());
    let is_sleeping = || {
        let look = read(child.id(), Some(&status));
        other_threads(child.id(), Some(&status), look.as_ref(), look.as_ref()).sleeping == 1
    };
    let seen = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_sleeping()
    });
    child.kill().expect("own");
    child.wait().expect("it ends");
    assert!(seen);
}
