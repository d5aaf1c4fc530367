//! The environment variables of this provider, its limits of polling and sleeping, and its other
//! limits, which tests reduce.

use crate::info::FiInfo;
use crate::message::HEAD;
use rushmem_system::descriptors::{PerEndpoint, PerPeer};
use rushmem_system::setting::{self, Setting};
use rushmem_transport::engine::entries::ATTACHED_AND_SIGNAL;
use rushmem_transport::progress::backoff::{NAP, UNSIGNALED_SLEEP, WaitLimits};
use rushmem_transport::{Error, Host};
use std::time::Duration;

/// The variable that names libfabric's provider.
pub(crate) const PROVIDER: &str = "SHMEM_OFI_PROVIDER";
/// The variable that names libfabric's domain.
pub(crate) const DOMAIN: &str = "SHMEM_OFI_DOMAIN";

/// The variable that names libfabric's fabric.
pub(crate) const FABRIC: &str = "SHMEM_OFI_FABRIC";

/// libfabric's variables for the first and the last port at which its sockets listen.
pub(crate) const PORT_RANGE: (&str, &str) = ("FI_TCP_PORT_LOW_RANGE", "FI_TCP_PORT_HIGH_RANGE");

/// The variable that sets the number of endpoints.
pub(crate) const ENDPOINTS: &str = "SHMEM_OFI_ENDPOINTS";

/// The settings that a user can change.
pub(crate) const ALL: &[Setting] = &[
    Setting {
        name: PROVIDER,
        old_names: &[],
        default: None,
        meaning: "the provider of libfabric to use, as `fi_info` names it; by default its first that fits",
        check: Setting::ANY,
    },
    Setting {
        name: DOMAIN,
        old_names: &[],
        default: None,
        meaning: "the domain (network device) of libfabric to use; by default its first",
        check: Setting::ANY,
    },
    Setting {
        name: FABRIC,
        old_names: &[],
        default: None,
        meaning: "the fabric of libfabric to use, such as `efa-direct` of the provider `efa`; by default its first",
        check: Setting::ANY,
    },
    Setting {
        name: ENDPOINTS,
        old_names: &[],
        default: Some("16"),
        meaning: "the largest number of libfabric endpoints by which the contexts of a PE and the library issue; further contexts share them",
        check: |value| setting::positive(ENDPOINTS, value).map(drop),
    },
];

/// File descriptors for each peer. Two endpoints of this PE are connected to the peer's service,
/// two of the peer's to the service of this PE, and two connections go from that service back to
/// them.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(6);
/// File descriptors of an endpoint over sockets: its own, and a connection in each direction for
/// each peer.
pub(crate) const OF_ENDPOINT: PerEndpoint = PerEndpoint {
    own: 8,
    per_peer: 2,
};
/// The limit of file descriptors below which the transport does not open. It suffices for a small
/// job.
pub(crate) const MIN_DESCRIPTORS: u64 = 128;

/// Returns the message that this PE has no descriptor left.
pub(crate) fn no_descriptors() -> String {
    format!(
        "{}, or set {ENDPOINTS} lower, so that contexts share endpoints",
        DESCRIPTORS.exhausted_message()
    )
}

/// The sleeps of a waiter are short, since not every event ends them. A poll takes a microsecond,
/// or over twenty while much data arrives, so a thread that polls every 25 us counts as one that
/// waits; with 10 us, puts of 1 MiB took 1.25 times as long. The service thread serves peers itself
/// if a thread in a long call does not poll.
pub(crate) const LIMITS: WaitLimits = WaitLimits {
    sleep: NAP,
    often: Duration::from_micros(25),
    often_oversubscribed: Duration::from_millis(1),
    min_polls: 1,
    max_unpolled: 4,
    flushes_beside_sleepers: true,
    wakes_service: true,
};

/// Limits of a transport. Those of the fabric may be lower.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Maximum number of operations that an endpoint has in flight. Each has a cell of memory; with
    /// fewer, calls wait for room sooner.
    pub depth: usize,
    /// Maximum number of bytes of a transfer that is copied, so that its source may be reused at
    /// once.
    pub copy_up_to: usize,
    /// The same for a put whose call would otherwise wait for the target, for a round trip; unused
    /// if copies need registered memory. Without it, 4 PEs on two CPUs took 1.2 times as long to
    /// reduce 8 KiB.
    pub copy_before_waiting_up_to: usize,
    /// Maximum number of requests of an endpoint that one PE has not acknowledged, and of its
    /// requests whose answers have not arrived.
    pub max_requests: usize,
    /// Maximum number of endpoints; further contexts share them. Software providers take megabytes
    /// and several file descriptors for each.
    pub endpoints: usize,
    /// Maximum number of receives that are posted for messages of peers. Each has a buffer of the
    /// longest message; with fewer, bursts of messages wait in the provider or at their senders.
    pub receives: usize,
    /// Maximum number of bytes of a message.
    pub longest_message: usize,
    /// Maximum number of bytes of a message without attached data, or with results.
    pub longest_batch_message: usize,
    /// The time for which refused attempts to connect to a PE are repeated.
    pub connect_limit: Duration,
    /// Maximum number of bytes of a write or read. Longer transfers are divided.
    pub max_bytes: usize,
    /// Use optional features of the fabric: completions for the target's memory, the order of
    /// writes, and atomic operations besides compare-and-swap.
    pub trust: bool,
    /// Longest sleep of a thread that waits for a word that peers change, if each such change ends
    /// the sleep.
    pub max_sleep: Duration,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            depth: 256,
            copy_up_to: 4 << 10,
            copy_before_waiting_up_to: 16 << 10,
            max_requests: 64,
            endpoints: 16,
            receives: 256,
            longest_message: 64 << 10,
            longest_batch_message: 4 << 10,
            connect_limit: Duration::from_secs(6),
            max_bytes: 64 << 20,
            trust: true,
            max_sleep: UNSIGNALED_SLEEP,
        }
    }
}

/// Maximum number of bytes of all buffers for messages of peers, unless [`MIN_RECEIVES`] need more.
const RECEIVE_BYTES: usize = 128 << 10;
/// Minimum number of receives that are posted, unless [`Tuning::receives`] is lower.
const MIN_RECEIVES: usize = 16;

impl Tuning {
    /// Returns the default limits, changed by the settings of the user and the limit of the host.
    pub(crate) fn of(host: &dyn Host) -> Result<Tuning, Error> {
        let usual = Tuning::default();
        let endpoints = match host.variable(ENDPOINTS) {
            Some(value) => setting::positive(ENDPOINTS, &value).map_err(Error::Unavailable)?,
            None => usual.endpoints,
        };
        // The rest of the time is for ending the job, as for the loss of a silent PE.
        let connect_limit = host.host_limit() * 3 / 5;
        Ok(Tuning {
            endpoints,
            connect_limit,
            ..usual
        })
    }

    /// Returns the limits reduced to those of a provider.
    pub(crate) fn limited_to(&self, info: &FiInfo) -> Tuning {
        let longest_batch_message = self.longest_batch_message.min(info.longest_message());
        let longest_message = if info.streams() {
            self.longest_message.min(info.longest_message())
        } else {
            // No message is longer than a batch, so each fits a cell.
            longest_batch_message
        };

        let most_receives = MIN_RECEIVES.max(RECEIVE_BYTES / longest_message);
        Tuning {
            max_bytes: self.max_bytes.min(info.max_message),
            longest_message,
            longest_batch_message,
            receives: self.receives.min(most_receives),
            ..*self
        }
    }

    /// Returns the maximum number of bytes of the data that are attached to the put of a signal.
    pub(crate) fn longest_data(&self) -> usize {
        self.longest_message - HEAD - ATTACHED_AND_SIGNAL
    }

    /// Returns the maximum number of bytes of a batch, and of its results.
    pub(crate) fn longest_batch(&self) -> usize {
        self.longest_batch_message - HEAD
    }

    /// Returns limits so small that operations soon have to wait for room, without optional
    /// features, for tests.
    pub fn tiny() -> Tuning {
        Tuning {
            depth: 4,
            copy_up_to: 100,
            copy_before_waiting_up_to: 200,
            max_requests: 3,
            endpoints: 16,
            receives: 2,
            longest_message: 2_000,
            longest_batch_message: 400,
            connect_limit: Duration::from_secs(6),
            max_bytes: 10_000,
            trust: false,
            max_sleep: UNSIGNALED_SLEEP,
        }
    }
}
