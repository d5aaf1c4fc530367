//! The environment variables that this provider reads, how its threads poll and sleep, and its
//! other limits, which tests make tiny.

use crate::proto::MAX_DATA;
use rushmem_transport::Setting;
use rushmem_transport::machine::descriptors::PerPeer;
use rushmem_transport::progress::backoff::WaitLimits;
use std::time::Duration;

/// The variable that names the network interfaces.
pub(crate) const INTERFACE: &str = "SHMEM_TCP_INTERFACE";

/// The settings that a user can change.
pub(crate) const ALL: &[Setting] = &[Setting {
    name: INTERFACE,
    old_names: &[],
    default: None,
    meaning: "the network interfaces that sockets may use, those of UCX and libfabric too, separated by commas; by \
              default any that has a route",
}];

/// A connection.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(1);

/// A waiter spins for about a hundred microseconds, since each poll is a system call or two; every
/// event that may end its wait also ends its sleep. A thread that polls 25 times within the
/// shortest sleep of the service thread, or a quarter as often in longer ones, waits; others
/// compute and rarely call the library.
pub(crate) const LIMITS: WaitLimits = WaitLimits {
    spins: 200,
    sleep: Duration::from_millis(10),
    often: Duration::from_micros(8),
    often_oversubscribed: Duration::from_micros(100),
    min_polls: 26,
    max_unpolled: u32::MAX,
    longest_sleeping: Duration::from_millis(20),
    flushes_beside_sleepers: true,
};

/// Limits of a transport.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The maximum length of transfers that are copied and may wait to be sent with others.
    pub copy_up_to: usize,
    /// Copied bytes that wait on a connection leave when they are this many.
    pub send_at: usize,
    /// Most bytes of a batch.
    pub batch: usize,
    /// Most bytes of a batch in a session.
    pub session_batch: usize,
    /// Messages of an origin to a PE that are not acknowledged, at most.
    pub window: u32,
    /// No more copied bytes than about this wait on a connection.
    pub max_waiting_bytes: usize,
    /// No more transfers by reference than this wait on a connection.
    pub max_waiting_transfers: usize,
    /// The maximum number of requests without an answer on a connection.
    pub max_unanswered: usize,
    /// Bytes of the kernel's socket buffers; `None` leaves them to the kernel.
    pub socket_buffers: Option<usize>,
    /// Unauthenticated connections: at this limit the oldest is dropped for a new one.
    pub max_unauthenticated: usize,
    /// The time for which the handshake of such a connection may take.
    pub handshake_limit: Duration,
    /// The time for which it may be impossible to accept the connection of a peer.
    pub refuse_limit: Duration,
    /// The time for which connecting to a peer may take.
    pub connect_limit: Duration,
    /// The time for which attempts go on at a host that refuses, as one with many new peers does.
    pub refusal_limit: Duration,
    /// The time for which a peer's host may be silent when it owes an answer.
    pub silence_limit: Duration,
    /// The time between two checks whether a host is silent.
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
    /// Returns the settings for a job that must end within `limit` after a host fell silent.
    pub fn within(limit: Duration) -> Tuning {
        let most = limit * 3 / 5;
        let (silence_limit, refusal_limit) = (most, most);
        let (connect_limit, round) = (limit, limit / 20);
        Tuning { silence_limit, refusal_limit, connect_limit, round, ..Tuning::default() }
    }

    /// Returns limits so small that every operation has to wait, for tests.
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
            // Less than a few of loopback's 64 KiB segments makes TCP itself wait for its timers.
            socket_buffers: Some(256 << 10),
            ..Tuning::default()
        }
    }
}
