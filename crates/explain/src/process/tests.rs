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
fn the_state_follows_from_two_reads() {
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

    let on_disk = stat('D', 5, 9);
    assert_eq!(state(&idle, &on_disk), ProcessState::Sleeps);
    assert_eq!(state(&on_disk, &on_disk), ProcessState::WaitsForDisk);

    let in_vfork = ProcessStat {
        waits_for_child: true,
        ..stat('D', 5, 9)
    };
    assert_eq!(state(&on_disk, &in_vfork), ProcessState::WaitsForChild);

    let ended = ProcessState::Ended(None);
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
    assert_eq!(ended, ProcessState::Ended(None));
}

#[test]
fn a_thread_that_computes_is_busy_unless_it_is_said_to_wait() {
    check_busy("worker", 1);
    check_busy("rushmem-tcp", 0);
}

/// Checks the number of busy threads while a thread with this name computes.
fn check_busy(name: &str, expected: u32) {
    let stop = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let compute = || {
            let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            sender.send(number).expect("the test receives it");
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
        };
        let named = std::thread::Builder::new().name(name.to_owned());
        named.spawn_scoped(scope, compute).expect("a thread");
        let thread = receiver.recv().expect("its number");

        // Until the thread has used CPU time.
        let pid = std::process::id();
        let stat_of_thread = |process: &ProcessStat| {
            let mut threads = process.threads.iter();
            threads.find(|other| other.number == thread).copied()
        };
        let first = read(pid, None).expect("alive");
        let second = loop {
            let second = read(pid, None).expect("alive");
            if stat_of_thread(&second) != stat_of_thread(&first) {
                break second;
            }
        };

        let all: Vec<u32> = second.threads.iter().map(|thread| thread.number).collect();
        let mut others = all.clone();
        others.retain(|other| *other != thread);
        let busy = |waiting: Vec<u32>| {
            let status = waiting_in(pid, waiting);
            let second = read(pid, Some(&status)).expect("alive");
            other_threads(pid, &first, &second).busy
        };
        assert_eq!(busy(others), expected, "{name}");
        assert_eq!(busy(all), 0);

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
        limit: None,
        since: 0,
        subject: AwaitedObject::Exit,
    };
    Status {
        waits: threads.into_iter().map(wait).collect(),
        ..Status::new(pid, Stage::Initialized)
    }
}

#[test]
fn a_thread_that_sleeps_in_a_system_call_sleeps() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
    let status = waiting_in(child.id(), Vec::new());
    let is_sleeping = || {
        let stat = read(child.id(), Some(&status)).expect("alive");
        other_threads(child.id(), &stat, &stat).sleeping == 1
    };

    // For at most a minute, until it has called `nanosleep`.
    let is_seen = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_sleeping()
    });

    child.kill().expect("a child of this process");
    child.wait().expect("it ends");
    assert!(is_seen);
}
