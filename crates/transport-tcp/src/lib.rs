//! Rushmem over sockets: the provider that works wherever there is an Ethernet.
//!
//! Each PE listens, connects to a peer when it first needs it, and serves its peers' requests in
//! software: puts and gets are copies, atomic operations are the CPU's. A service thread works while
//! the PE computes; a PE that waits polls by itself.
//!
//! - `endpoint` and `transport` are what the traits of `rushmem-transport` are made of;
//! - `progress` says who polls and who sleeps, `service` is what whoever polls does for the peers, and `expected` says which of
//!   them it looks at first;
//! - `shared` has the peers and the connections to them, `connect` makes these, `establishment` sees to it that two PEs have one,
//!   `news` wakes who sleeps;
//! - `connection` is what each end has of one: in `origin` what it asks, in `target` what it is asked, in `send_queue` what waits
//!   to be sent, in `heartbeat` for how long nothing came; `own` is what a PE asks of itself, without a connection;
//! - `whole_words` writes what is received word by word, and `bounce` has the buffers from which it does;
//! - `unauthenticated` is a connection whose other end has not proved itself, and `socket` how all of them are set;
//! - `proto` is the wire format and its state machines, without I/O;
//! - `found` says which addresses this machine has, `settings` has the limits and variables, `sys` the system
//!   calls, and `order` says what they order.
//!
//! What it does not do: it does not encrypt, and signs only the handshake; it does not reconnect (a
//! connection that breaks ends the job); it sends no page without a copy by the kernel. A child
//! of `fork` that executes no other program inherits the sockets: it must not use the library, and
//! while it lives only the launcher tells peers of its parent's death.

#[cfg(test)]
mod arbitrary;
mod bounce;
mod connect;
mod connection;
mod endpoint;
mod establishment;
mod events;
mod expected;
mod found;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod heartbeat;
mod order;
mod origin;
mod own;
mod progress;
mod proto;
mod send_queue;
mod service;
mod settings;
mod shared;
mod socket;
mod sys;
mod target;
mod transport;
mod unauthenticated;
mod whole_words;

pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Found, Provider};

/// The entry for a list of providers.
pub const PROVIDER: Provider = Provider {
    name: "tcp",
    opens_libraries: false,
    settings: settings::ALL,
    without_rdma: true,
    network_amos: false,
    available: |_| {
        let description = "sockets of the kernel's TCP".to_owned();
        Ok(Found { rdma: false, hardware_amos: false, description })
    },
    open: |with| open(with, Tuning::within(with.host.host_limit())),
};
