//! `oshrun --doctor`: `shmem-info`, which is installed beside this program, examines the hosts of a
//! job. It starts its short jobs with this program.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::report::failure::{StartFailure, cannot};
use crate::spawn::program;

/// The job that is examined.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExaminedHosts {
    /// The options that name the hosts and how to reach them.
    pub hosts: Vec<OsString>,
    /// The options that distribute PEs.
    pub layout: Vec<OsString>,
}

/// Replaces this process by `shmem-info`; returns only if that fails.
pub fn run(examined: &ExaminedHosts) -> StartFailure {
    let own = program::own();
    let doctor = own.with_file_name("shmem-info");
    let error = Command::new(&doctor)
        .arg("--doctor-layout")
        .arg(examined.layout.join(OsStr::new(" ")))
        .arg("--doctor-job")
        .arg(own)
        .args(&examined.hosts)
        .exec();
    cannot(&format!("run {}, which --doctor needs", doctor.display()), &error)
}
