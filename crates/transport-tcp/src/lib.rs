//! Rushmem over sockets: the provider that works wherever there is an Ethernet.
//!
//! Each PE listens, connects to a peer when it first needs it, and serves its peers' requests in
//! software: puts and gets are copies, atomic operations are the CPU's. A service thread works while
//! the PE computes; a PE that waits polls by itself.
//!
//! - `proto` is the wire format and its state machines, without I/O;
//! - `inbound` and `outbound` are the two ends of a connection, `queue` what waits to be sent on one;
//! - `service` lets peers in and serves them, `thread` does so while nobody waits;
//! - `shared`, `endpoint` and `tcp` are what the traits of `rushmem-transport` are made of.
//!
//! What it does not do: it does not encrypt, and signs only the handshake; it does not reconnect (a
//! connection that breaks ends the job); it does not keep a word whole that lies in a transfer of more
//! than 64 bytes, until that transfer is complete; it sends no page without a copy by the kernel. A child
//! of `fork` that executes no other program inherits the sockets: it must not use the library, and
//! while it lives the death of its parent shows to peers by the launcher's word alone.

#[cfg(test)]
mod arbitrary;
mod area;
mod dial;
mod endpoint;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guest;
mod inbound;
mod interface;
mod outbound;
mod patience;
mod proto;
mod queue;
mod service;
mod shared;
mod sys;
mod tcp;
mod thread;
mod tuning;
mod vigil;

pub use tcp::open;
pub use tuning::Tuning;

use rushmem_transport::{Found, Provider};

/// The entry for a list of providers.
pub const PROVIDER: Provider = Provider {
    name: "tcp",
    opens_libraries: false,
    variables: &[(
        "SHMEM_TCP_INTERFACE",
        "the network interfaces that sockets may use, those of UCX and libfabric too, separated by commas; \
         default: any that has a route",
    )],
    without_rdma: true,
    available: |_| Ok(Found { rdma: false, description: "sockets of the kernel's TCP".to_owned() }),
    open: |with| open(with, Tuning::within(with.host.host_limit())),
};
