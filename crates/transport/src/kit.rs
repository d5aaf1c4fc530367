//! The code that every provider needs besides its network: how its threads wait and wake each
//! other, what memory peers may access, and how it reports a loss.
//!
//! A provider shares one struct among its wires and its service thread, with a
//! [`NetworkPe`](network_pe::NetworkPe) and [`Peers`](peers::Peers). It implements
//! [`Driver`](engine::Driver) for its service thread and [`Wire`](crate::origin::Wire) for what
//! contexts issue. `transport-tcp` is an example: see its `shared.rs`, `progress.rs` and `wire.rs`.
//!
//! What differs between providers (how often to poll, how long to sleep) is a constant that the
//! provider supplies.

pub mod acks;
pub mod attempts;
pub mod backoff;
pub mod batch;
pub mod batching;
pub mod carried_out;
pub mod engine;
pub mod flush_list;
pub mod heap_blocks;
pub mod heap_probe;
pub mod lock;
pub mod loss;
pub mod message;
pub mod network_pe;
pub mod pe_map;
pub mod peers;
mod primitive;
pub mod progress_state;
pub mod requests;
pub mod segments;
pub mod shared_pe_map;
pub mod stream;
pub mod streams;
pub mod target;
pub mod timer;
pub mod variables;
pub mod violation;
pub mod wait;
pub mod wakeup;

/// Returns the name of this host, for messages.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
