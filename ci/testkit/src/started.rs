//! A process and all that it starts, under a hard time limit: everything that tests launch.
//!
//! It does not depend on what the process is: launchers, PEs and shells are alike here.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::limits::{GLANCE, patient};
use crate::mark::{self, Process, TestMark};

/// The time for which a process has to end after SIGTERM, and what it started to go after it.
const GRACE: Duration = Duration::from_secs(20);

/// A process that was started. It and what it started end with this value, unless it has ended
/// before.
pub struct Started {
    child: Child,
    mark: TestMark,
    start: Instant,
    pub(crate) limit: Duration,
    pub(crate) grace: Duration,
    status: Option<ExitStatus>,
}

/// Why a process was ended.
#[derive(Debug)]
pub struct Overdue {
    /// The status with which it ended.
    pub status: ExitStatus,
    limit: Duration,
    running: Vec<Process>,
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not over after {:?}; still running: {}", self.limit, listed(&self.running))
    }
}

impl Started {
    /// Starts it. The limit is longer on slow machines.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    pub fn new(command: &mut Command, limit: Duration) -> Self {
        let mark = TestMark::new();
        mark.put_on(command);
        let child =
            command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        let (start, limit) = (Instant::now(), patient(limit));
        Self { child, mark, start, limit, grace: GRACE, status: None }
    }

    /// Returns its number.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process numbers are small")
    }

    /// Returns the process, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns the mark of all of its processes.
    pub fn mark(&self) -> &TestMark {
        &self.mark
    }

    /// Returns its status, if it has ended.
    ///
    /// # Errors
    /// When its time was over; then it has been ended.
    pub fn look(&mut self) -> Result<Option<ExitStatus>, Overdue> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("it is our child");
        }
        if self.status.is_some() || self.start.elapsed() < self.limit {
            return Ok(self.status);
        }
        let running = self.mark.processes();
        // A launcher ends its job on SIGTERM.
        mark::send(self.pid(), Signal::TERM);
        let end = Instant::now() + self.grace;
        while Instant::now() < end && self.child.try_wait().is_ok_and(|status| status.is_none()) {
            sleep(GLANCE);
        }
        self.end();
        let status = self.status.unwrap_or(ExitStatus::from_raw(Signal::KILL.as_raw()));
        Err(Overdue { status, limit: self.limit, running })
    }

    /// Returns its status, when it has ended.
    pub fn wait(&mut self) -> Result<ExitStatus, Overdue> {
        loop {
            match self.look()? {
                Some(status) => return Ok(status),
                None => sleep(GLANCE),
            }
        }
    }

    /// Returns what still runs a while after its end.
    pub fn left_behind(&self) -> Vec<Process> {
        let end = Instant::now() + self.grace;
        loop {
            let left = self.mark.processes();
            if left.is_empty() || Instant::now() > end {
                return left;
            }
            sleep(GLANCE);
        }
    }

    /// Kills it first, since a launcher's guard ends the rest, and then whatever is left.
    fn end(&mut self) {
        // A process that has ended cannot be killed.
        let _ = self.child.kill();
        self.status = self.child.wait().ok();
        let end = Instant::now() + self.grace;
        while !self.mark.kill().is_empty() && Instant::now() < end {
            sleep(GLANCE);
        }
    }
}

impl Drop for Started {
    /// Ends the processes of a test that fails half-way.
    fn drop(&mut self) {
        if self.status.is_none() || thread::panicking() {
            self.end();
        }
    }
}

/// Processes, one to a line.
pub(crate) fn listed(processes: &[Process]) -> String {
    processes.iter().map(|process| format!("\n  {process}")).collect()
}
