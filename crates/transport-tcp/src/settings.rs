//! The environment variables of this provider, how its threads poll and sleep, and its other
//! limits, which tests reduce.

use crate::proto::MAX_DATA;
use rushmem_system::descriptors::PerPeer;
use rushmem_system::interfaces::{INTERFACES, PORTS, PortRange, Selection};
use rushmem_system::setting::Setting;
use rushmem_transport::progress::backoff::{UNSIGNALED_SLEEP, WaitLimits};
use std::time::Duration;

/// The settings that a user can change.
pub(crate) const ALL: &[Setting] = &[
    Setting {
        name: INTERFACES,
        old_names: &[],
        default: None,
        meaning: "the network interfaces that sockets may use, those of UCX and libfabric too: names and subnets, separated \
                  by commas, such as eth0,10.77.0.0/16,fd00::/8; with ^ before the list, all but these, such as \
                  ^docker0,virbr0; by default any that has a route",
        check: |value| Selection::parse(value).map(drop),
    },
    Setting {
        name: PORTS,
        old_names: &[],
        default: None,
        meaning: "the ports at which sockets listen, those of UCX and libfabric too, and at which the job of a unique id \
                  is joined, such as 50000-50999; each PE takes one or more on each address; by default any port",
        check: |value| PortRange::parse(Some(value)).map(drop),
    },
];

/// The descriptors of a connection.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(1);

/// Every event that may end a wait also ends its sleep. Threads that poll 26 times within the
/// shortest sleep of the service thread, or a quarter as often in long sleeps, count as polling
/// often; others compute and rarely call the library.
pub(crate) const LIMITS: WaitLimits = WaitLimits {
    sleep: UNSIGNALED_SLEEP,
    often: Duration::from_micros(8),
    often_oversubscribed: Duration::from_micros(100),
    min_polls: 26,
    max_unpolled: u32::MAX,
    flushes_beside_sleepers: true,
    wakes_service: false,
};

/// Limits of a transport.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Maximum number of bytes of a transfer that is copied, to be sent with others.
    pub copy_up_to: usize,
    /// The number of queued copied bytes from which on they are sent at once.
    pub send_at: usize,
    /// Maximum number of bytes of a batch.
    pub batch: usize,
    /// Maximum number of bytes of a batch in a session.
    pub session_batch: usize,
    /// Maximum number of unacknowledged messages of an origin to a PE.
    pub window: u32,
    /// Approximate maximum number of queued copied bytes of a connection.
    pub max_waiting_bytes: usize,
    /// Maximum number of queued transfers by reference of a connection.
    pub max_waiting_transfers: usize,
    /// Maximum number of unanswered requests of a connection.
    pub max_unanswered: usize,
    /// Bytes of the kernel's socket buffers; `None` leaves them to the kernel.
    pub socket_buffers: Option<usize>,
    /// Maximum number of unauthenticated connections. At this number one of them is dropped for a
    /// new one.
    pub max_unauthenticated: usize,
    /// The time after which an accepted connection is dropped if it is still unauthenticated.
    pub handshake_limit: Duration,
    /// The maximum time for which waiting connections of peers cannot be accepted; after it, this
    /// PE reports that it cannot use its network.
    pub refuse_limit: Duration,
    /// The maximum time for which attempts to connect are repeated if the peer hangs up, since it
    /// may lack descriptors. There is no limit while the peer's host accepts and the peer is
    /// silent.
    pub connect_limit: Duration,
    /// The maximum time for which attempts to connect are repeated after other failures, such as a
    /// refusal by the host, which may happen if many peers connect to that host.
    pub refusal_limit: Duration,
    /// The maximum time for which a peer's host may be silent while an answer is expected.
    pub silence_limit: Duration,
    /// The interval of the checks for silent hosts and expired handshakes.
    pub round: Duration,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            copy_up_to: 4 << 10,
            send_at: 32 << 10,
            batch: 8 << 10,
            session_batch: MAX_DATA,
            window: 1024,
            max_waiting_bytes: 64 << 10,
            max_waiting_transfers: 256,
            max_unanswered: 4096,
            socket_buffers: None,
            max_unauthenticated: 128,
            handshake_limit: Duration::from_secs(5),
            refuse_limit: Duration::from_secs(10),
            connect_limit: Duration::from_secs(30),
            refusal_limit: Duration::from_secs(6),
            silence_limit: Duration::from_secs(6),
            round: Duration::from_millis(500),
        }
    }
}

impl Tuning {
    /// Returns the limits for a job that must end within `limit` after a host has become silent.
    pub fn within(limit: Duration) -> Tuning {
        let most = limit * 3 / 5;
        Tuning {
            silence_limit: most,
            refusal_limit: most,
            connect_limit: limit,
            round: limit / 20,
            ..Tuning::default()
        }
    }

    /// Returns limits so small that operations soon have to wait for room, for tests.
    pub fn tiny() -> Tuning {
        Tuning {
            copy_up_to: 64,
            send_at: 100,
            batch: 600,
            session_batch: 600,
            window: 4,
            max_waiting_bytes: 200,
            max_waiting_transfers: 2,
            max_unanswered: 2,
            // With less than a few of loopback's 64 KiB segments, TCP itself waits for its timers.
            socket_buffers: Some(256 << 10),
            ..Tuning::default()
        }
    }
}
