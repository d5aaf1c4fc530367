//! Transfers of PEs that have a network alone: our own over TCP, UCX, libfabric.

use super::super::suite::{Measured, Suite};

/// PEs that have nothing but TCP over the loopback interface.
pub const TCP: Suite = Suite {
    name: "tcp",
    sources: &["compute"],
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
    costs: &[("compute_cost", "compute")],
    carrier: Some("lo"),
    environment: &over("tcp"),
    rows: include_str!("tcp.txt"),
    bare: "plain socket",
    ..Suite::EMPTY
};

/// The suite for UCX's TCP on both sides.
pub const UCX: Suite = Suite {
    name: "ucx",
    costs: &[],
    sources: &[],
    environment: &over("ucx"),
    rows: include_str!("ucx.txt"),
    ..TCP
};

/// By libfabric, beside what the same provider takes by itself. The other library has its TCP.
pub const OFI: Suite = Suite {
    name: "ofi",
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
    environment: &over("ofi"),
    rows: include_str!("ofi.txt"),
    bare: "libfabric",
    ..Suite::EMPTY
};

/// Returns the environment in which both have nothing but a network, ours by this transport.
const fn over(transport: &'static str) -> [(&'static str, &'static str); 4] {
    [
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", transport),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ]
}
