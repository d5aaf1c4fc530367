//! Operations of PEs that share memory.

use super::super::suite::{Measured, Suite, alone, row};
use super::super::table::{Aim, Unit};

/// PEs that share their memory. How long a fork takes is the system's matter, and shmem-perf's static variables are small.
pub const ON_NODE: Suite = Suite {
    name: "on-node",
    sources: &["large"],
    programs: &[("large", 2)],
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
    launches: &[],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        row("time in a stream of put 8 2", "put of 8 bytes", PUT_BY_MEMCPY, &[Aim::OfTheirs(0.3)]),
        row(
            "time in a stream of put by contexts 8 2",
            "put of 8 bytes, private context",
            PUT_BY_MEMCPY,
            &[],
        ),
        row("time in a stream of p 8 2", "p of a long", PUT_BY_MEMCPY, &[Aim::OfTheirs(0.3)]),
        row(
            "time in a stream of p to static 8 2",
            "p to a static long",
            PUT_BY_MEMCPY,
            &[Aim::OfTheirs(0.1)],
        ),
        row(
            "time in a stream of put_nbi 8 2",
            "nbi put of 8 bytes",
            PUT_BY_MEMCPY,
            &[Aim::OfTheirs(0.3)],
        ),
        row("latency get 8 2", "get of 8 bytes", GET_BY_MEMCPY, &[Aim::OfTheirs(0.2)]),
        row("latency g 8 2", "g of a long", GET_BY_MEMCPY, &[Aim::OfTheirs(0.2)]),
        row("latency fetch_add 8 2", "fetch_add on a long", ADD_BY_CPU, &[Aim::OfTheirs(0.4)]),
        row("time in a stream of inc 8 2", "inc on a long", ADD_BY_CPU, &[Aim::OfTheirs(0.4)]),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "latency memcpy to peer 1048576 2",
            &[Aim::OfTheirs(1.1)],
        ),
        row(
            "latency get 1048576 2",
            "get of 1 MiB",
            "latency memcpy from peer 1048576 2",
            &[Aim::OfTheirs(1.1)],
        ),
        row(
            "latency p round trip 8 2",
            "flag ping-pong, round trip",
            "latency cache line round trip 8 2",
            &[Aim::OfTheirs(1.1), Aim::OfBare(1.1)],
        ),
        row("latency lock 0 2", "lock that nobody else wants", ADD_BY_CPU, &[]),
        alone("collective lock in turn 0 2", "lock, each of 2 PEs has it once", Unit::Time, &[]),
        alone("collective lock in turn 0 8", "lock, each of 8 PEs has it once", Unit::Time, &[]),
        alone("fork_unused", "fork with 4 GiB of .bss", Unit::Time, &[]),
        alone("fork_used", "the same, 64 MiB of it in use", Unit::Time, &[]),
    ],
    bare: "bare loop",
};

const PUT_BY_MEMCPY: &str = "time in a stream of memcpy to peer 8 2";
const GET_BY_MEMCPY: &str = "latency memcpy from peer 8 2";
const ADD_BY_CPU: &str = "latency CPU fetch_add 8 2";
