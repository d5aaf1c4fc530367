//! Jobs without a launcher, whose processes find each other by a unique id, or by SHMEM_JOB and the
//! variables of schedulers. Each mistake ends with one message, within the limit of a setting, and
//! leaves nothing behind.

use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::namespaces::Hosts;
use testkit::{Job, Outcome, absent, has_library, patient, prefix, program, scenario};

/// The limit of a job that fails.
const SOON: Duration = Duration::from_secs(30);

fn by_id() -> PathBuf {
    scenario!("by_id.c")
}

/// Returns a job of `by_id.c` with `n` PEs in which `how` happens.
fn job(n: usize, how: &str) -> Job {
    Job::direct(by_id())
        .arg(n)
        .arg(how)
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
}

fn fails(n: usize, how: &str) -> Outcome {
    let outcome = job(n, how)
        .timeout(patient(SOON))
        .env("SHMEM_JOIN_LIMIT", "2s")
        .run();
    assert!(!outcome.status.success(), "{outcome}");
    outcome
}

fn of_any_number_of_pes() {
    for n in [1, 2, 3, 8, 64] {
        job(n, "ok").env("TEST_SHARED", "1").run().assert_ok(n);
    }
}

fn over_every_transport() {
    let here = [
        ("tcp", ""),
        ("ucx", "libucp.so.0"),
        ("ofi", "libfabric.so.1"),
    ];

    for (transport, library) in here {
        if !library.is_empty() && !has_library(library) {
            continue;
        }

        for (name, value) in [("SHMEM_ONNODE", "off"), ("SHMEM_VIRTUAL_NODES", "1+2")] {
            job(3, "ok")
                .env(name, value)
                .env("SHMEM_TRANSPORT", transport)
                .run()
                .assert_ok(3);
        }
    }
}

fn with_checks_threads_and_observers() {
    for (name, value) in [
        ("SHMEM_CHECK", "1"),
        ("SHMEM_STATS", "1"),
        ("SHMEM_AGGREGATE", "on"),
    ] {
        let job = job(3, "threads").env(name, value);
        job.clone().run().assert_ok(3);
        job.env("SHMEM_ONNODE", "off").run().assert_ok(3);
    }
}

fn of_processes_that_come_late_or_were_forked_or_come_back() {
    for how in ["late", "forks", "again", "driver"] {
        job(4, how).run().assert_ok(4);
    }
}

/// Returns a job of `n` PEs on two hosts in which `how` happens.
fn across(hosts: &Hosts, n: usize, how: &str) -> Job {
    let first = hosts.host(0);
    job(n, how)
        .wrap(["ip", "netns", "exec", first.as_str()])
        .env("TEST_NETNS", hosts.host(1))
}

fn on_several_hosts() {
    let hosts = Hosts::new("u", 2);
    let over_tcp = |n, how| across(&hosts, n, how).env("SHMEM_TRANSPORT", "tcp");

    for n in [2, 64] {
        over_tcp(n, "ok").run().assert_ok(n);
    }

    for how in ["ok", "again", "late"] {
        over_tcp(4, how).run().assert_ok(4);
    }

    for how in ["dies-0", "dies-1", "dies-3"] {
        let outcome = over_tcp(4, how).timeout(patient(SOON)).run();
        assert!(!outcome.status.success(), "{outcome}");
        let message = outcome.one_message();
        assert!(message.contains("before shmem_finalize"), "{outcome}");
    }
}

/// One process of each job is killed, in some while the job forms.
fn leaves_nothing_behind_after_kills_at_any_time() {
    let hosts = Hosts::new("z", 2);

    // Turns differ in the number of PEs, the time of the kill and the process that is killed.
    for turn in 0..100 {
        // There is no PE 99, so only the kill ends the job.
        let running = across(&hosts, 2 + turn % 7, "dies-99")
            .timeout(patient(SOON))
            .env("SHMEM_JOIN_LIMIT", "2s")
            .start();

        sleep(Duration::from_millis(turn as u64 * 61 % 400));
        let processes = running.processes();
        testkit::kill(processes[turn * 7 % processes.len()].pid);

        let outcome = running.finish();
        assert!(!outcome.status.success(), "{outcome}");
    }
}

fn ends_as_a_whole() {
    for (how, words) in [
        (
            "dies-2",
            &["rushmem: PE 2 (pid ", "ended", "before shmem_finalize"][..],
        ),
        (
            "exits-2",
            &["PE 2: exited with status 3 without shmem_finalize"],
        ),
        (
            "exits-0",
            &["PE 0: exited with status 3 without shmem_finalize"],
        ),
        (
            "dies-0",
            &["PE 1: PE 0, whose process serves the meeting of this job, ended"],
        ),
        (
            "driver-dies",
            &["PE 0: the process that serves the meeting of this job ended"],
        ),
    ] {
        fails(4, how).assert_fails(words);
    }

    for how in ["global-0", "global-2"] {
        let outcome = fails(4, how);
        assert_eq!(outcome.code(), 7, "{outcome}");
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
}

fn says_who_is_wrong_or_missing() {
    for (how, words) in [
        (
            "absent",
            &["of the 4 PEs of the job by its unique id, PE 3 has not joined within 2 s"][..],
        ),
        (
            "stale",
            &[
                "nobody serves the job of this unique id (",
                "nobody listens there",
            ],
        ),
    ] {
        fails(4, how).assert_fails(words);
    }

    for (how, words) in [
        // A process that joins after the mistake reports the same.
        ("second", "two processes are PE 0: pid "),
        ("count", "; give all processes the same number"),
        ("secret", "it does not know the secret of this job"),
        ("garbage", "argument id is no unique id"),
        (
            "flags",
            "argument flags is 0x8; pass SHMEMX_INIT_WITH_UNIQUEID",
        ),
        ("rank", "but ranks are 0 to nranks - 1"),
        ("another", "this process has joined another job before"),
    ] {
        let outcome = fails(2, how);
        assert!(outcome.stderr.contains(words), "{how}\n{outcome}");
    }

    assert_eq!(fails(1, "level").code(), 91);
}

fn under_oshrun_it_is_the_job_of_oshrun() {
    let ranks = "exec env TEST_ID=$(cat \"$0.id\") \"$0\" $SHMEM_LOCAL_ID $1 ok";
    let program = by_id();

    // The id is not used, since oshrun has formed the job.
    let id = "rushmem1-AAAAAAAAAAAAAAAAAAAAAAR_AAABE4g";
    std::fs::write(format!("{}.id", program.display()), id).expect("a file");

    let job = Job::new("sh")
        .n(2)
        .arg("-c")
        .arg(ranks)
        .arg(program.display());
    job.clone().arg(2).run().assert_ok(2);

    let outcome = job.arg(3).timeout(patient(SOON)).run();
    let contradiction = "but oshrun has started this process as PE ";
    assert!(outcome.stderr.contains(contradiction), "{outcome}");
}

/// Whatever a process does behind its last finalize, all others end well.
fn a_process_may_leave_at_once_behind_finalize() {
    // Before finalize waited for the meeting, about half of the jobs in which PE 0 leaves failed.
    const ROUNDS: usize = 4;

    let job = |n: usize, how: &str, who: &str| {
        Job::direct(scenario!("leaves_at_once.c"))
            .args([&n.to_string(), how, who, &ROUNDS.to_string()])
            .env("SHMEM_SYMMETRIC_SIZE", "16m")
    };

    // PE 0 serves the meeting, PE 1 is the first of its node, and PE 3 the last.
    for (how, who) in [
        ("dies", "0"),
        ("dies", "1"),
        ("dies", "3"),
        ("dies", "all"),
        ("exits", "all"),
        ("execs", "0"),
        ("crashes", "0"),
    ] {
        for nodes in ["1", "1+3"] {
            job(4, how, who)
                .env("SHMEM_VIRTUAL_NODES", nodes)
                .run()
                .assert_ok(4);
        }
    }

    for (transport, library) in [
        ("tcp", ""),
        ("ucx", "libucp.so.0"),
        ("ofi", "libfabric.so.1"),
    ] {
        if library.is_empty() || has_library(library) {
            job(3, "dies", "all")
                .env("SHMEM_TRANSPORT", transport)
                .env("SHMEM_ONNODE", "off")
                .run()
                .assert_ok(3);
        }
    }

    let hosts = Hosts::new("y", 2);
    let host = hosts.host(0);
    for who in ["0", "3"] {
        job(4, "dies", who)
            .wrap(["ip", "netns", "exec", host.as_str()])
            .env("TEST_NETNS", hosts.host(1))
            .env("SHMEM_TRANSPORT", "tcp")
            .env("SHMEM_JOB", "10.77.0.1:5000")
            .env("SHMEM_JOB_SECRET", "told to nobody")
            .run()
            .assert_ok(4);
    }
}

/// Returns a shell script that starts a program once for each rank, with variables that may contain
/// `$r`, the rank, and waits for all.
fn script(n: usize, variables: &str) -> String {
    format!(
        "s=0; p=; for r in $(seq 0 {last}); do env {variables} \"$0\" & p=\"$p $!\"; done; \
         for i in $p; do wait $i || s=$?; done; exit $s",
        last = n - 1
    )
}

/// Returns a job of processes that have SHMEM_JOB, its secret and these variables. It is in a
/// network namespace, so that the port is free.
fn by_variables(hosts: &Hosts, n: usize, variables: &str) -> Job {
    let host = hosts.host(0);
    Job::direct("ip")
        .args(["netns", "exec", &host, "sh", "-c"])
        .arg(script(n, variables))
        .arg(program!("statics.c").display())
        .env("SHMEM_JOB", "10.77.0.1:5000")
        .env("SHMEM_JOB_SECRET", "told to nobody")
}

fn by_the_variables_of_schedulers() {
    let hosts = Hosts::new("v", 1);
    for variables in [
        "SHMEM_RANK=$r SHMEM_SIZE=3",
        "RANK=$r WORLD_SIZE=3 LOCAL_RANK=$r",
        "FLUX_TASK_RANK=$r FLUX_JOB_SIZE=3",
        "SLURM_PROCID=$r SLURM_STEP_NUM_TASKS=3 SLURM_NTASKS=3",
        "JOB_COMPLETION_INDEX=$r SHMEM_SIZE=3",
    ] {
        let outcome = by_variables(&hosts, 3, variables)
            .env("SHMEM_DEBUG", "2")
            .run();
        outcome.assert_ok(3);

        let is_shared = "static_data=\"like the heap\"";
        let n_shared = outcome.stderr.matches(is_shared).count();
        assert_eq!(n_shared, 3, "{variables}\n{outcome}");
    }

    for n in [2, 64] {
        by_variables(&hosts, n, "SHMEM_RANK=$r")
            .env("SHMEM_SIZE", n)
            .env("SHMEM_SYMMETRIC_SIZE", "16m")
            .run()
            .assert_ok(n);
    }
}

fn variables_that_are_wrong_are_named() {
    let hosts = Hosts::new("w", 1);

    for (variables, words) in [
        (
            "SHMEM_RANK=$r",
            "nothing says the number of processes of this process: set SHMEM_SIZE",
        ),
        (
            "SHMEM_RANK=$r SHMEM_SIZE=3",
            "PE 2 has not joined within 1 s",
        ),
        (
            "SHMEM_RANK=1 SHMEM_SIZE=2",
            "PE 0 does not serve the job at SHMEM_JOB (10.77.0.1:5000: ",
        ),
        (
            "SHMEM_RANK=$r SHMEM_SIZE=2 SHMEM_JOB_SECRET=$r",
            "does not know the secret of this job",
        ),
        (
            "SHMEM_RANK=$r SHMEM_SIZE=2 SHMEM_JOB_SECRET=",
            "SHMEM_JOB_SECRET must be set",
        ),
        (
            "SHMEM_RANK=$r SHMEM_SIZE=2 SHMEM_JOB=10.77.0.1",
            "such as node1:5000",
        ),
    ] {
        let outcome = by_variables(&hosts, 2, variables)
            .timeout(patient(SOON))
            .env("SHMEM_JOIN_LIMIT", "1s")
            .run();
        assert!(!outcome.status.success(), "{outcome}");

        let is_named = outcome.stderr.contains(words);
        assert!(is_named, "{variables}: {words}\n{outcome}");
    }
}

fn a_rank_without_a_place_is_warned_of() {
    let alone = Job::direct(program!("statics.c"))
        .env("SHMEM_RANK", 1)
        .run();
    alone.assert_ok(1);
    let hint = "warning: SHMEM_RANK=1 is set but not SHMEM_JOB: this process is a job of one PE";
    assert!(alone.stderr.contains(hint), "{alone}");
}

/// PE 0 starts after another process has reported that it waits for it. Only one process reports
/// this. The port is among the few that the kernel gives to processes that connect, so they would
/// connect to themselves, and keep the port from PE 0.
fn who_waits_for_a_late_pe_0_says_so_once() {
    const SCRIPT: &str = "log=$1; echo 5000 5007 > /proc/sys/net/ipv4/ip_local_port_range; for r in 1 2; do SHMEM_RANK=$r \"$0\" 2>>\"$log\" & done; \
        until grep -q 'has waited' \"$log\"; do sleep 0.1; done; \
        SHMEM_RANK=0 \"$0\"; s=$?; wait; cat \"$log\" >&2; exit $s";

    let hosts = Hosts::new("x", 1);
    let dir = tempfile::tempdir().expect("a directory");
    let host = hosts.host(0);

    let outcome = Job::direct(program!("statics.c"))
        .wrap(["ip", "netns", "exec", host.as_str(), "sh", "-c", SCRIPT])
        .arg(dir.path().join("log").display())
        .env("SHMEM_JOB", "10.77.0.1:5000")
        .env("SHMEM_JOB_SECRET", "told to nobody")
        .env("SHMEM_SIZE", 3)
        .env("SHMEM_JOIN_LIMIT", "6s")
        .run();
    outcome.assert_ok(3);

    let words = " s for PE 0 to serve the job at SHMEM_JOB=10.77.0.1:5000 (10.77.0.1:5000: nobody \
                 listens there), and tries again until SHMEM_JOIN_LIMIT (6 s)\n";
    assert!(outcome.stderr.ends_with(words), "{outcome}");
    let n_messages = outcome.stderr.matches("has waited").count();
    assert_eq!(n_messages, 1, "{outcome}");
}

/// The process with rank 0 makes the id by the C function, and the others get it in a variable.
const PYTHON: &str = r#"
import ctypes, os, subprocess, sys
library = ctypes.CDLL(sys.argv[1])
if len(sys.argv) == 2:
    text = ctypes.create_string_buffer(128)
    assert library.shmemx_get_uniqueid(text) == 0
    os.environ.update({"SHMEM_JOB": text.value.decode(), "SHMEM_SIZE": "3"})
    others = [subprocess.Popen([sys.executable, *sys.orig_argv[1:], str(rank)]) for rank in (1, 2)]
os.environ["SHMEM_RANK"] = sys.argv[2] if len(sys.argv) > 2 else "0"
library.shmem_init()
assert library.shmem_my_pe() == int(os.environ["SHMEM_RANK"])
if library.shmem_my_pe() == 0:
    print("n_pes", library.shmem_n_pes(), flush=True)
library.shmem_finalize()
if len(sys.argv) == 2:
    assert [other.wait() for other in others] == [0, 0]
    print("PASS")
"#;

fn from_python() {
    if Command::new("python3").arg("--version").output().is_err() {
        absent("there is no python3");
    }

    Job::direct("python3")
        .args(["-c", PYTHON])
        .arg(prefix().join("lib/librushmem.so").display())
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
        .run()
        .assert_ok(3);
}

fn from_fortran() {
    Job::direct(scenario!("fortran_by_id.f90"))
        .run()
        .assert_ok(1);
}

testkit::module_tests! {
    of_any_number_of_pes,
    over_every_transport,
    with_checks_threads_and_observers,
    of_processes_that_come_late_or_were_forked_or_come_back,
    on_several_hosts,
    ends_as_a_whole,
    a_process_may_leave_at_once_behind_finalize,
    says_who_is_wrong_or_missing,
    under_oshrun_it_is_the_job_of_oshrun,
    by_the_variables_of_schedulers,
    variables_that_are_wrong_are_named,
    a_rank_without_a_place_is_warned_of,
    who_waits_for_a_late_pe_0_says_so_once,
    from_python,
    from_fortran,
    ; ignored "a minute; part of `cargo xtask test --full`" =>
    leaves_nothing_behind_after_kills_at_any_time,
}
