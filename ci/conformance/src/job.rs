//! Starts the PEs of a case as processes, and checks how they end.
//!
//! Three variables adapt the suite to its machine, such as a virtual machine without hardware
//! support. `RUSHMEM_CONFORMANCE_PES` is the maximum number of PEs of a job, which is 3 unless
//! `RUSHMEM_EVERY_SIZE` is set.
//! `RUSHMEM_TEST_SLOWDOWN` multiplies the time limits of every test.
//! `RUSHMEM_CONFORMANCE_ELSEWHERE` is a program that starts every second PE: it runs the command in
//! its arguments on another machine, and forwards standard input in both directions.

use super::side;
use std::env;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::{Started, every_size, patient};

const VARIABLE: &str = "RUSHMEM_CONFORMANCE";
const PES: &str = "RUSHMEM_CONFORMANCE_PES";
const ELSEWHERE: &str = "RUSHMEM_CONFORMANCE_ELSEWHERE";

/// The number of the PE that this process is, and the number of PEs.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) pe: u32,
    pub(crate) n_pes: u32,
}

/// Returns this process's position, if it is a PE.
pub(crate) fn position() -> Option<Position> {
    let value = env::var(VARIABLE).ok()?;
    let (pe, n_pes) = value.split_once('/').expect("a position is pe/n_pes");
    Some(Position {
        pe: pe.parse().expect("a number"),
        n_pes: n_pes.parse().expect("a number"),
    })
}

/// The usual maximum number of PEs of a job. Those with a fourth PE would take as long as all
/// others together, and the simulations of the engine have 2 to 4 PEs.
const USUAL_PES: u32 = 3;

/// Returns the maximum number of PEs of a job on this machine.
pub(crate) fn max_pes() -> u32 {
    let usual = if every_size() { u32::MAX } else { USUAL_PES };
    number(PES).unwrap_or(usual)
}

/// Returns true if all PEs run on this machine.
pub(crate) fn is_one_machine() -> bool {
    env::var_os(ELSEWHERE).is_none()
}

/// Returns the number that a variable has, if it is set.
fn number(variable: &str) -> Option<u32> {
    let value = env::var(variable).ok()?;
    match value.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable} is no number: {value}"),
    }
}

/// Returns the command that starts a PE: the test program, or, for every second PE, the program
/// that starts it elsewhere.
fn starter(pe: u32, n_pes: u32) -> Command {
    let program = env::current_exe().expect("the test binary's path");
    let position = format!("{pe}/{n_pes}");

    match env::var_os(ELSEWHERE) {
        Some(elsewhere) if pe % 2 == 1 => {
            let mut command = Command::new(&elsewhere);
            command.arg("env").arg(format!("{VARIABLE}={position}"));

            for (name, value) in env::vars() {
                if is_passed_on(&name) {
                    command.arg(format!("{name}={value}"));
                }
            }

            command.arg(program);
            command
        }
        _ => {
            let mut command = Command::new(program);
            command.env(VARIABLE, position);
            command
        }
    }
}

/// Returns true if a variable is passed on to a PE elsewhere.
fn is_passed_on(name: &str) -> bool {
    ["RUSHMEM_", "UCX_", "FI_", "LD_"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Starts `n_pes` PEs of the test and serves their exchanges. Panics unless all end with status 0
/// in time.
pub(crate) fn run(test: &str, n_pes: u32, limit: Duration) {
    let deadline = Instant::now() + patient(limit);
    let mut pes = Vec::new();
    let mut links = Vec::new();
    for pe in 0..n_pes {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let mut command = starter(pe, n_pes);
        command
            .args([
                test,
                "--exact",
                "--nocapture",
                "--include-ignored",
                "--test-threads=1",
            ])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null());
        pes.push(Started::new(&mut command, limit));
        links.push(ours);
    }

    let met = side::serve(&links, deadline);
    // A PE that still waits for others then ends.
    drop(links);
    for (pe, process) in pes.iter_mut().enumerate() {
        let status = match process.wait() {
            Ok(status) => status,
            Err(overdue) => panic!("{test}: PE {pe} of {n_pes}: {overdue} ({met})"),
        };
        assert!(
            status.success(),
            "{test}: PE {pe} of {n_pes} ended with {status} ({met})"
        );
    }
}
