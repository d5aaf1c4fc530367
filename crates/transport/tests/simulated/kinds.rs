//! The kinds of wires: those that the providers have, each with the capabilities and the habits of
//! its network. Limits are small, so that short programs reach them; a seed draws them.

use fastrand::Rng;
use rushmem_transport::engine::{NetworkAmos, PolledUntil, StreamOrder, WireCaps};
use rushmem_transport::{AmoOp, AmoSet, AmoWidth, Amos};

/// How a wire knows that writes are stored at their target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// The completion of a write says so.
    Unneeded,
    /// A flush, which [`begin_flush`](rushmem_transport::engine::Wire::begin_flush) starts.
    Message,
    /// A read after them, which the wire itself starts once they are complete.
    Read,
    /// The acknowledgment of a later request, by which the engine flushes the wire.
    Request,
}

/// What moves operations from a wire's queue to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// A device or the kernel.
    ByItself,
    /// The same, once the wire has passed on what it collects.
    Collected,
    /// The CPU that polls the wire.
    ByPolls,
}

/// A kind of wire.
#[derive(Clone, Copy, Debug)]
pub struct WireKind {
    pub caps: WireCaps,
    pub amos: Amos,
    pub has_keys: bool,
    pub flush: Flush,
    pub sending: Sending,
    /// The service receives replies and passes them on; otherwise the wire itself receives them.
    pub passes_replies: bool,
    /// A call that waits for an operation waits for all operations on its PE.
    pub one_token: bool,
    /// The target fetches long data of a message from the origin.
    pub fetches: bool,
    /// A fence has to wait until nothing is in flight.
    pub fence_waits: bool,
    /// PEs carry out batched operations for others of their node.
    pub proxies: bool,
    /// Bytes up to which the wire copies the data of an operation.
    pub copies_up_to: usize,
    /// Operations for which the queue to one PE has room.
    pub room: usize,
}

impl WireKind {
    /// Returns the maximum number of bytes of any batch.
    pub fn longest_batch(&self) -> usize {
        self.caps.longest_batch.max(self.caps.longest_session_batch)
    }

    /// Returns this kind over a network that carries out some atomic operations, or none, as the
    /// seed draws: all, or only those of 8 bytes on integers.
    fn with_drawn_amos(self, rng: &mut Rng, on_flags: bool) -> WireKind {
        let amos = one_of(rng, &[Amos::Software, Amos::Network]);
        let all = rng.bool();
        let operations = AmoSet::of(|op, width| {
            let is_usual = width == AmoWidth::Eight && !matches!(op, AmoOp::AddFloat | AmoOp::Xor);
            amos == Amos::Network && (op == AmoOp::CompareSwap || all || is_usual)
        });

        let amos_of_network = NetworkAmos {
            operations,
            on_flags,
        };

        WireKind {
            caps: WireCaps {
                amos: amos_of_network,
                ..self.caps
            },
            amos,
            ..self
        }
    }
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}

/// Returns a kind without any capability, with limits that the seed draws.
fn plain(rng: &mut Rng) -> WireKind {
    let batch = rng.usize(300..1200);
    WireKind {
        caps: WireCaps {
            batches: false,
            lone_puts_are_requests: false,
            lone_flags_are_writes: false,
            sessions: false,
            order: StreamOrder::Unordered,
            polled: PolledUntil::Acknowledged,
            flushes_free: false,
            flushes_in_wait: false,
            amos: NetworkAmos::default(),
            longest_signaled: one_of(rng, &[8, 64, 256, 1000]),
            longest_write: one_of(rng, &[64, 200, 1024, 1 << 20]),
            longest_read: one_of(rng, &[64, 200, 1024, 1 << 20]),
            longest_batch: batch,
            longest_session_batch: batch + rng.usize(..1000),
            window: rng.u32(2..24),
            max_unanswered: rng.usize(1..12),
            max_in_flight: rng.usize(2..32),
        },
        amos: Amos::Software,
        has_keys: false,
        flush: Flush::Message,
        sending: Sending::ByItself,
        passes_replies: false,
        one_token: false,
        fetches: false,
        fence_waits: false,
        proxies: rng.bool(),
        copies_up_to: one_of(rng, &[0, 8, 64, 300]),
        room: rng.usize(2..16),
    }
}

/// Returns a wire over connections, as `tcp`.
pub fn tcp(rng: &mut Rng) -> WireKind {
    let plain = plain(rng);
    WireKind {
        caps: WireCaps {
            batches: true,
            sessions: true,
            order: StreamOrder::Everything,
            polled: PolledUntil::Started,
            flushes_free: true,
            flushes_in_wait: true,
            longest_signaled: plain.copies_up_to.max(8),
            max_in_flight: usize::MAX,
            ..plain.caps
        },
        flush: Flush::Request,
        sending: Sending::Collected,
        passes_replies: true,
        ..plain
    }
}

/// Returns a wire whose messages and copies CPUs move, as `ucx` over sockets or shared memory.
pub fn ucx_by_cpu(rng: &mut Rng) -> WireKind {
    let by_nic = ucx_by_nic(rng);
    WireKind {
        caps: WireCaps {
            batches: true,
            lone_puts_are_requests: rng.bool(),
            flushes_free: false,
            flushes_in_wait: false,
            ..by_nic.caps
        },
        sending: Sending::ByPolls,
        ..by_nic
    }
}

/// Returns a wire over a NIC that writes and reads memory, as `ucx` over InfiniBand.
pub fn ucx_by_nic(rng: &mut Rng) -> WireKind {
    let plain = plain(rng);
    WireKind {
        caps: WireCaps {
            sessions: true,
            order: one_of(rng, &[StreamOrder::Unordered, StreamOrder::WritesByFence]),
            flushes_free: true,
            flushes_in_wait: true,
            longest_signaled: usize::MAX,
            longest_read: usize::MAX,
            ..plain.caps
        },
        has_keys: true,
        fetches: true,
        fence_waits: rng.bool(),
        ..plain
    }
    .with_drawn_amos(rng, false)
}

/// Returns a wire whose messages and copies CPUs move, as `ofi` over sockets.
pub fn ofi_by_cpu(rng: &mut Rng) -> WireKind {
    let plain = ofi_by_nic(rng);
    WireKind {
        caps: WireCaps {
            batches: true,
            sessions: true,
            lone_flags_are_writes: plain.caps.order > StreamOrder::Unordered && rng.bool(),
            polled: one_of(rng, &[PolledUntil::Over, PolledUntil::Acknowledged]),
            amos: NetworkAmos::default(),
            longest_signaled: one_of(rng, &[8, 256, 1000]),
            ..plain.caps
        },
        amos: Amos::Software,
        sending: Sending::ByPolls,
        ..plain
    }
}

/// Returns a wire over a NIC, as `ofi` over EFA or CXI.
pub fn ofi_by_nic(rng: &mut Rng) -> WireKind {
    let plain = plain(rng);
    let delivers = rng.bool();
    let orders = [StreamOrder::Unordered, StreamOrder::WritesBeforeMessages];
    WireKind {
        caps: WireCaps {
            order: one_of(rng, &orders),
            flushes_free: delivers,
            flushes_in_wait: delivers && rng.bool(),
            longest_signaled: 8,
            max_in_flight: usize::MAX,
            ..plain.caps
        },
        has_keys: true,
        flush: if delivers {
            Flush::Unneeded
        } else {
            Flush::Read
        },
        passes_replies: true,
        one_token: true,
        ..plain
    }
    .with_drawn_amos(rng, true)
}
