//! The PEs of a case as processes, seen by the test that starts them.

use super::side;
use std::env;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const VARIABLE: &str = "RUSHMEM_CONFORMANCE";

/// Which PE of how many this process is.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) pe: u32,
    pub(super) n_pes: u32,
}

/// This process's position, when it is a PE.
pub(super) fn position() -> Option<Position> {
    let value = env::var(VARIABLE).ok()?;
    let (pe, n_pes) = value.split_once('/').expect("a position is pe/n_pes");
    let number = |text: &str| text.parse().expect("a number");
    Some(Position { pe: number(pe), n_pes: number(n_pes) })
}

/// Start `n_pes` PEs of the test, serve their meetings, and panic unless all end well in time.
pub(super) fn run(test: &str, n_pes: u32, limit: Duration) {
    let deadline = Instant::now() + limit;
    let name = test.split_once("::").map_or(test, |(_crate_name, name)| name);
    let mut job = Job { pes: Vec::new() };
    let mut links = Vec::new();
    for pe in 0..n_pes {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let child = Command::new(env::current_exe().expect("the test binary's path"))
            .args([name, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"])
            .env(VARIABLE, format!("{pe}/{n_pes}"))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .expect("starting a PE");
        job.pes.push(child);
        links.push(ours);
    }
    let met = side::serve(&links, deadline);
    drop(links);
    for (pe, child) in job.pes.iter_mut().enumerate() {
        let status = loop {
            if let Some(status) = child.try_wait().expect("waiting for a PE") {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "{name}: PE {pe} of {n_pes} still runs after {limit:?} ({met})"
            );
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(status.success(), "{name}: PE {pe} of {n_pes} ended with {status} ({met})");
    }
}

/// Children that do not outlive the test, however it ends.
struct Job {
    pes: Vec<Child>,
}

impl Drop for Job {
    fn drop(&mut self) {
        for child in &mut self.pes {
            // Whoever has ended already cannot be killed: nothing to do.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
