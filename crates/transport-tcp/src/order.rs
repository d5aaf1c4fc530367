//! The memory order across PEs: what a thread of this process did before it sent something comes
//! before what any thread of this process does after it received something that a peer sent because
//! of it, even if that came by way of other peers.
//!
//! The kernels and the peers ensure that, but they are not part of the program to which the memory
//! model applies. A count of what is sent, which the receiver reads, states the order within it.

use std::sync::atomic::{AtomicU32, Ordering};

static SENT: AtomicU32 = AtomicU32::new(0);

/// Records that the calling thread is about to send.
#[inline]
pub(crate) fn sending() {
    // A thread that reads a later count synchronizes with this thread, too, since no count is
    // stored without the one before.
    SENT.fetch_add(1, Ordering::Release);
}

/// Records that the calling thread has received data.
#[inline]
pub(crate) fn received() {
    SENT.load(Ordering::Acquire);
}
