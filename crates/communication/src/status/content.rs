//! The part of the status of a PE that its calls change one by one.

use rushmem_explain::status::{Finalizing, InFlight, Poll, Stage, Wait};
use std::time::Duration;

/// The duration after which the status of the first wait also says where in the program the call
/// is. Reading the debug information for that may take seconds of CPU time, which a wait that is
/// only slow must not cost.
const LOCATED: Duration = Duration::from_secs(5);

/// The same duration, for every wait, in a job with `SHMEM_STATS`, `SHMEM_TRACE` or the record of
/// last writes: its user wants to know the lines of calls, and accepts what they cost.
pub(super) const LOCATED_OBSERVED: Duration = Duration::from_secs(1);

/// The part of the status that calls change one by one, and the duration after which a wait says
/// more. The rest is collected whenever the status is written.
pub(crate) struct StatusContent {
    pub(super) pid_namespace: u64,
    pub(super) stage: Stage,
    pub(super) waits: Vec<NumberedWait>,
    /// The number of waits so far, which is the number of the last one.
    pub(super) count: u64,
    /// The operations in flight over the network, if they are known.
    pub(super) in_flight: Option<InFlight>,
    pub(super) finalizing: Option<Finalizing>,
    /// True if SIGURG makes this PE look for a call that it repeats (`polled_calls`).
    pub(super) finds_polls: bool,
    pub(super) poll: Option<Poll>,
    /// The duration after which the status of a wait also says where in the program the call is. It
    /// is doubled with each such wait, since reading the debug information may take a second of a
    /// CPU. [`LOCATED_OBSERVED`] stays as it is.
    pub(super) located: Duration,
}

pub(super) struct NumberedWait {
    pub(super) number: u64,
    pub(super) wait: Wait,
}

impl StatusContent {
    /// Returns the content of the status of a PE that starts.
    pub(crate) fn new() -> StatusContent {
        StatusContent {
            pid_namespace: 0,
            stage: Stage::Starting,
            waits: Vec::new(),
            count: 0,
            in_flight: None,
            finalizing: None,
            finds_polls: false,
            poll: None,
            located: LOCATED,
        }
    }
}
