//! Behavior that must be the same over every transport: AMOs that compose, the end of jobs and of
//! processes, order, whole words, and lack of descriptors.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use crate::transports::{LIBFABRIC, OFF, UCX, forced};
use testkit::{Job, Outcome, has_library, needs_library, prefix, program, scenario};

/// Jobs in which a node has several PEs, so that PEs of its node and of others change a word.
const NODES: [(&str, usize); 2] = [("2+2", 4), ("1+2+3", 6)];

fn hammered(variables: &[(&str, &str)]) {
    for (nodes, n) in NODES {
        Job::new(scenario!("hammer.c"))
            .n(n)
            .env("SHMEM_VIRTUAL_NODES", nodes)
            .envs(variables)
            .run()
            .assert_ok(n);
    }
}

fn atomics_compose_on_one_node_and_over_tcp() {
    Job::new(scenario!("hammer.c")).n(4).run().assert_ok(4);
    hammered(&[("SHMEM_TRANSPORT", "tcp")]);
}

fn atomics_compose_over_ucx() {
    needs_library(UCX);
    hammered(&[("SHMEM_TRANSPORT", "ucx"), ("UCX_TLS", "tcp,self")]);
}

fn atomics_compose_over_libfabric() {
    needs_library(LIBFABRIC);
    hammered(&[
        ("SHMEM_TRANSPORT", "ofi"),
        ("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm"),
    ]);
}

/// The program does not count the memory of its first turns, in which libfabric's completion queues
/// are used from end to end.
fn contexts_and_teams_over_libfabric_leave_nothing() {
    needs_library(LIBFABRIC);

    for nodes in [OFF, ("SHMEM_VIRTUAL_NODES", "2")] {
        Job::new(scenario!("growth.c"))
            .n(4)
            .arg(2000)
            .env("SHMEM_TRANSPORT", "ofi")
            .env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")
            .envs(&[nodes])
            .timeout(Duration::from_secs(300))
            .run()
            .assert_ok(4);
    }
}

/// A network's own atomics are either refused, or right and used on the node as well.
fn atomics_of_the_network_are_the_nodes_too() {
    for (transport, library) in [("ucx", UCX), ("ofi", LIBFABRIC)] {
        if !has_library(library) {
            continue;
        }

        for (nodes, n) in NODES {
            let outcome = Job::new(scenario!("hammer.c"))
                .n(n)
                .env("SHMEM_VIRTUAL_NODES", nodes)
                .env("SHMEM_TRANSPORT", transport)
                .env("SHMEM_AMOS", "network")
                .env("UCX_TLS", "tcp,self")
                .env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")
                .env("SHMEM_DEBUG", 2)
                .run();

            // Some versions of UCX have wrong atomic operations, or lack some.
            if transport == "ucx" && !outcome.status.success() {
                assert!(outcome.stderr.contains("SHMEM_AMOS=software"), "{outcome}");
            } else {
                outcome.assert_ok(n);
                let executor = "carried out by the network";
                assert!(outcome.stderr.contains(executor), "{outcome}");
            }
        }
    }
}

/// Runs a job in which PE 1 ends in this way.
fn death(transport: &str, way: &str) -> Outcome {
    Job::new(scenario!("death.c"))
        .n(4)
        .arg(way)
        .envs(&forced(transport))
        .env("UCX_TLS", "tcp,self")
        .run()
}

/// The message names the PE that was killed, although the libraries of networks have messages of
/// their own on a lost peer.
fn a_killed_pe_ends_a_job_over_each_transport() {
    for (transport, library) in [("tcp", ""), ("ucx", UCX), ("ofi", LIBFABRIC)] {
        if transport == "tcp" || has_library(library) {
            let outcome = death(transport, "kill");
            outcome.assert_fails(&["PE 1", "pid ", "killed by", "SIGKILL"]);
            assert_eq!(outcome.code(), 137, "{outcome}");
        }
    }

    // Some libraries of libfabric's providers install signal handlers when they are opened. A PE
    // that aborts must still end by its signal.
    if has_library(LIBFABRIC) {
        let outcome = death("ofi", "abort");
        let crash = "PE 1: SIGABRT in abort, called by end (";
        outcome.assert_crashes(crash, &["PE 1", "pid ", "killed by", "SIGABRT"]);
        assert_eq!(outcome.code(), 134, "{outcome}");
    }
}

/// A process whose own threads have ended does not stay alive because of threads of a transport or
/// of its library, and a process whose own threads run does not end.
fn a_process_ends_with_its_own_last_thread() {
    let mut settings = vec![vec![]];
    for (transport, library) in [("tcp", ""), ("ucx", UCX), ("ofi", LIBFABRIC)] {
        if transport == "tcp" || has_library(library) {
            settings.push(forced(transport).to_vec());
        }
    }

    for variables in settings {
        let job = Job::new(scenario!("first_thread.c")).n(3).envs(&variables);

        for how in ["alone", "again-alone"] {
            let alone = job.clone().arg(how).run();
            alone.assert_fails(&["PE 1", "exited with status 0", "shmem_finalize"]);
            assert!(!alone.stdout.contains("a barrier ended"), "{alone}");
        }

        for how in ["others", "again"] {
            job.clone().arg(how).run().assert_ok(3);
        }
    }
}

/// Runs a job, whose PEs check that other machines do not reach their sockets. Returns the number
/// of these sockets.
fn listeners(variables: &[(&str, &str)]) -> usize {
    let outcome = Job::new(scenario!("listeners.c"))
        .n(3)
        .envs(variables)
        .run();
    outcome.assert_ok(3);
    outcome
        .lines()
        .filter(|line| line.starts_with("listens "))
        .count()
}

/// UCX and libfabric do not authenticate peers that connect. So if a job is on one machine, other
/// machines must not reach its sockets.
fn a_job_on_one_machine_listens_on_loopback_alone() {
    assert_eq!(listeners(&[]), 0, "a job that shares its memory");
    assert_eq!(listeners(&forced("tcp")), 3, "one for each PE");

    let known = Command::new(prefix().join("bin/shmem-info"))
        .arg("--transports")
        .output();
    let known = String::from_utf8(known.expect("it runs").stdout).expect("text");
    // UCX 1.20 cannot connect over the loopback interface.
    if has_library(UCX) && !known.contains("UCX 1.20.") {
        listeners(&forced("ucx"));
        listeners(&[&forced("ucx")[..], &[("UCX_TLS", "tcp,self")]].concat());
    }

    if has_library(LIBFABRIC) {
        for provider in ["tcp;ofi_rxm", "tcp", "sockets", "shm"] {
            listeners(&[&forced("ofi")[..], &[("SHMEM_OFI_PROVIDER", provider)]].concat());
        }
    }
}

/// libfabric's provider shm can be opened although /dev/shm has files with the process number of a
/// PE, as a killed process leaves them.
fn files_of_a_killed_process_do_not_matter() {
    needs_library(LIBFABRIC);

    let script = "file=/dev/shm/$$:$(id -u):0; echo left $file; : > $file; exec \"$@\"";
    let outcome = Job::new("/bin/sh")
        .n(2)
        .args(["-c", script, "sh"])
        .arg(scenario!("heap_size.c").display())
        .args([1 << 20, 0])
        .envs(&forced("ofi"))
        .env("SHMEM_OFI_PROVIDER", "shm")
        .run();

    let left: Vec<&str> = outcome
        .lines()
        .filter_map(|line| line.strip_prefix("left "))
        .collect();
    for file in &left {
        // oshrun may have removed the files of a job that failed.
        let _ = std::fs::remove_file(file);
    }

    outcome.assert_ok(2);
    assert_eq!(left.len(), 2, "{left:?}");
}

/// Sends data, a fence and a flag in several ways, over every transport, to PEs on the same node
/// and on others. The receiver does not call the library while it waits for the flag.
fn flags_follow_their_data(n: usize, rounds: u32, limit: Duration) {
    for (transport, library) in [("tcp", ""), ("ucx", UCX), ("ofi", LIBFABRIC)] {
        if transport != "tcp" && !has_library(library) {
            continue;
        }

        for nodes in [OFF, ("SHMEM_VIRTUAL_NODES", "2")] {
            Job::new(scenario!("order_spin.c"))
                .n(n)
                .arg(rounds)
                .timeout(limit)
                .envs(&[nodes])
                .env("SHMEM_TRANSPORT", transport)
                .run()
                .assert_ok(n);
        }
    }
}

fn no_flag_overtakes_its_data() {
    Job::new(scenario!("order_spin.c"))
        .n(3)
        .arg(72)
        .run()
        .assert_ok(3);

    flags_follow_their_data(3, 72, Duration::from_secs(60));
}

fn words_arrive_as_a_whole() {
    let job = Job::new(scenario!("words.c")).n(2);
    job.clone().run().assert_ok(2);
    job.envs(&forced("tcp")).run().assert_ok(2);
}

/// Processes that keep the CPUs busy until this is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn new(n: usize) -> Busy {
        let mut busy = Busy(Vec::new());
        for _ in 0..n {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "while :; do :; done"]);
            busy.0.push(shell.spawn().expect("a shell"));
        }
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // `kill` can fail only if the process has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn no_flag_overtakes_its_data_on_a_busy_machine() {
    let _busy = Busy::new(3);
    flags_follow_their_data(4, 2000, Duration::from_secs(300));
}

/// Returns a script that runs a program and limits only PE 1 to this number of open files.
fn with_few_files(files: u32) -> PathBuf {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{files}"));
    let text = format!("[ \"$SHMEM_LOCAL_ID\" = 1 ] && ulimit -n {files}\nexec \"$@\"\n");
    std::fs::write(&script, text).expect("a file");
    script
}

/// Runs a job of which PE 1 may have this number of open files.
fn limited(transport: &str, files: u32) -> Outcome {
    Job::new("/bin/sh")
        .n(6)
        .arg(with_few_files(files).display())
        .arg(program!("contexts.c").display())
        .envs(&forced(transport))
        .run()
}

/// If PE 1 lacks descriptors to connect or to accept, it reports this, and the others do not report
/// that it was lost.
fn a_pe_with_too_few_descriptors_says_so() {
    // Which limits let PE 1 lack its first descriptor, one for a peer, or none depends on the
    // descriptors that it has inherited.
    let mut n_refused = 0;
    thread::scope(|scope| {
        let mut jobs = Vec::new();
        for files in 6..14 {
            jobs.push(scope.spawn(move || limited("tcp", files)));
        }

        for job in jobs {
            let outcome = job.join().expect("an outcome");
            if outcome.status.success() {
                outcome.assert_ok(6);
            } else {
                outcome.assert_fails(&["PE 1", "cannot", "files"]);
                n_refused += 1;
            }
        }
    });
    assert!(n_refused > 3, "PE 1 lacked a descriptor {n_refused} times");

    limited("tcp", 32).assert_ok(6);
    for (transport, library) in [("ucx", UCX), ("ofi", LIBFABRIC)] {
        if has_library(library) {
            let outcome = limited(transport, 32);
            outcome.assert_fails(&[transport, "PE 1: ", "32 files", "`ulimit -n`"]);
            assert_eq!(outcome.stderr.matches("32 files").count(), 1, "{outcome}");
        }
    }
}

/// Contexts share endpoints if there are more contexts than the user permits endpoints, or than
/// descriptors allow.
fn more_contexts_than_endpoints() {
    let job = Job::new(scenario!("many_contexts.c", "-pthread")).n(4);
    let with_few_descriptors = ["sh", "-c", "ulimit -n 150; exec \"$@\"", "sh"];

    for (transport, library, setting) in [
        ("ucx", UCX, "SHMEM_UCX_WORKERS"),
        ("ofi", LIBFABRIC, "SHMEM_OFI_ENDPOINTS"),
    ] {
        if has_library(library) {
            let job = job.clone().envs(&forced(transport));
            job.clone().env(setting, "2").run().assert_ok(4);
            job.env(setting, "32")
                .wrap(with_few_descriptors)
                .run()
                .assert_ok(4);
        }
    }

    job.envs(&forced("tcp"))
        .wrap(with_few_descriptors)
        .run()
        .assert_ok(4);
}

/// The job ends even if a library's operations on such a PE would wait for ever.
fn peers_do_not_wait_for_ever_for_a_pe_without_descriptors() {
    for transport in ["tcp", "ofi"] {
        if transport == "tcp" || has_library(LIBFABRIC) {
            Job::new(scenario!("no_descriptors.c"))
                .n(6)
                .envs(&forced(transport))
                .run()
                .assert_fails(&["PE 1 on ", "cannot use its network", "`ulimit -n`"]);
        }
    }
}

testkit::module_tests! {
    atomics_compose_on_one_node_and_over_tcp,
    atomics_compose_over_ucx,
    atomics_compose_over_libfabric,
    atomics_of_the_network_are_the_nodes_too,
    a_killed_pe_ends_a_job_over_each_transport,
    a_job_on_one_machine_listens_on_loopback_alone,
    files_of_a_killed_process_do_not_matter,
    no_flag_overtakes_its_data,
    words_arrive_as_a_whole,
    a_pe_with_too_few_descriptors_says_so,
    more_contexts_than_endpoints,
    ; ignored "a minute; part of `cargo xtask test --full`" =>
    contexts_and_teams_over_libfabric_leave_nothing,
    ; ignored "half a minute and more; part of `cargo xtask test --full`" =>
    a_process_ends_with_its_own_last_thread,
    peers_do_not_wait_for_ever_for_a_pe_without_descriptors,
    ; ignored "minutes; part of `cargo xtask test --full`" =>
    no_flag_overtakes_its_data_on_a_busy_machine,
}
