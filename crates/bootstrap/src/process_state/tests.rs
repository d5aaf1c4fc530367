//! Texts of the kernel, and processes that end.

use super::*;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;

/// What the kernel writes for a program with this state, these ticks and this start.
fn stat(state: char, ticks: u64, start: u64) -> Look {
    let middle = "1 1 1 0 -1 4194304 0 0 0 0";
    let text = format!("7 (a ) (b) {state} {middle} {ticks} 0 0 0 20 0 1 0 {start} 1 1\n");
    parse(&text).expect("a stat")
}

#[test]
fn the_state_follows_from_two_looks() {
    let state = |from: &Look, to: &Look| between(Some(from), Some(to));
    let idle = stat('S', 5, 9);
    assert_eq!(state(&idle, &stat('S', 5, 9)), ProcessState::Sleeps);
    assert!(matches!(state(&idle, &stat('S', 25, 9)), ProcessState::Runs { cpu_ms: 1.., .. }));
    let ready = stat('R', 5, 9);
    assert!(matches!(state(&ready, &ready), ProcessState::Runs { cpu_ms: 0, .. }));
    assert_eq!(state(&idle, &ready), ProcessState::Sleeps);
    assert_eq!(state(&idle, &stat('T', 5, 9)), ProcessState::Stopped);
    assert_eq!(state(&idle, &stat('t', 5, 9)), ProcessState::Traced);
    assert_eq!(state(&idle, &stat('D', 5, 9)), ProcessState::Sleeps);
    assert_eq!(state(&stat('D', 5, 9), &stat('D', 5, 9)), ProcessState::WaitsForDisk);
    let ended = ProcessState::Ended("ended".to_owned());
    assert_eq!(state(&idle, &stat('Z', 5, 9)), ended);
    assert_eq!(state(&idle, &stat('S', 5, 10)), ended, "another process with the same number");
    assert_eq!(between(Some(&idle), None), ended);
}

#[test]
fn a_process_is_seen_alive_and_then_not() {
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
    let alive = look(child.id()).expect("it waits for input");
    drop(child.stdin.take());
    child.wait().expect("it ends");
    let ended = between(Some(&alive), look(child.id()).as_ref());
    assert_eq!(ended, ProcessState::Ended("ended".to_owned()));
}

#[test]
fn a_thread_that_computes_is_busy_unless_it_is_said_to_wait() {
    check_busy("worker", 1);
    check_busy("rushmem-tcp", 0);
}

/// Checks how many threads are busy, where one of this name computes.
fn check_busy(name: &str, expected: u32) {
    let (stop, said) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let compute = || {
            said.0.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("heard");
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
        };
        let named = std::thread::Builder::new().name(name.to_owned());
        named.spawn_scoped(scope, compute).expect("a thread");
        let (pid, thread) = (std::process::id(), said.1.recv().expect("its number"));
        let first = look(pid).expect("alive");
        let used = |look: &Look| look.threads.iter().find(|(number, _)| *number == thread).cloned();
        let second = loop {
            let second = look(pid).expect("alive");
            if used(&second) != used(&first) {
                break second;
            }
        };
        let others: Vec<u32> = second.threads.iter().map(|thread| thread.0).collect();
        let waiting: Vec<u32> = others.iter().copied().filter(|other| *other != thread).collect();
        assert_eq!(busy_threads(pid, &first, &second, &waiting), expected, "{name}");
        assert_eq!(busy_threads(pid, &first, &second, &others), 0);
        stop.store(true, Relaxed);
    });
}
