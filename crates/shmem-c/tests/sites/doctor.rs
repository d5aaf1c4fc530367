//! `oshrun --doctor` on this machine, and on several hosts that are all this machine.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::namespaces::Hosts;
use testkit::{Job, Outcome, absent, prefix};

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns a launch agent that executes the shell line `first`, and then the command on this
/// machine, whatever the host is.
fn agent(name: &str, first: &str) -> PathBuf {
    let file = tmpdir().join(name);
    let text = format!("#!/bin/sh\n{first}\nshift\nexec sh -c \"$*\"\n");
    std::fs::write(&file, text).expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("a file of ours");
    file
}

fn doctor(options: &[&str], variables: &[(&str, &str)]) -> Outcome {
    Job::direct(prefix().join("bin/oshrun"))
        .arg("--doctor")
        .args(options)
        // With this width, lines are not wrapped.
        .env("COLUMNS", "10000")
        .envs(variables)
        .run()
}

#[track_caller]
fn assert_lines(outcome: &Outcome, status: i32, words: &[&str]) {
    assert_eq!(outcome.code(), status, "{outcome}");
    for word in words {
        let has_line = outcome.lines().any(|line| line.contains(word));
        assert!(has_line, "{word}\n{outcome}");
    }
}

fn a_job_of_this_machine_is_examined() {
    let outcome = doctor(&["-n", "3"], &[]);
    let words = [
        "ok      all pairs: each PE wrote to 2 others in ",
        "ok      shared memory: ",
        "ok      start: 3 PEs, ",
        "ok      path: shared memory: all PEs are on one node",
        "PE 0 on ",
        "verdict: ok; use:",
        "  oshrun -n 3 ./program",
    ];
    assert_lines(&outcome, 0, &words);

    let (_, over_tcp) = outcome
        .stdout
        .split_once("\ntransport tcp, as between hosts\n")
        .unwrap_or_else(|| panic!("{outcome}"));
    for words in [
        "path: tcp: SHMEM_TRANSPORT is tcp",
        "first put ",
        "ok      PE 0 to PE 1: put ",
        ", atomic add ",
        "; a socket: ",
    ] {
        assert!(over_tcp.contains(words), "{words}\n{outcome}");
    }
}

fn several_hosts_are_examined() {
    let agent = agent("doctor-agent", "");
    let agent = agent.to_str().expect("a plain path");
    let outcome = doctor(&["-H", "a,b,c", "--launch-agent", agent, "-n", "6"], &[]);

    let used = format!("  oshrun -n 6 -H a,b,c --launch-agent {agent} ./program");
    let words = [
        "ok      start: 6 PEs, ",
        "ok      path: shared memory on a node, tcp between nodes: ",
        // Pairs of neighboring hosts, and the first with the last one.
        "PE 0 on ",
        "PE 2 on ",
        " to PE 4 on ",
        "ok      all hosts: round trip of a word from ",
        "ok      all hosts: puts from ",
        &used,
    ];
    assert_lines(&outcome, 0, &words);

    let pairs = outcome.lines().filter(|line| line.contains("first put "));
    assert!(pairs.count() >= 3, "{outcome}");
}

/// Four hosts in namespaces, the last of which has another build of the program.
fn hosts_of_different_builds_are_examined() {
    let probe = Job::direct("unshare").args(["-mu", "true"]).run();
    if !probe.status.success() {
        absent("no namespaces for mounts can be made here");
    }

    let hosts = Hosts::new("d", 4);
    let this = prefix().join("bin/shmem-info");
    let other = tmpdir().join("shmem-info-of-another-build");
    let mut bytes = std::fs::read(&this).expect("it is installed");
    bytes.extend(b"another build");
    std::fs::write(&other, bytes).expect("a file");
    std::fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).expect("a file of ours");

    let first = format!(
        "host=$1; shift; [ $host = n3 ] && other='mount --bind {} {}'\n\
         set -- x \"hostname uts-$host; ${{other:-:}}; $*\"\n\
         exec ip netns exec {}${{host#n}} unshare -mu sh -c \"$2\"",
        other.display(),
        this.display(),
        hosts.prefix()
    );
    let agent = agent("doctor-agent-of-namespaces", &first);
    let agent = agent.to_str().expect("a plain path");

    let outcome = doctor(
        &["-H", "n0,n1,n2,n3", "--launch-agent", agent, "--ppn", "2"],
        &[],
    );
    let words = [
        "n0 (uts-n0)",
        "host n3 (uts-n3)",
        " on n0 (uts-n0); install the same build on all hosts",
        "ok      start: 8 PEs, ",
        "PE 0 on n0 (uts-n0) to PE 6 on n3 (uts-n3): first put ",
        "ok      all pairs: each PE wrote to 7 others in ",
        "  oshrun --ppn 2 -H n0,n1,n2,n3",
    ];
    assert_lines(&outcome, 0, &words);
}

fn a_host_that_cannot_be_reached_is_named() {
    let agent = agent(
        "doctor-agent-of-a",
        "[ \"$1\" = a ] || { echo no route >&2; exit 1; }",
    );
    let agent = agent.to_str().expect("a plain path");

    let outcome = doctor(&["-H", "a,b", "--launch-agent", agent], &[]);
    assert_lines(&outcome, 1, &["verdict: not ok: repair first: oshrun: "]);
    let verdict = outcome.stdout.lines().next().expect("a verdict");
    assert!(verdict.contains(" b"), "{outcome}");
}

fn a_job_that_cannot_start_is_not_recommended() {
    let variables = [
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "tcp"),
        ("SHMEM_TCP_INTERFACE", "nosuch0"),
    ];
    let outcome = doctor(&["-n", "2"], &variables);

    let repair = "verdict: not ok: repair first: on ";
    assert_lines(&outcome, 1, &[repair, "SHMEM_TCP_INTERFACE is nosuch0"]);
    assert!(!outcome.stdout.contains("verdict: ok"), "{outcome}");
}

testkit::module_tests! {
    a_job_of_this_machine_is_examined,
    several_hosts_are_examined,
    hosts_of_different_builds_are_examined,
    a_host_that_cannot_be_reached_is_named,
    a_job_that_cannot_start_is_not_recommended,
}
