//! A process and all processes that it starts, under a hard time limit. Tests start jobs and
//! servers this way.
//!
//! This module makes no difference between launchers, PEs and shells.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::limits::{POLL_INTERVAL, patient};
use crate::mark::{self, Process, TestMark};

/// The time that a process has to end after SIGTERM, and the processes that it started to end after
/// it.
const GRACE: Duration = Duration::from_secs(20);

/// A process that was started. A drop kills it and all processes that it started, unless it has
/// ended; if the test panics, always.
pub struct Started {
    child: Child,
    mark: TestMark,
    start: Instant,
    pub(crate) limit: Duration,
    pub(crate) grace: Duration,
    status: Option<ExitStatus>,
}

/// The error that a process has reached its time limit, and was ended.
#[derive(Debug)]
pub struct Overdue {
    /// The status with which the process ended.
    pub status: ExitStatus,
    limit: Duration,
    running: Vec<Process>,
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not over after {:?}; still running: {}",
            self.limit,
            listed(&self.running)
        )
    }
}

impl Started {
    /// Starts a process. The limit is extended by [`patient`] on slow machines.
    ///
    /// # Panics
    /// If it cannot be started.
    #[track_caller]
    pub fn new(command: &mut Command, limit: Duration) -> Self {
        let mark = TestMark::new();
        mark.put_on(command);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        Self {
            child,
            mark,
            start: Instant::now(),
            limit: patient(limit),
            grace: GRACE,
            status: None,
        }
    }

    /// Returns the process ID.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process numbers are small")
    }

    /// Returns the process, for access to its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns the mark of the process and all that it starts.
    pub fn mark(&self) -> &TestMark {
        &self.mark
    }

    /// Returns the exit status; `None` while the process runs. Does not wait.
    ///
    /// # Errors
    /// If the time limit was reached; the process and all that it started have been ended then.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Overdue> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("it is our child");
        }
        if self.status.is_some() || self.start.elapsed() < self.limit {
            return Ok(self.status);
        }

        // A launcher ends its job on SIGTERM, with messages that the test then shows.
        let running = self.mark.processes();
        mark::send(self.pid(), Signal::TERM);
        let end = Instant::now() + self.grace;
        while Instant::now() < end && self.child.try_wait().is_ok_and(|status| status.is_none()) {
            sleep(POLL_INTERVAL);
        }
        self.end();

        let killed = ExitStatus::from_raw(Signal::KILL.as_raw());
        Err(Overdue {
            status: self.status.unwrap_or(killed),
            limit: self.limit,
            running,
        })
    }

    /// Waits until the process ends. Returns the exit status, or fails as
    /// [`try_wait`](Self::try_wait).
    pub fn wait(&mut self) -> Result<ExitStatus, Overdue> {
        loop {
            match self.try_wait()? {
                Some(status) => return Ok(status),
                None => sleep(POLL_INTERVAL),
            }
        }
    }

    /// Waits until no process with the mark runs. Returns those that still run after a while.
    pub fn left_behind(&self) -> Vec<Process> {
        let end = Instant::now() + self.grace;
        loop {
            let left = self.mark.processes();
            if left.is_empty() || Instant::now() > end {
                return left;
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Kills the process and all that it started.
    fn end(&mut self) {
        // The process first, since a launcher's guard then ends the rest of the job. It fails if
        // the process has ended.
        let _ = self.child.kill();
        self.status = self.child.wait().ok();

        // Again and again: a process may start others before it receives the signal.
        let end = Instant::now() + self.grace;
        while !self.mark.kill().is_empty() && Instant::now() < end {
            sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Started {
    /// Ends the processes of a test that fails before it has waited for them.
    fn drop(&mut self) {
        if self.status.is_none() || thread::panicking() {
            self.end();
        }
    }
}

/// Returns a list of processes for a message, one per line.
pub(crate) fn listed(processes: &[Process]) -> String {
    processes
        .iter()
        .map(|process| format!("\n  {process}"))
        .collect()
}
