//! Operations of PEs that share memory.

use super::super::suite::{Measured, Suite};

/// PEs that share their memory. How long a fork takes is the system's matter, and shmem-perf's
/// static variables are small.
pub const ON_NODE: Suite = Suite {
    name: "on-node",
    sources: &["large", "updates"],
    programs: &[("large", 2), ("updates", 2)],
    measured: &[
        Measured {
            title: "operations",
            pes: 2,
            operations: "put,get,g,fetch_add,p round trip,lock",
            words: "--measures latency,collective --sizes 8,1m --time 2",
        },
        Measured {
            title: "streams",
            pes: 2,
            operations: "put,put_nbi,p,inc",
            words: "--measures rate,bandwidth --sizes 8 --window 4096 --time 1.5",
        },
        Measured {
            title: "a private context",
            pes: 2,
            operations: "put",
            words: "--measures bandwidth --sizes 8 --window 4096 --contexts 1 --time 0.5",
        },
        Measured {
            title: "a static variable",
            pes: 2,
            operations: "p",
            words: "--measures rate --window 4096 --memory static --time 0.5",
        },
        Measured {
            title: "a lock",
            pes: 8,
            operations: "lock in turn",
            words: "--measures collective --time 0.5",
        },
    ],
    rows: include_str!("on-node.txt"),
    bare: "bare loop",
    ..Suite::EMPTY
};
