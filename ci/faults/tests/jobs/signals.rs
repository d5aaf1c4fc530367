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
