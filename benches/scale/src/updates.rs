//! Small operations to random PEs of a large machine: the number of messages, and the memory of the
//! batches, for several ways to batch the operations.
//!
//! One PE is modeled, which issues many updates and then a quiet. All PEs do the same, so with two
//! hops a PE forwards as many operations as it issues.

use crate::machine::TWO_LEVEL;
use std::fmt::Write as _;

/// The number of updates that a PE issues before its quiet.
const UPDATES: u32 = 1 << 20;
/// The bytes of an update in a batch: its head and a word.
const UPDATE_NBYTES: usize = 20;
/// The number of PEs of a node.
const PER_NODE: u32 = TWO_LEVEL.pes_per_node;
/// The numbers of PEs in the table.
const SIZES: [u32; 5] = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];

/// A way to batch operations.
#[derive(Clone, Copy)]
struct Batching {
    name: &'static str,
    /// The bytes of a full batch.
    batch: usize,
    /// The number of destinations of batches in a job of `n` PEs.
    n_destinations: fn(u32) -> u32,
    /// The number of hops of an operation.
    n_hops: u32,
}

const ALL: [Batching; 4] = [
    Batching {
        name: "none",
        batch: UPDATE_NBYTES,
        n_destinations: |n| n,
        n_hops: 1,
    },
    Batching {
        name: "a PE",
        batch: 4 << 10,
        n_destinations: |n| n,
        n_hops: 1,
    },
    Batching {
        name: "a node",
        batch: 32 << 10,
        n_destinations: |n| n / PER_NODE,
        n_hops: 1,
    },
    Batching {
        name: "a row, then a node",
        batch: 32 << 10,
        n_destinations: |n| f64::from(n / PER_NODE).sqrt().ceil() as u32,
        n_hops: 2,
    },
];

/// The cost of the operations of a PE.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BatchCost {
    messages: u64,
    /// The maximum number of bytes of buffers in use at once.
    buffers: u64,
    /// Microseconds for each operation, if messages are sent without pauses.
    time: f64,
}

impl Batching {
    fn cost(&self, n: u32) -> BatchCost {
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
        // The slower one of the CPU and the NIC limits the rate of messages.
        let each = link.gap.max(link.overhead);
        let time = (messages as f64 * each + nbytes * link.per_byte) / f64::from(UPDATES);
        BatchCost {
            messages,
            buffers: hops * most * self.batch as u64,
            time,
        }
    }
}

/// Returns the section of the page, for jobs of up to `max_pes`.
pub fn markdown(max_pes: u32) -> String {
    let mut text = format!(
        "\
## Small operations

This section compares ways to batch small operations in large jobs. A PE issues {UPDATES} updates of 8
bytes to random PEs and completes them; each node has {PER_NODE} PEs.

| batches for | operation |
|---|---|
| none | Each operation is a message of its own. |
| a PE | A PE fills batches of 4 KiB, one for each other PE. |
| a node | A PE fills batches of 32 KiB, one for each node, in a [session](../transports.md#sessions). |
| a row, then a node | The nodes form a square. Batches of 32 KiB travel to a row, and from there to a node of it. Rushmem does not do this. |

`messages` are sent by each PE, including forwarded ones; `buffers` is the maximum memory of its
batches; `time` is what sending takes for each operation, over the simulated fabric of 200 Gbit/s.

From some thousand nodes on, batches for each node no longer fill, and two hops send fewer messages;
from some ten thousand nodes on they also take less time. Below that, two hops only save buffers,
and send twice the bytes, so Rushmem has no second hop.

| PEs | batches for | messages | operations in each | buffers | time |
|---:|---|---:|---:|---:|---:|
"
    );
    for n in SIZES.into_iter().filter(|&n| n <= max_pes) {
        for batching in ALL {
            let BatchCost {
                messages,
                buffers,
                time,
            } = batching.cost(n);
            let each = f64::from(batching.n_hops * UPDATES) / messages as f64;
            let (name, mib) = (batching.name, buffers as f64 / f64::from(1 << 20));
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
        let [none, for_pe, for_node, two_hops] = ALL.map(|batching| batching.cost(1 << 14));
        assert_eq!(none.messages, u64::from(UPDATES));
        assert!(none.buffers < 100, "nothing waits");
        let fullest = |batching: Batching| {
            u64::from(batching.n_hops * UPDATES) / (batching.batch / UPDATE_NBYTES) as u64
        };
        for (batching, cost) in ALL.into_iter().zip([none, for_pe, for_node, two_hops]) {
            assert!(
                cost.messages >= fullest(batching),
                "{}: {cost:?}",
                batching.name
            );
        }
        assert!(for_node.messages < for_pe.messages && for_node.buffers < for_pe.buffers);
        assert!(two_hops.buffers < for_node.buffers);
    }

    #[test]
    fn a_destination_gets_what_is_left_at_the_end() {
        let one = Batching {
            name: "",
            batch: 1 << 40,
            n_destinations: |_| 3,
            n_hops: 1,
        };
        let BatchCost {
            messages, buffers, ..
        } = one.cost(64);
        assert_eq!((messages, buffers), (3, 3 << 40));
    }
}
