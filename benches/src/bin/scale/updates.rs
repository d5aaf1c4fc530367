//! Small operations to random PEs of a large machine: the number of messages, and the memory of the
//! batches, for several ways to batch the operations.
//!
//! One PE is modeled, which issues many updates and then a quiet. All PEs do the same.

use std::fmt::Write as _;

use crate::machine::TWO_LEVEL;

/// The number of updates that a PE issues before its quiet.
const UPDATES: u32 = 1 << 20;
/// The bytes of an update in a batch: its head and a word.
const UPDATE_NBYTES: usize = 20;
/// The number of PEs of a node.
const PER_NODE: u32 = TWO_LEVEL.pes_per_node;
/// The numbers of PEs in the table.
const SIZES: [u32; 3] = [1 << 12, 1 << 16, 1 << 20];

/// A way to batch operations.
#[derive(Clone, Copy)]
struct Batching {
    name: &'static str,
    /// The bytes of a full batch.
    batch: usize,
    /// The number of destinations of batches in a job of `n` PEs.
    n_destinations: fn(u32) -> u32,
}

const ALL: [Batching; 3] = [
    Batching {
        name: "none",
        batch: UPDATE_NBYTES,
        n_destinations: |n| n,
    },
    Batching {
        name: "a PE",
        batch: 4 << 10,
        n_destinations: |n| n,
    },
    Batching {
        name: "a node",
        batch: 32 << 10,
        n_destinations: |n| n / PER_NODE,
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
        let n_destinations = (self.n_destinations)(n);

        // The number of operations that wait in the batch for each destination.
        let mut waiting = vec![0u32; n_destinations as usize];
        let mut messages = 0;
        let mut in_use = 0;
        let mut most = 0;

        // A xorshift generator: the same destinations in each run.
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..UPDATES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;

            let n_waiting = &mut waiting[(state % u64::from(n_destinations)) as usize];
            in_use += u64::from(*n_waiting == 0);
            most = most.max(in_use);

            *n_waiting += 1;
            if *n_waiting == room {
                *n_waiting = 0;
                in_use -= 1;
                messages += 1;
            }
        }
        // The quiet sends what is left.
        messages += in_use;

        let link = TWO_LEVEL.link(0, PER_NODE);
        let nbytes = f64::from(UPDATES) * UPDATE_NBYTES as f64;
        // The slower one of the CPU and the NIC limits the rate of messages.
        let each = link.gap.max(link.overhead);
        let time = (messages as f64 * each + nbytes * link.per_byte) / f64::from(UPDATES);
        BatchCost {
            messages,
            buffers: most * self.batch as u64,
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

`messages` are sent by each PE; `buffers` is the maximum memory of its batches; `time` is what
sending takes for each operation, over the simulated fabric of 200 Gbit/s.

From some thousand nodes on, batches for each node no longer fill. Batches for several nodes, which
one of them forwards, would then be fewer, but send each operation twice, which takes less time only
from some ten thousand nodes on. So Rushmem forwards no operation.

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
            let name = batching.name;
            let each = f64::from(UPDATES) / messages as f64;
            let mib = buffers as f64 / f64::from(1 << 20);
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
    fn longer_batches_are_fewer_messages() {
        let [none, for_pe, for_node] = ALL.map(|batching| batching.cost(1 << 14));
        assert_eq!(none.messages, u64::from(UPDATES));
        assert!(none.buffers < 100, "nothing waits");

        for (batching, cost) in ALL.into_iter().zip([none, for_pe, for_node]) {
            let if_all_were_full = UPDATES as usize / (batching.batch / UPDATE_NBYTES);
            assert!(
                cost.messages >= if_all_were_full as u64,
                "{}: {cost:?}",
                batching.name
            );
        }
        assert!(for_node.messages < for_pe.messages && for_node.buffers < for_pe.buffers);
    }

    #[test]
    fn a_destination_gets_what_is_left_at_the_end() {
        let one = Batching {
            name: "",
            batch: 1 << 40,
            n_destinations: |_| 3,
        };
        let BatchCost {
            messages, buffers, ..
        } = one.cost(64);
        assert_eq!((messages, buffers), (3, 3 << 40));
    }
}
