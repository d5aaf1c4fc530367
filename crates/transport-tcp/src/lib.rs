//! Rushmem over TCP sockets: the provider that needs no library and no special hardware.
//!
//! Each PE listens, connects to a peer at its first use, and serves its peers' requests in
//! software: puts and gets are copies, atomic operations are the CPU's. A thread that waits polls
//! the sockets; while none does, a service thread serves peers.
//!
//! - `transport` and `wire` implement the traits of `rushmem-transport`, whose engine (`origin`)
//!   orders, batches and completes what contexts issue;
//! - `progress` is the driver of the service thread; `service` serves peers, and `expected`
//!   predicts which of them sends next; `events` wakes threads that sleep;
//! - `network` is what wires share: `shared`, with the peers and the connections to them, and the
//!   service; `connect` makes connections, and `establishment` ensures that two PEs have only one;
//! - `receiving` has what connections receive into;
//! - `connection` is one end of a connection: `requests` has those of this PE, `target` carries out
//!   those of the peer, `send_queue` has what is to be sent, `heartbeat` measures silence,
//!   `low_water` says when a sleeping thread learns of what comes;
//! - `whole_words` writes what is received word by word, from the buffers of `bounce`; `whole_body`
//!   keeps what is used as a whole;
//! - `unauthenticated` is a connection whose other end has not proved its identity, and `socket`
//!   sets the options of all of them;
//! - `proto` is the wire format and its state machines, without I/O;
//! - `found` finds the addresses of this machine, `no_address` says why an interface has none, and
//!   `diagnosis` which of them a job uses; `settings` has the limits and variables, `sys` the
//!   system calls.
//!
//! What it does not do: it does not encrypt, and signs only the handshake; it does not reconnect (a
//! connection that breaks ends the job); it does not use the kernel's zero-copy sends. A child
//! of `fork` that executes no other program inherits the sockets: it must not use the library, and
//! while it lives only the launcher reports its parent's death to peers.

mod bounce;
mod connect;
mod connection;
mod diagnosis;
mod establishment;
mod events;
mod expected;
mod found;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod heartbeat;
mod low_water;
mod network;
mod no_address;
mod progress;
mod proto;
mod receiving;
mod requests;
mod send_queue;
mod service;
mod settings;
mod shared;
mod socket;
mod sys;
mod target;
mod transport;
mod unauthenticated;
mod whole_body;
mod whole_words;
mod wire;

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
    parts: None,
    diagnose: diagnosis::diagnose,
    open: |with| open(with, Tuning::within(with.host.host_limit())),
};
