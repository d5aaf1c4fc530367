//! If the kernel refuses a system call once, in a PE or in oshrun, the job succeeds nevertheless or
//! ends with one message. It never hangs.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Job, absent, scenario};

/// Ignores the test if strace is not installed, or may not trace.
fn needs_strace() {
    let trace = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .output();
    if !trace.is_ok_and(|output| output.status.success()) {
        absent("strace is not here, or may not trace");
    }
}

/// Returns words to put before a command. In each of its threads, the call number `when` of this
/// kind fails with `error`.
fn refusing(call: &str, error: &str, when: u32) -> Vec<String> {
    let trace = format!("trace={call}");
    let inject = format!("inject={call}:error={error}:when={when}");
    let words = [
        "strace",
        "-f",
        "-o",
        "/dev/null",
        "-e",
        "signal=none",
        "-e",
        &trace,
        "-e",
        &inject,
    ];

    words.map(str::to_owned).to_vec()
}

#[track_caller]
fn succeeds_or_says_why(job: Job) {
    let outcome = job
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp")
        .run();

    if outcome.status.success() {
        outcome.assert_ok(2);
    } else {
        assert!(!outcome.one_message().contains("panicked"), "{outcome}");
    }
}

/// Returns a script whose arguments are a program and words. It runs the program, on PE 1 behind
/// the words.
fn on_pe_1() -> PathBuf {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused-on-pe-1");
    let text = "program=$1\nshift\n[ \"$SHMEM_LOCAL_ID\" = 1 ] && exec \"$@\" \"$program\"\nexec \"$program\"\n";
    std::fs::write(&script, text).expect("a file");
    script
}

fn a_call_of_a_pe_that_is_refused() {
    needs_strace();
    let script = on_pe_1();

    for (call, error, times) in [
        ("setsockopt", "ENOBUFS", 1..=6),
        ("ioctl", "ENOMEM", 1..=4),
        ("epoll_ctl", "ENOMEM", 2..=7),
        ("accept4", "ENOMEM", 1..=2),
        ("recvfrom", "ENOMEM", 6..=10),
        ("sendmsg", "ENOBUFS", 1..=2),
    ] {
        for when in times {
            let job = Job::new("/bin/sh")
                .n(2)
                .arg(script.display())
                .arg(scenario!("refused.c").display())
                .args(refusing(call, error, when));
            succeeds_or_says_why(job);
        }
    }
}

fn a_call_of_oshrun_that_is_refused() {
    needs_strace();

    for (call, error, times) in [
        ("sendto", "ENOBUFS", 1..=7),
        // The first calls are for the start of processes, which has a limit of half a minute.
        ("recvfrom", "ENOMEM", 4..=10),
        ("epoll_wait", "ENOMEM", 1..=2),
        ("epoll_ctl", "ENOMEM", 1..=4),
    ] {
        for when in times {
            let words = refusing(call, error, when);
            // With "-b", strace no longer traces the PEs after they have executed their program.
            let words = words.iter().map(String::as_str).chain(["-b", "execve"]);
            succeeds_or_says_why(Job::new(scenario!("refused.c")).n(2).wrap(words));
        }
    }
}

testkit::module_tests! {
    a_call_of_a_pe_that_is_refused,
    a_call_of_oshrun_that_is_refused,
}
