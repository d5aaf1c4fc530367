//! What a process knows of the meeting that it attends, and its limits of time.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::{host_limit, time_limit};

/// How long PEs wait for each other: the setting, its environment variable.
pub const LIMIT_VARIABLE: &str = "SHMEM_JOIN_LIMIT";

/// Its value where the variable is not set.
pub const LIMIT_DEFAULT: &str = "2m";

/// Limits of time that a meeting observes.
#[derive(Clone, Copy, Debug)]
pub struct MeetingLimits {
    /// The time for which PEs that have come wait for the others.
    pub join: Duration,
    /// The time for which the host of a PE, or of the meeting, may be silent.
    pub silence: Duration,
}

impl Default for MeetingLimits {
    fn default() -> MeetingLimits {
        let parse = |text| time_limit::parse(text).expect("a default is a limit");
        MeetingLimits { join: parse(LIMIT_DEFAULT), silence: parse(host_limit::DEFAULT) }
    }
}

/// A secret of a job: what its PEs know, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct JobSecret(Vec<u8>);

impl JobSecret {
    /// Returns these bytes as a secret.
    pub fn new(bytes: impl Into<Vec<u8>>) -> JobSecret {
        JobSecret(bytes.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobSecret")
    }
}

/// The place of a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeetingPlace {
    /// The addresses of the process that made a unique id.
    Addresses(Vec<SocketAddr>),
    /// The host and the port at which PE 0 serves it.
    Named(String),
}

/// One process's part in a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attendance {
    /// Where.
    pub place: MeetingPlace,
    /// The proof of membership.
    pub secret: JobSecret,
    /// The number of this PE.
    pub pe: u32,
    /// The number of PEs.
    pub n_pes: u32,
}

/// What made the meeting, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Speaker {
    UniqueId,
    Variables,
}
