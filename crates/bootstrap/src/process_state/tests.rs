//! Texts of the kernel, and processes that end.

use super::*;
use std::process::{Command, Stdio};

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
    assert!(matches!(state(&idle, &stat('R', 5, 9)), ProcessState::Runs { cpu_ms: 0, .. }));
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
