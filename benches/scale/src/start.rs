//! The start of a large job: what the exchanges of records cost while PEs join, over the tree of
//! daemons of `oshrun`.
//!
//! Each PE sends a record to its daemon, each daemon those of its part of the tree to the one
//! above. The table of all records, without what is equal, returns on the same way, and each daemon
//! gives it to each of its PEs, or to the first of its node.

use std::fmt::Write;

/// PEs of a node, and daemons below one daemon (`--fan-out`).
const PER_NODE: u64 = 64;
const FAN_OUT: u64 = 32;

const SIZES: [u64; 4] = [1 << 10, 1 << 14, 100_000, 1 << 20];

/// Bytes of a PE's records in the exchanges of a start whose records all PEs get: what it is and
/// has, what it finds of each transport, three steps of the test of a transport, the end.
const RECORDS: [u64; 6] = [84, 8, 2, 2, 2, 0];
/// Bytes of the address and the keys of a PE, and what is left of them in a table of many: bytes
/// that are equal to those of the PE before are not sent.
const ADDRESSES: [(&str, u64, u64); 3] = [("tcp", 42, 6), ("ofi", 97, 67), ("ucx", 169, 148)];
/// What is left of the record of a PE that is bound to CPUs of its own. Those of other PEs differ
/// between nodes alone, by as much.
const BOUND: u64 = 14;
/// Bytes around a table.
const AROUND: u64 = 12;

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

/// Who gets the table of an exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receivers {
    All,
    FirstOfNode,
}

/// An exchange among `n` PEs of records of `nbytes` bytes, which are `table` bytes together.
fn exchange(n: u64, nbytes: u64, table: u64, to: Receivers) -> ExchangeCost {
    let nodes = n.div_ceil(PER_NODE);
    let children = FAN_OUT.min(nodes - 1);
    let levels = nodes.ilog(FAN_OUT) + u32::from(nodes > 1);
    let receivers = if to == Receivers::All { PER_NODE.min(n) } else { 1 };
    let (up, down, local) = (n * nbytes, children * table, receivers * table);
    // The table passes one level after the other, through each child's connection in turn.
    let network = MESSAGE * f64::from(2 * levels)
        + NETWORK_BYTE * (up as f64 + f64::from(levels) * down as f64);
    let time = network + LOCAL_BYTE * local as f64;
    let messages = 2 * children + PER_NODE + receivers;
    ExchangeCost { messages, network: up + down, local, time }
}

/// All exchanges of a start over a transport; with PEs that are bound or not.
fn start(n: u64, (_, address, rest): (&str, u64, u64), bound: bool) -> ExchangeCost {
    let sum = |one: ExchangeCost, other: ExchangeCost| ExchangeCost {
        messages: one.messages + other.messages,
        network: one.network + other.network,
        local: one.local + other.local,
        time: one.time + other.time,
    };
    let differing = BOUND * if bound { n } else { n.div_ceil(PER_NODE) };
    let to_all = RECORDS.iter().enumerate().map(|(which, &nbytes)| {
        let table = AROUND + nbytes + if which == 0 { differing } else { 0 };
        exchange(n, nbytes, table, Receivers::All)
    });
    let addresses = exchange(n, address, AROUND + address + n * rest, Receivers::FirstOfNode);
    to_all.chain([addresses]).fold(Default::default(), sum)
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

No PE receives the records of all others as they are. Equal records of consecutive PEs are sent once,
and of a record that differs only the bytes between those that it shares with the one before. The
addresses and keys go to the first PE of each node alone, which keeps the table for the others. With
512 PEs on 16 virtual nodes over TCP, the first PE receives 3.3 KB and each other one 224 bytes, where
all records are 95 KB; [a test](../../crates/shmem-c/tests/scale.rs) counts them. The record of a PE
that is bound to CPUs of its own differs by about {BOUND} bytes (the column bound).

| PEs | transport | messages | over the network | to the PEs of a node | time | time, bound |
|---:|---|---:|---:|---:|---:|---:|
",
        RECORDS.len() + 1
    );
    let mib = |nbytes: u64| nbytes as f64 / f64::from(1 << 20);
    for n in SIZES {
        for transport in ADDRESSES {
            let ExchangeCost { messages, network, local, time } = start(n, transport, false);
            let (network, local, time) = (mib(network), mib(local), time / 1e6);
            let (name, bound) = (transport.0, start(n, transport, true).time / 1e6);
            let _ = writeln!(
                text,
                "| {n} | {name} | {messages} | {network:.1} MiB | {local:.1} MiB | {time:.2} s | {bound:.2} s |"
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
        let start = |n| start(n, ADDRESSES[0], false);
        let (small, large) = (start(1 << 14), start(1 << 20));
        assert_eq!(small.messages, large.messages);
        assert!(large.network.abs_diff(64 * small.network) < large.network / 50);
        let one = exchange(64, 100, 100, Receivers::All);
        assert_eq!((one.network, one.local), (6400, 6400), "one node needs no other daemon");
        assert_eq!(exchange(64, 100, 100, Receivers::FirstOfNode).local, 100);
    }
}
