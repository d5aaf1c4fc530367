//! Sizes and limits. Tests make them tiny; nothing else changes them.

use rushmem_transport::descriptors::PerPeer;
use std::time::Duration;

/// A connection to a peer, and one from it.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(2);

/// Limits of a transport.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Transfers up to this many bytes are copied and may wait for others to leave with.
    pub copy_up_to: usize,
    /// Copied bytes that wait on a connection leave when they are this many.
    pub send_at: usize,
    /// No more copied bytes than about this wait on a connection.
    pub most_waiting_bytes: usize,
    /// No more transfers by reference than this wait on a connection.
    pub most_waiting_transfers: usize,
    /// No more answers than this are due on a connection.
    pub most_due: usize,
    /// Bytes of the kernel's socket buffers; `None` leaves them to the kernel.
    pub socket_buffers: Option<usize>,
    /// Connections that have not proved themselves: no more than this, the oldest go first.
    pub most_guests: usize,
    /// How long such a connection may take.
    pub guest_limit: Duration,
    /// How long it may be impossible to let in a peer that is at the door.
    pub shut_limit: Duration,
    /// How long connecting to a peer may take.
    pub dial_limit: Duration,
    /// How long a peer's host may be silent when it owes a word.
    pub silence_limit: Duration,
    /// How often it is looked whether one is.
    pub round: Duration,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            copy_up_to: 4 << 10,
            send_at: 32 << 10,
            most_waiting_bytes: 64 << 10,
            most_waiting_transfers: 256,
            most_due: 4096,
            socket_buffers: None,
            most_guests: 128,
            guest_limit: Duration::from_secs(5),
            shut_limit: Duration::from_secs(10),
            dial_limit: Duration::from_secs(30),
            silence_limit: Duration::from_secs(6),
            round: Duration::from_millis(500),
        }
    }
}

impl Tuning {
    /// For a job that has to have ended within `limit` after a host fell silent.
    pub fn within(limit: Duration) -> Tuning {
        Tuning { silence_limit: limit * 3 / 5, round: limit / 20, ..Tuning::default() }
    }

    /// So small that everything waits for everything, for tests.
    pub fn tiny() -> Tuning {
        Tuning {
            copy_up_to: 64,
            send_at: 100,
            most_waiting_bytes: 200,
            most_waiting_transfers: 2,
            most_due: 2,
            // Less than a few of loopback's 64 KiB segments makes TCP itself wait for its timers.
            socket_buffers: Some(256 << 10),
            ..Tuning::default()
        }
    }
}
