//! Small operations on random PEs of a large machine: how many messages carry them, and how much
//! memory they wait in, by whom they are gathered for.
//!
//! It counts what one PE does that issues many updates and then a quiet. All PEs do the same, so a
//! PE also forwards as many operations as it issues where these take two hops.

use crate::machine::TWO_LEVEL;
use std::fmt::Write as _;

/// Updates that a PE issues before its quiet.
const UPDATES: u32 = 1 << 20;
/// Bytes of an update in a batch: its head and a word.
const UPDATE_NBYTES: usize = 20;
/// The PEs of a node.
const PER_NODE: u32 = TWO_LEVEL.pes_per_node;
/// The sizes of the table.
const SIZES: [u32; 5] = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];

/// For whom operations wait together.
#[derive(Clone, Copy)]
struct Gathering {
    name: &'static str,
    /// Bytes of a batch.
    batch: usize,
    /// The number of destinations there that are in a job of `n` PEs.
    n_destinations: fn(u32) -> u32,
    /// The number of hops of an operation.
    n_hops: u32,
}

const ALL: [Gathering; 4] = [
    Gathering { name: "none", batch: UPDATE_NBYTES, n_destinations: |n| n, n_hops: 1 },
    Gathering { name: "a PE", batch: 4 << 10, n_destinations: |n| n, n_hops: 1 },
    Gathering { name: "a node", batch: 32 << 10, n_destinations: |n| n / PER_NODE, n_hops: 1 },
    Gathering {
        name: "a row, then a node",
        batch: 32 << 10,
        n_destinations: |n| f64::from(n / PER_NODE).sqrt().ceil() as u32,
        n_hops: 2,
    },
];

/// The cost of the operations of a PE.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gathered {
    messages: u64,
    /// Bytes of all buffers that are in use at once, at most.
    buffers: u64,
    /// Microseconds of one message after the other, for each operation.
    time: f64,
}

impl Gathering {
    fn of(&self, n: u32) -> Gathered {
        let room = (self.batch / UPDATE_NBYTES) as u32;
        let mut waiting = vec![0u32; (self.n_destinations)(n) as usize];
        let (mut messages, mut in_use, mut most) = (0u64, 0u64, 0u64);
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..UPDATES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = &mut waiting[(state % u64::from((self.n_destinations)(n))) as usize];
            in_use += u64::from(*at == 0);
            most = most.max(in_use);
            *at += 1;
            if *at == room {
                *at = 0;
                in_use -= 1;
                messages += 1;
            }
        }
        let hops = u64::from(self.n_hops);
        let messages = hops * (messages + in_use);
        let link = TWO_LEVEL.link(0, PER_NODE);
        let nbytes = hops as f64 * f64::from(UPDATES) * UPDATE_NBYTES as f64;
        // The CPU and the NIC send one message after the other, at the rate of the slower one.
        let each = link.gap.max(link.overhead);
        let time = (messages as f64 * each + nbytes * link.per_byte) / f64::from(UPDATES);
        Gathered { messages, buffers: hops * most * self.batch as u64, time }
    }
}

/// Returns the page, up to a size of job.
pub fn markdown(max_pes: u32) -> String {
    let mut text = format!(
        "\
# Small operations at scale

A PE issues {UPDATES} updates of 8 bytes on random PEs of a job with {PER_NODE} PEs on each node, and
completes them. `cargo run --release -p rushmem-scale -- --doc docs/scale` writes this page. The
operations are gathered for nobody, for each PE in batches of 4 KiB, in a session for each node in
batches of 32 KiB ([transports.md](../transports.md#sessions)), or, which Rushmem does not do, for a
row of a square of nodes and there for each node of the row. Messages are those of a PE, those that
it forwards included; buffers are what it needs at most; the time is that of sending, for each
operation, over the fabric of 200 Gbit/s of [collectives.md](collectives.md).

Two hops send fewer messages than batches for each node from some thousand nodes on, where these no
longer fill, and take less time from some ten thousand nodes on. Up to there they send twice the bytes
for smaller buffers alone, so Rushmem has no second hop.

| PEs | gathered for | messages | operations in each | buffers | time |
|---:|---|---:|---:|---:|---:|
"
    );
    for n in SIZES.into_iter().filter(|&n| n <= max_pes) {
        for gathering in ALL {
            let Gathered { messages, buffers, time } = gathering.of(n);
            let each = f64::from(gathering.n_hops * UPDATES) / messages as f64;
            let (name, mib) = (gathering.name, buffers as f64 / f64::from(1 << 20));
            let _ = writeln!(
                text,
                "| {n} | {name} | {messages} | {each:.1} | {mib:.1} MiB | {:.1} ns |",
                1e3 * time
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_travels_once_a_hop() {
        let [none, for_pe, for_node, two_hops] = ALL.map(|gathering| gathering.of(1 << 14));
        assert_eq!(none.messages, u64::from(UPDATES));
        assert!(none.buffers < 100, "nothing waits");
        let fullest = |gathering: Gathering| {
            u64::from(gathering.n_hops * UPDATES) / (gathering.batch / UPDATE_NBYTES) as u64
        };
        for (gathering, gathered) in ALL.into_iter().zip([none, for_pe, for_node, two_hops]) {
            assert!(gathered.messages >= fullest(gathering), "{}: {gathered:?}", gathering.name);
        }
        assert!(for_node.messages < for_pe.messages && for_node.buffers < for_pe.buffers);
        assert!(two_hops.buffers < for_node.buffers);
    }

    #[test]
    fn a_destination_gets_what_is_left_at_the_end() {
        let one = Gathering { name: "", batch: 1 << 40, n_destinations: |_| 3, n_hops: 1 };
        let Gathered { messages, buffers, .. } = one.of(64);
        assert_eq!((messages, buffers), (3, 3 << 40));
    }
}
