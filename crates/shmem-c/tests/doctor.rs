//! `oshrun --doctor` on this machine and on several hosts, all of which are this machine; and jobs
//! whose start fails: each names the cause and the remedy within seconds.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::{Job, Outcome, absent, patient, prefix, program};

/// The limit of a start that fails.
const SOON: Duration = Duration::from_secs(20);

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A launch agent that ignores the name of the host, after this line of a shell.
fn agent(name: &str, first: &str) -> PathBuf {
    let file = tmpdir().join(name);
    let text = format!("#!/bin/sh\n{first}\nshift\nexec sh -c \"$*\"\n");
    std::fs::write(&file, text).expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("a file of ours");
    file
}

fn doctor(options: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let job = Job::direct(prefix().join("bin/oshrun")).arg("--doctor");
    let job = options.iter().fold(job, Job::arg);
    variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run()
}

#[track_caller]
fn assert_lines(outcome: &Outcome, status: i32, words: &[&str]) {
    assert_eq!(outcome.code(), status, "{outcome}");
    for word in words {
        assert!(outcome.stdout.lines().any(|line| line.contains(word)), "{word}\n{outcome}");
    }
}

fn a_job_of_this_machine_is_examined() {
    let outcome = doctor(&["-n", "3"], &[]);
    let words = [
        "ok      shared memory: ",
        "ok      start: 3 PEs, ",
        "ok      path: shared memory: all PEs are on one node",
        "PE 0 on ",
        "verdict: ok; use: oshrun -n 3 ./program",
    ];
    assert_lines(&outcome, 0, &words);
    let over_tcp = outcome.stdout.split("\ntransport tcp, as between hosts\n").nth(1);
    let over_tcp = over_tcp.unwrap_or_else(|| panic!("{outcome}"));
    assert!(over_tcp.contains("path: tcp: SHMEM_TRANSPORT is tcp"), "{outcome}");
    assert!(
        over_tcp.contains("first put ") && over_tcp.contains("a socket: round trip"),
        "{outcome}"
    );
}

fn several_hosts_are_examined() {
    let agent = agent("doctor-agent", "");
    let agent = agent.to_str().expect("a plain path");
    let outcome = doctor(&["-H", "a,b,c", "--launch-agent", agent, "-n", "6"], &[]);
    let used = format!("verdict: ok; use: oshrun -n 6 -H a,b,c --launch-agent {agent} ./program");
    let words = [
        "ok      start: 6 PEs, ",
        "ok      path: shared memory on a node, tcp between nodes: ",
        // Neighbors, and the first and the last host.
        "PE 0 on ",
        "PE 2 on ",
        " to PE 4 on ",
        &used,
    ];
    assert_lines(&outcome, 0, &words);
    let pairs = outcome.stdout.lines().filter(|line| line.contains("first put "));
    assert!(pairs.count() >= 3, "{outcome}");
}

fn a_host_that_cannot_be_reached_is_named() {
    let agent = agent("doctor-agent-of-a", "[ \"$1\" = a ] || { echo no route >&2; exit 1; }");
    let agent = agent.to_str().expect("a plain path");
    let outcome = doctor(&["-H", "a,b", "--launch-agent", agent], &[]);
    assert_lines(&outcome, 1, &["verdict: not ok: repair first: oshrun: "]);
    let verdict = outcome.stdout.lines().next_back().expect("a verdict");
    assert!(verdict.contains(" b"), "{outcome}");
}

fn a_job_that_cannot_start_is_not_recommended() {
    let options = ["-n", "2"];
    let network = [("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", "tcp")];
    let outcome = doctor(&options, &[&network[..], &[("SHMEM_TCP_INTERFACE", "nosuch0")]].concat());
    assert_lines(
        &outcome,
        1,
        &["verdict: not ok: repair first: on ", "SHMEM_TCP_INTERFACE is nosuch0"],
    );
    assert!(!outcome.stdout.contains("verdict: ok"), "{outcome}");
}

/// A job of two PEs that share no memory, whose start fails soon, with these words.
#[track_caller]
fn fails(variables: &[(&str, &str)], words: &[&str]) {
    let job = Job::new(program!("heap_size.c")).n(2).arg(1 << 20).arg(0).timeout(patient(SOON));
    let job = job.env("SHMEM_ONNODE", "off");
    let outcome = variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run();
    let message = outcome.stderr.lines().find(|line| line.contains("shmem_init: "));
    let message = message.unwrap_or_else(|| panic!("no message\n{outcome}"));
    assert!(!outcome.status.success(), "{outcome}");
    for word in words {
        assert!(message.contains(word), "{word}\n{outcome}");
    }
}

/// Without this library the test is ignored.
fn needs(library: &str) {
    let outcome = Job::direct(prefix().join("bin/shmem-info")).arg("--transports").run();
    if outcome.stdout.contains(&format!("{library} cannot be opened")) {
        absent(format!("{library} is not here"));
    }
}

fn a_start_over_libfabric_that_fails_names_the_provider_and_what_it_refuses() {
    needs("libfabric.so.1");
    let ofi = ("SHMEM_TRANSPORT", "ofi");
    let udp = "udp: refuses FI_EP_RDM (reliable datagrams): with FI_EP_DGRAM it would do";
    fails(&[ofi, ("SHMEM_OFI_PROVIDER", "udp")], &["SHMEM_OFI_PROVIDER=udp", udp, "--doctor"]);
    let none = "SHMEM_OFI_PROVIDER is nosuch, and there is no such provider: there are ";
    fails(&[ofi, ("SHMEM_OFI_PROVIDER", "nosuch")], &[none, "tcp;ofi_rxm"]);
    fails(&[ofi, ("FI_PROVIDER", "nosuch")], &["with FI_PROVIDER=nosuch"]);
    let over_tcp = [ofi, ("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm"), ("SHMEM_TCP_INTERFACE", "nosuch0")];
    fails(&over_tcp, &["its interface is ", ", but SHMEM_TCP_INTERFACE is nosuch0"]);
    let folder = strict_fabric::folder(tmpdir()).expect("it is built");
    let strict = [
        ofi,
        ("FI_PROVIDER_PATH", folder.to_str().expect("a plain path")),
        ("SHMEM_AMOS", "network"),
        ("SHMEM_OFI_PROVIDER", "strict"),
        ("SHMEM_OFI_DOMAIN", "efa"),
    ];
    fails(&strict, &["strict: refuses FI_ATOMIC", "SHMEM_AMOS=network", "SHMEM_OFI_DOMAIN=efa"]);
}

fn a_start_over_ucx_that_fails_names_the_variable_in_the_way() {
    needs("libucp.so.0");
    let ucx = ("SHMEM_TRANSPORT", "ucx");
    for (variable, value) in [
        ("UCX_TLS", "nosuch"),
        ("SHMEM_UCX_TLS", "nosuch"),
        ("UCX_TLS", "self"),
        ("UCX_NET_DEVICES", "nosuch0"),
    ] {
        let is = format!("{variable} is {value}, but UCX has ");
        fails(&[ucx, (variable, value)], &["all PEs: UCX ", &is, "change or unset that"]);
    }
}

fn a_start_over_sockets_that_fails_names_the_interfaces() {
    let tcp = [("SHMEM_TRANSPORT", "tcp"), ("SHMEM_TCP_INTERFACE", "nosuch0")];
    fails(&tcp, &["SHMEM_TCP_INTERFACE is nosuch0", "there are ", "lo"]);
}

testkit::tests! {
    a_job_of_this_machine_is_examined,
    several_hosts_are_examined,
    a_host_that_cannot_be_reached_is_named,
    a_job_that_cannot_start_is_not_recommended,
    a_start_over_libfabric_that_fails_names_the_provider_and_what_it_refuses,
    a_start_over_ucx_that_fails_names_the_variable_in_the_way,
    a_start_over_sockets_that_fails_names_the_interfaces,
}
