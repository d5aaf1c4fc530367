//! The environment variables that this provider reads, how its threads poll and sleep, and its
//! other limits, which tests make tiny.

use crate::info::FiInfo;
use crate::message::HEAD;
use rushmem_transport::machine::descriptors::{PerEndpoint, PerPeer};
use rushmem_transport::progress::backoff::WaitLimits;
use rushmem_transport::{Error, Host, Setting};
use std::time::Duration;

/// The variable that names libfabric's provider.
pub(crate) const PROVIDER: &str = "SHMEM_OFI_PROVIDER";
/// The variable that names its domain.
pub(crate) const DOMAIN: &str = "SHMEM_OFI_DOMAIN";

/// The variable that names its fabric.
pub(crate) const FABRIC: &str = "SHMEM_OFI_FABRIC";

/// The variable that sets the number of endpoints.
pub(crate) const ENDPOINTS: Setting = Setting {
    name: "SHMEM_OFI_ENDPOINTS",
    old_names: &[],
    default: Some("16"),
    meaning: "the largest number of libfabric endpoints by which the contexts of a PE and the library issue; further contexts share them",
};

/// The settings that a user can change.
pub(crate) const ALL: &[Setting] = &[
    Setting {
        name: PROVIDER,
        old_names: &[],
        default: None,
        meaning: "the provider of libfabric to use, as `fi_info` names it; by default its first that fits",
    },
    Setting {
        name: DOMAIN,
        old_names: &[],
        default: None,
        meaning: "the domain (network device) of libfabric to use; by default its first",
    },
    Setting {
        name: FABRIC,
        old_names: &[],
        default: None,
        meaning: "the fabric of libfabric to use, such as `efa-direct` of the provider `efa`; by default its first",
    },
    ENDPOINTS,
];

/// Connections of two endpoints to a peer's service and of a peer's two to this one's, and one back
/// for each of these.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(6);
/// An endpoint over sockets: itself, and a connection each way between it and a peer.
pub(crate) const OF_ENDPOINT: PerEndpoint = PerEndpoint { own: 8, per_peer: 2 };
/// Fewer are not enough for a small job.
pub(crate) const MIN_DESCRIPTORS: u64 = 128;

/// Returns the message that this PE has no descriptor left.
pub(crate) fn no_descriptors() -> String {
    let fewer = "lower, so that contexts share endpoints";
    format!("{}, or set {} {fewer}", DESCRIPTORS.exhausted(), ENDPOINTS.name)
}

/// A waiter spins for some milliseconds, since the progress of a long transfer is not visible; its
/// sleeps are short, since not every event ends them. A poll takes a microsecond, or over twenty
/// while much data arrives, so a thread that polls every 25 us waits. The service thread also
/// serves beside a thread that does not poll within a long call, and no thread counts as sleeping.
pub(crate) const LIMITS: WaitLimits = WaitLimits {
    spins: 5_000,
    sleep: Duration::from_micros(50),
    often: Duration::from_micros(25),
    often_oversubscribed: Duration::from_millis(1),
    min_polls: 1,
    max_unpolled: 4,
    longest_sleeping: WaitLimits::LONGEST,
    flushes_beside_sleepers: true,
};

/// Limits of a transport. What the fabric offers may be less.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Operations that a context has in flight.
    pub depth: usize,
    /// Transfers up to this many bytes are copied, so that their source is free at once.
    pub copy_up_to: usize,
    /// The number of bytes up to which a put is copied if its caller would otherwise wait for the
    /// target's answer, unless all that is copied from is registered.
    pub copy_before_waiting_up_to: usize,
    /// Atomic operations that a context has in flight.
    pub amos: usize,
    /// Endpoints at the same time; contexts beyond share them. Software providers take megabytes
    /// and several descriptors for each.
    pub endpoints: usize,
    /// Buffers for messages of peers, at most.
    pub receives: usize,
    /// Bytes of the longest message.
    pub longest_message: usize,
    /// Bytes of the longest message of small operations.
    pub longest_batch_message: usize,
    /// The time for which attempts go on to connect to a PE that refuses.
    pub connect_limit: Duration,
    /// Longer transfers are cut.
    pub max_bytes: usize,
    /// Use completions that cover the target's memory, the fabric's order, and other atomic
    /// operations of its own than compare-and-swap, where it has them.
    pub trust: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            depth: 256,
            copy_up_to: 4 << 10,
            copy_before_waiting_up_to: 16 << 10,
            amos: 64,
            endpoints: 16,
            receives: 256,
            longest_message: 64 << 10,
            longest_batch_message: 4 << 10,
            connect_limit: Duration::from_secs(6),
            max_bytes: 64 << 20,
            trust: true,
        }
    }
}

/// Bytes of all buffers for messages of peers, at most, and how many there are even so.
const RECEIVE_BYTES: usize = 128 << 10;
const MIN_RECEIVES: usize = 16;

impl Tuning {
    /// Returns the usual limits, and those that the user sets.
    pub(crate) fn of(host: &dyn Host) -> Result<Tuning, Error> {
        let usual = Tuning::default();
        let endpoints = ENDPOINTS.number(|name| host.variable(name));
        let endpoints = endpoints.map_err(|invalid| Error::Unavailable(invalid.to_string()))?;
        let endpoints = endpoints.unwrap_or(usual.endpoints);
        // As for the detection of silence.
        let connect_limit = host.host_limit() * 3 / 5;
        Ok(Tuning { endpoints, connect_limit, ..usual })
    }

    /// As far as a provider allows it.
    pub(crate) fn over(&self, info: &FiInfo) -> Tuning {
        let longest_batch_message = self.longest_batch_message.min(info.longest_message());
        let longest_message = match info.streams() {
            true => self.longest_message.min(info.longest_message()),
            // A message that is longer than a cell for small operations is not sent.
            false => longest_batch_message,
        };
        Tuning {
            max_bytes: self.max_bytes.min(info.max_message),
            longest_message,
            longest_batch_message,
            receives: self.receives.min(MIN_RECEIVES.max(RECEIVE_BYTES / longest_message)),
            ..*self
        }
    }

    /// Returns the number of bytes of the longest data that a message brings.
    pub(crate) fn longest_data(&self) -> usize {
        self.longest_message - HEAD
    }

    /// Returns the maximum number of bytes of a batch, and of the answers to one.
    pub(crate) fn longest_batch(&self) -> usize {
        self.longest_batch_message - HEAD
    }

    /// Returns limits so small that every operation has to wait, without trust, for tests.
    pub fn tiny() -> Tuning {
        Tuning {
            depth: 4,
            copy_up_to: 100,
            copy_before_waiting_up_to: 200,
            amos: 3,
            endpoints: 16,
            receives: 2,
            longest_message: 2_000,
            longest_batch_message: 400,
            connect_limit: Duration::from_secs(6),
            max_bytes: 10_000,
            trust: false,
        }
    }
}
