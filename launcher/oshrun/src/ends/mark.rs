//! The mark of a job: an environment variable that identifies the processes of the job in /proc,
//! even if they have left the process group, the session and the parent of their PE.
//!
//! The variable is a colon-separated list. A nested job appends its mark to that of the outer job.
//! The variables of `rushmem_bootstrap::env` identify the PE; the mark does not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use rustix::time::ClockId;

/// The variable that holds the marks.
pub const VARIABLE: &str = "OSHRUN_JOB";

/// The mark of launch agents. An agent may leave a process behind on purpose, as ssh does with
/// `ControlPersist`, and other connections of the user may depend on that process, so a process
/// with this mark is not killed.
const AGENT: &str = "agent";

/// The value of the variable for the PEs of this process.
#[derive(Debug)]
pub struct JobMark(OsString);

impl JobMark {
    /// Returns a mark that is unique on this host.
    pub fn new() -> JobMark {
        let pid = std::process::id();
        // A later process may have the same ID, so the time distinguishes them. This clock never
        // goes back.
        let now = rustix::time::clock_gettime(ClockId::Boottime);
        JobMark(appended(&format!("{pid}.{}.{}", now.tv_sec, now.tv_nsec)))
    }

    /// Returns the mark in the environment of this process; `None` if there is none.
    pub fn inherited() -> Option<JobMark> {
        std::env::var_os(VARIABLE).map(JobMark)
    }

    /// Returns the value of the variable.
    pub fn value(&self) -> &OsStr {
        &self.0
    }

    /// Returns true if a process with this environment belongs to the job.
    pub fn is_in(&self, environment: &[u8]) -> bool {
        // The marks before the last one are those of outer jobs.
        let own = self.0.as_bytes().rsplit(|&byte| byte == b':').next();
        marks(environment).is_some_and(|mut marks| marks.any(|mark| Some(mark) == own))
    }
}

/// Returns the value of the variable for a launch agent.
pub fn for_agent() -> OsString {
    appended(AGENT)
}

/// Returns true if a process with this environment is a launch agent, or was started by one on this
/// host.
pub fn is_of_agent(environment: &[u8]) -> bool {
    marks(environment).and_then(Iterator::last) == Some(AGENT.as_bytes())
}

/// Appends a mark to those that this process inherited.
fn appended(mark: &str) -> OsString {
    let mut marks = std::env::var_os(VARIABLE).unwrap_or_default();
    if !marks.is_empty() {
        marks.push(":");
    }
    marks.push(mark);
    marks
}

/// Returns the marks in an environment in the format of /proc.
fn marks(environment: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|variable| {
        variable
            .strip_prefix(VARIABLE.as_bytes())?
            .strip_prefix(b"=")
    })?;
    Some(value.split(|&byte| byte == b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(value: &str) -> JobMark {
        JobMark(value.into())
    }

    #[test]
    fn a_job_within_a_job_belongs_to_both() {
        let environment = b"A=B\0OSHRUN_JOB=1.2.3:4.5.6\0OSHRUN_JOBS=7.7.7\0";
        assert!(mark("1.2.3").is_in(environment));
        assert!(mark("1.2.3:4.5.6").is_in(environment) && mark("4.5.6").is_in(environment));
        for other in ["1.2", "2.3", "7.7.7", "1.2.3:9.9.9", "4.5.60"] {
            assert!(!mark(other).is_in(environment), "{other}");
        }
        assert!(!mark("1.2.3").is_in(b"") && !mark("1.2.3").is_in(b"A=OSHRUN_JOB=1.2.3"));
    }

    #[test]
    fn an_agent_differs_from_the_pes_behind_it() {
        assert!(is_of_agent(b"OSHRUN_JOB=agent\0A=B") && is_of_agent(b"OSHRUN_JOB=1.2.3:agent"));
        assert!(!is_of_agent(b"OSHRUN_JOB=agent:1.2.3") && !is_of_agent(b"A=agent\0"));
    }

    #[test]
    fn marks_differ() {
        assert_ne!(JobMark::new().0, JobMark::new().0);
    }
}
