//! Rushmem over TCP sockets: the provider that needs no library and no special hardware.
//!
//! Each PE listens, connects to a peer at its first use, and serves its peers' requests in
//! software: puts and gets are copies, atomic operations are the CPU's. A thread that waits polls
//! the sockets; while none does, a service thread serves peers.
//!
//! - `transport` opens the sockets; `wire` starts the operations of contexts, which the `engine` of
//!   `rushmem-transport` orders, batches and completes;
//! - `progress` serves peers, for waiting threads and as the driver of the service thread;
//!   `service` is the state of that, and `expected` predicts which peer sends next;
//! - `shared` is the state that all wires share: the peers and the `link` to each of them;
//!   `connect` makes connections, and `establishment` ensures that two PEs have only one;
//! - `receiving` has the segments, replies and buffers that connections need to receive, and writes
//!   received bytes in whole words;
//! - `connection` is one end of a connection, which queues and sends the requests of this PE:
//!   `answers` has what answers them, `target` carries out those of the peer, `send_queue` has the
//!   data to send, and `low_water` sets how much must arrive before a sleeping thread wakes;
//! - `socket` sets the options of connections after their handshake;
//! - `proto` is the wire format and its state machines, without I/O;
//! - `addresses` has the addresses of this PE and orders those of a peer; `settings` has the limits
//!   and variables, `sys` the system calls.
//!
//! Limits: connections are not encrypted, and only the handshake is signed (`rushmem-connect`). A
//! connection that breaks ends the job. The kernel's zero-copy sends are not used. A child of
//! `fork` that executes no other program inherits the sockets: it must not use the library, and
//! while it lives only the launcher reports its parent's death to peers.

mod addresses;
mod answers;
mod connect;
mod connection;
mod establishment;
mod expected;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod link;
mod low_water;
mod progress;
mod proto;
mod receiving;
mod send_queue;
mod service;
mod settings;
mod shared;
mod socket;
mod sys;
mod target;
mod transport;
mod wire;

pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Found, Provider};

/// The entry of this crate in the list of providers.
pub const PROVIDER: Provider = Provider {
    name: "tcp",
    sources: rushmem_derive::digest_of_sources!(),
    opens_libraries: false,
    settings: settings::ALL,
    without_rdma: true,
    network_amos: false,
    available: |_| {
        let description = "sockets of the kernel's TCP".to_owned();
        Ok(Found {
            rdma: false,
            hardware_amos: false,
            description,
        })
    },
    parts: None,
    diagnose: addresses::diagnose,
    open: |args| open(args, Tuning::within(args.host.host_limit())),
};
