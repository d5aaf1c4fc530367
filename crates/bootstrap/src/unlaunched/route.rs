//! What a process must know to join a meeting: its address, the secret of the job, the number of
//! the PE, and the time limits.

use std::net::SocketAddr;
use std::time::Duration;

use rushmem_connect::Secret;

use crate::time_limit;

/// The setting of the time within which all PEs must join a meeting.
pub const LIMIT_VARIABLE: &str = "SHMEM_JOIN_LIMIT";

/// The default of [`LIMIT_VARIABLE`].
pub const LIMIT_DEFAULT: &str = "2m";

/// Time limits of a meeting.
#[derive(Clone, Copy, Debug)]
pub struct MeetingLimits {
    /// The time within which all PEs must have joined after the first one. A PE tries to reach the
    /// meeting for a few seconds longer, so that the meeting reports first which PEs are missing.
    pub join: Duration,
    /// The time after which a silent host of a PE, or of the meeting, counts as lost.
    pub silence: Duration,
}

impl Default for MeetingLimits {
    fn default() -> MeetingLimits {
        let parse = |text| time_limit::parse(text).expect("a default is a limit");
        MeetingLimits {
            join: parse(LIMIT_DEFAULT),
            silence: parse(time_limit::DEFAULT_HOST_LIMIT),
        }
    }
}

/// Where processes connect to join a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeetingAddress {
    /// The addresses of the process that made a unique id.
    Addresses(Vec<SocketAddr>),
    /// The host and the port at which PE 0 serves the meeting.
    Named(String),
}

/// The route of one process to a meeting, and its number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeetingRoute {
    /// The address of the meeting.
    pub address: MeetingAddress,
    /// The secret that proves the membership.
    pub secret: Secret,
    /// The number of this PE.
    pub pe: u32,
    /// The number of PEs that join the meeting.
    pub n_pes: u32,
}

/// What names the meeting to the processes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MeetingSource {
    UniqueId,
    Variables,
}
