//! The environment variables that this provider reads, how its threads poll and sleep, and its
//! other limits, which tests make tiny.

use rushmem_transport::engine::message::MAX_IN_FLIGHT;
use rushmem_transport::machine::descriptors::{PerEndpoint, PerPeer};
use rushmem_transport::progress::backoff::WaitLimits;
use rushmem_transport::{Error, Host, Setting};
use std::time::Duration;

/// The variable that names the transports of UCX's.
pub(crate) const TLS: &str = "SHMEM_UCX_TLS";

/// The variable that sets the number of workers.
pub(crate) const WORKERS: Setting = Setting {
    name: "SHMEM_UCX_WORKERS",
    old_names: &[],
    default: Some("32"),
    meaning: "the largest number of UCX workers by which the contexts of a PE and the library issue; further contexts share them",
};

/// The settings that a user can change.
pub(crate) const ALL: &[Setting] = &[
    Setting {
        name: TLS,
        old_names: &[],
        default: None,
        meaning: "the transports that UCX may use, unless UCX_TLS says so; by default all but those of shared memory",
    },
    WORKERS,
];

/// Connections of two workers to a peer and of a peer's two to this PE, and one back for each of
/// these.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(6);
/// A worker over sockets: itself, and a connection each way between it and a peer.
pub(crate) const OF_WORKER: PerEndpoint = PerEndpoint { own: 6, per_peer: 2 };
/// Fewer are not enough for a small job; UCX crashes then.
pub(crate) const MIN_DESCRIPTORS: u64 = 128;

/// Returns the message that this PE has no descriptor left.
pub(crate) fn no_descriptors() -> String {
    let fewer = "lower, so that contexts share workers";
    format!("{}, or set {} {fewer}", DESCRIPTORS.exhausted(), WORKERS.name)
}

/// Most bytes of a batch of small operations: with its headers it fits one piece of UCX's.
pub(crate) const BATCH_NBYTES: usize = 4096;
/// The most bytes of a batch of small operations in a session, where a message costs less than what
/// it brings.
pub(crate) const SESSION_BATCH_NBYTES: usize = 32 << 10;

/// A waiter spins for some tens of microseconds; every event that may end its wait also ends its
/// sleep. A thread that polls more than 10 times within the shortest sleep of the service thread,
/// or a quarter as often in longer ones, waits. No timer completes what calls leave unfinished
/// beside sleeping threads, since most calls leave something.
pub(crate) const LIMITS: WaitLimits = WaitLimits {
    spins: 200,
    sleep: Duration::from_millis(10),
    often: Duration::from_micros(20),
    often_oversubscribed: Duration::from_millis(1),
    min_polls: 11,
    max_unpolled: u32::MAX,
    longest_sleeping: Duration::from_millis(20),
    flushes_beside_sleepers: false,
};

/// Limits of a transport.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// No more transfers and old values than this are due on a context, nor more requests that a PE
    /// is not known to have carried out.
    pub max_in_flight: usize,
    /// No more workers than this; contexts beyond share them.
    pub max_workers: usize,
    /// The time for which operations may go on with memory of callers that got an error for a loss;
    /// then the process ends.
    pub abandon_limit: Duration,
    /// The time for which attempts to connect to a PE are repeated.
    pub connect_limit: Duration,
    /// The heap is registered in blocks also where nothing locks it, for tests.
    pub heap_in_blocks: bool,
}

impl Tuning {
    /// Returns the usual limits, and those that the user sets.
    pub(crate) fn of(host: &dyn Host) -> Result<Tuning, Error> {
        let usual = Tuning::default();
        let max_workers = WORKERS.number(|name| host.variable(name));
        let max_workers = max_workers.map_err(|invalid| Error::Unavailable(invalid.to_string()))?;
        let max_workers = max_workers.unwrap_or(usual.max_workers);
        // As for the detection of silence.
        let connect_limit = host.host_limit() * 3 / 5;
        Ok(Tuning { max_workers, connect_limit, ..usual })
    }

    /// Requests of a context that a PE is not known to have carried out.
    pub(crate) fn window(&self) -> u32 {
        u32::try_from(self.max_in_flight).map_or(MAX_IN_FLIGHT, |most| most.min(MAX_IN_FLIGHT))
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            max_in_flight: 1024,
            max_workers: 32,
            abandon_limit: Duration::from_secs(10),
            connect_limit: Duration::from_secs(6),
            heap_in_blocks: false,
        }
    }
}

impl Tuning {
    /// Returns limits so small that every operation has to wait, for tests.
    pub fn tiny() -> Tuning {
        Tuning { max_in_flight: 2, max_workers: 2, heap_in_blocks: true, ..Tuning::default() }
    }
}
