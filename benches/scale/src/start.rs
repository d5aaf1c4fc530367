//! The start of a large job: what the exchanges of records cost while PEs join, over the tree of
//! daemons of `oshrun`.
//!
//! Each PE sends a record to its daemon, each daemon those of its part of the tree to the one
//! above. The table of all records returns on the same way, and each daemon gives it to each of
//! its PEs.

use std::fmt::Write;

/// PEs of a node, and daemons below one daemon (`--fan-out`).
const PER_NODE: u64 = 64;
const FAN_OUT: u64 = 32;

const SIZES: [u64; 4] = [1 << 10, 1 << 14, 100_000, 1 << 20];

/// Bytes of a PE's records in the exchanges of a start, besides its address: what it is and has,
/// what it finds of each transport, two steps of the test of a transport.
const RECORDS: [u64; 4] = [137, 8, 2, 2];
/// Bytes of the address and the keys of a PE.
const ADDRESSES: [(&str, u64); 3] = [("tcp", 43), ("ofi", 95), ("ucx", 170)];

/// Microseconds of a message between daemons and of a byte, over Ethernet of 10 Gbit/s.
const MESSAGE: f64 = 30.0;
const NETWORK_BYTE: f64 = 1.0 / 1.25e3;
/// Of a byte that a daemon gives to a PE through a socket.
const LOCAL_BYTE: f64 = 1.0 / 2e3;

/// What an exchange takes.
#[derive(Clone, Copy, Default)]
struct ExchangeCost {
    /// Messages that the busiest daemon sends and receives.
    messages: u64,
    /// Bytes that it sends and receives over the network.
    network: u64,
    /// Bytes that it gives to its PEs.
    local: u64,
    /// Microseconds.
    time: f64,
}

/// An exchange of records of `nbytes` bytes among `n` PEs.
fn exchange(n: u64, nbytes: u64) -> ExchangeCost {
    let nodes = n.div_ceil(PER_NODE);
    let children = FAN_OUT.min(nodes - 1);
    let levels = nodes.ilog(FAN_OUT) + u32::from(nodes > 1);
    let table = n * nbytes;
    let (up, down, local) = (table, children * table, PER_NODE.min(n) * table);
    // The table passes one level after the other, through each child's connection in turn.
    let network = MESSAGE * f64::from(2 * levels)
        + NETWORK_BYTE * (up as f64 + f64::from(levels) * down as f64);
    let time = network + LOCAL_BYTE * local as f64;
    ExchangeCost { messages: 2 * (children + PER_NODE), network: up + down, local, time }
}

/// All exchanges of a start.
fn start(n: u64, address: u64) -> ExchangeCost {
    let sum = |one: ExchangeCost, other: ExchangeCost| ExchangeCost {
        messages: one.messages + other.messages,
        network: one.network + other.network,
        local: one.local + other.local,
        time: one.time + other.time,
    };
    RECORDS
        .iter()
        .chain([&address])
        .map(|&nbytes| exchange(n, nbytes))
        .fold(Default::default(), sum)
}

/// The page.
pub fn markdown() -> String {
    let mut text = format!(
        "\
# The start of a large job

PEs join a job by {} exchanges of records, on the tree of the daemons of `oshrun`, with {PER_NODE} PEs
on a node and {FAN_OUT} daemons below one. `cargo run --release -p rushmem-scale -- --doc docs/scale`
writes this page. Messages and bytes are those of the busiest daemon, which is `oshrun`: over the
network, and to the PEs of its node. The time is that of the exchanges over Ethernet of 10 Gbit/s and
local sockets of 2 GB/s; that of ssh and of the programs' loading comes on top. The sizes of records
are those that `SHMEM_DEBUG=2` shows.

No PE sends or receives more than its record and the table of all, and no connection of the transport
is made for it. What a node's daemon gives to its PEs is as large as the job times its PEs; it takes
most of the memory traffic, but less time than the copies of the table that a daemon sends to those
below.

| PEs | transport | messages | over the network | to the PEs of a node | time |
|---:|---|---:|---:|---:|---:|
",
        RECORDS.len() + 1
    );
    let mib = |nbytes: u64| nbytes as f64 / f64::from(1 << 20);
    for n in SIZES {
        for (transport, address) in ADDRESSES {
            let ExchangeCost { messages, network, local, time } = start(n, address);
            let (network, local, time) = (mib(network), mib(local), time / 1e6);
            let _ = writeln!(
                text,
                "| {n} | {transport} | {messages} | {network:.1} MiB | {local:.0} MiB | {time:.2} s |"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_grow_with_the_tree_alone() {
        let (small, large) = (start(1 << 14, 43), start(1 << 20, 43));
        assert_eq!(small.messages, large.messages);
        assert_eq!(large.network, 64 * small.network);
        assert_eq!(exchange(64, 100).network, 6400, "one node needs no other daemon");
    }
}
