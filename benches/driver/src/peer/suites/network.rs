//! Transfers of PEs that have a network alone: our own over TCP, UCX, libfabric.

use super::super::suite::{Measured, Suite, alone, row};
use super::super::table::{Aim, Unit};

/// PEs that have nothing but TCP over the loopback interface.
pub const TCP: Suite = Suite {
    name: "tcp",
    sources: &["compute"],
    programs: &[],
    measured: &[
        Measured {
            title: "transfers",
            pes: 2,
            operations: "put,get,p",
            words: "--measures latency,bandwidth --sizes 8,1m --time 2",
        },
        Measured {
            title: "rates",
            pes: 2,
            operations: "put_nbi",
            words: "--measures rate --sizes 8 --window 4096 --time 0.5",
        },
    ],
    launches: &[],
    costs: &[("compute_cost", "compute")],
    carrier: Some("lo"),
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "tcp"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ],
    rows: &[
        row(
            "latency put 8 2",
            "put + quiet of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(0.7)],
        ),
        row(
            "latency get 8 2",
            "get of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(0.9)],
        ),
        row(
            "latency p round trip 8 2",
            "flag ping-pong, round trip",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "rate put_nbi 8 2",
            "nbi puts of 8 bytes, rate",
            Unit::Rate("M/s"),
            &[Aim::OfTheirs(10.0)],
        ),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "time in a stream of socket 1048576 2",
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "compute_cost",
            "what an idle peer costs a PE that computes",
            Unit::Percent,
            &[Aim::Below(2.0)],
        ),
        alone("latency socket round trip 8 2", "plain socket, round trip", Unit::Time, &[]),
        alone("bandwidth socket 1048576 2", "plain socket, 1 MiB blocks", Unit::Rate("GB/s"), &[]),
    ],
    bare: "plain socket",
};

/// The same by UCX's TCP on both sides.
pub const UCX: Suite = Suite {
    name: "ucx",
    costs: &[],
    sources: &[],
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "ucx"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ],
    rows: &[
        row(
            "latency put 8 2",
            "put + quiet of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(1.15)],
        ),
        row(
            "latency get 8 2",
            "get of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(1.15)],
        ),
        row(
            "latency p round trip 8 2",
            "flag ping-pong, round trip",
            "latency socket round trip 8 2",
            &[],
        ),
        alone(
            "rate put_nbi 8 2",
            "nbi puts of 8 bytes, rate",
            Unit::Rate("M/s"),
            &[Aim::OfTheirs(2.0)],
        ),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "time in a stream of socket 1048576 2",
            &[Aim::OfTheirs(1.05)],
        ),
        alone("latency socket round trip 8 2", "plain socket, round trip", Unit::Time, &[]),
        alone("bandwidth socket 1048576 2", "plain socket, 1 MiB blocks", Unit::Rate("GB/s"), &[]),
    ],
    ..TCP
};

/// By libfabric, beside what the same provider takes by itself. The other library has its TCP.
pub const OFI: Suite = Suite {
    name: "ofi",
    sources: &[],
    measured: &[
        Measured {
            title: "transfers",
            pes: 2,
            operations: "put,get,fetch_add",
            words: "--measures latency --sizes 8,1m --time 2",
        },
        Measured {
            title: "streams",
            pes: 2,
            operations: "put_nbi",
            words: "--measures bandwidth --sizes 8 --window 4096 --time 1",
        },
    ],
    costs: &[],
    carrier: None,
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "ofi"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ],
    rows: &[
        row(
            "latency put 8 2",
            "put + quiet of 8 bytes",
            "latency fi_write 8 2",
            &[Aim::OfBare(1.15)],
        ),
        row(
            "time in a stream of put_nbi 8 2",
            "put_nbi of 8 bytes, in a stream",
            "time in a stream of fi_write 8 2",
            &[Aim::OfBare(1.43)],
        ),
        row("latency get 8 2", "get of 8 bytes", "latency fi_read 8 2", &[Aim::OfBare(1.15)]),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "latency fi_write 1048576 2",
            &[Aim::OfBare(1.05)],
        ),
        row(
            "latency get 1048576 2",
            "get of 1 MiB",
            "latency fi_read 1048576 2",
            &[Aim::OfBare(1.05)],
        ),
        row("latency fetch_add 8 2", "fetch_add, beside a read", "latency fi_read 8 2", &[]),
    ],
    bare: "libfabric",
    ..TCP
};
