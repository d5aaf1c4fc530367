//! Jobs whose processes are interrupted all the time, or stopped, or whose injector is killed.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::Job;

use crate::{N_PES, TCP, program};

/// What the log says at the beginning of each step of crates/runtime/src/start.
const STEPS_OF_START: [&str; 6] = [
    "start: gets its number from the launcher",
    "start: exchanges the records of all PEs",
    "start: compares what the PEs have in common",
    "start: maps the memory of its machine",
    "start: publishes the memory of its node",
    "start: describes the job",
];

fn job(trouble: &str, environment: &[(&str, &str)]) -> Job {
    let job = Job::new(program()).arg(trouble).n(N_PES);
    job.envs(environment)
}

/// Signals of the program, one a millisecond, make no call of a PE fail.
pub fn interrupted_pes() {
    for environment in [&[], TCP] {
        job("interrupted", environment).run().assert_ok(N_PES);
    }
}

/// `oshrun` completes a job although a signal interrupts it each millisecond.
pub fn interrupted_oshrun() {
    let running = job("interrupted", &[]).start();
    let oshrun = Pid::from_raw(running.pid()).expect("a process");
    while !running.processes().is_empty() {
        // The test has not waited for oshrun yet, so the process ID is still its own.
        kill_process(oshrun, Signal::CHILD).expect("it is ours");
        sleep(Duration::from_millis(1));
    }
    running.finish().assert_ok(N_PES);
}

/// A PE that is stopped for longer than the host limit is not taken for a silent host.
pub fn stopped_pe() {
    job("stopped", TCP)
        .env("SHMEM_HOST_LIMIT", 1)
        .run()
        .assert_ok(N_PES);
}

/// A job ends when its injector is killed, since nobody would answer its calls.
pub fn killed_injector() {
    let report = tempfile::NamedTempFile::new().expect("a file");
    let report = report.path().to_str().expect("a plain name");
    let inject = [
        env!("CARGO_BIN_EXE_inject"),
        &libc::SYS_recvfrom.to_string(),
        &libc::ENOMEM.to_string(),
        "sleep",
        "0",
        report,
    ];
    let job = Job::new("/bin/sh")
        .args(["-c", "echo started; exec sleep 1000"])
        .n(N_PES)
        .wrap(inject);
    let mut running = job.start();

    // Waits until oshrun has started all PEs, since it forwards lines only then. Before that it
    // reads from each PE whether exec failed; if the read failed, Rust would wait for the PE to
    // end.
    running.wait_for(|lines| if lines.len() == N_PES { Some(()) } else { None });

    let injector = Pid::from_raw(running.pid()).expect("a process");
    kill_process(injector, Signal::KILL).expect("it is ours");
    assert!(!running.finish().status.success());
}

/// A PE that is killed in any step of its start ends the job, and oshrun names it.
pub fn killed_in_each_step_of_the_start() {
    for step in STEPS_OF_START {
        for environment in [&[], TCP] {
            let report = tempfile::NamedTempFile::new().expect("a file");
            let report = report.path().to_str().expect("a plain name");
            let inject = env!("CARGO_BIN_EXE_inject");
            let outcome = job("exchange", environment)
                .wrap([inject, "--kill", step, "exchange", report])
                .env("SHMEM_DEBUG", 2)
                .run();

            assert!(!outcome.status.success(), "{step}: {outcome}");
            let killed = outcome.stderr.matches("was killed by SIGKILL").count();
            assert_eq!(killed, 1, "{step}: {outcome}");
        }
    }
}
