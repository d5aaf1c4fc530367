//! Jobs whose processes are interrupted all the time, or stopped: their results are right.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::Job;

use crate::{N_PES, TCP, program};

fn job(trouble: &str, environment: &[(&str, &str)]) -> Job {
    let job = Job::new(program()).arg(trouble).n(N_PES);
    environment.iter().fold(job, |job, (name, value)| job.env(name, value))
}

/// No call of a PE fails because of the program's signals.
pub fn interrupted_pes() {
    for environment in [&[], TCP] {
        job("interrupted", environment).run().assert_ok(N_PES);
    }
}

/// `oshrun` ends a job right that interrupts it each millisecond.
pub fn interrupted_oshrun() {
    let running = job("interrupted", &[]).start();
    let oshrun = Pid::from_raw(running.pid()).expect("a process");
    while !running.processes().is_empty() {
        // Nobody has waited for it, so the number is still that of oshrun.
        kill_process(oshrun, Signal::CHILD).expect("it is ours");
        sleep(Duration::from_millis(1));
    }
    running.finish().assert_ok(N_PES);
}

/// A stopped process is no silent host, however long it is stopped.
pub fn stopped_pe() {
    job("stopped", TCP).env("SHMEM_HOST_LIMIT", 1).run().assert_ok(N_PES);
}

/// Nobody would answer the calls of a job whose injector is killed.
pub fn killed_injector() {
    let report = tempfile::NamedTempFile::new().expect("a file");
    let report = report.path().to_str().expect("a plain name");
    let (call, error) = (libc::SYS_recvfrom.to_string(), libc::ENOMEM.to_string());
    let words = [env!("CARGO_BIN_EXE_inject"), &call, &error, "sleep", "0", report];
    let job = Job::new("/bin/sh").arg("-c").arg("echo started; exec sleep 1000").n(N_PES);
    let mut running = job.wrap(words).start();
    // oshrun forwards lines only when it has started all PEs. Before that it reads from each
    // whether exec failed; where this read fails, Rust waits for the PE to end.
    running.wait_for(|lines| (lines.len() == N_PES).then_some(()));
    let injector = Pid::from_raw(running.pid()).expect("a process");
    kill_process(injector, Signal::KILL).expect("it is ours");
    assert!(!running.finish().status.success());
}
