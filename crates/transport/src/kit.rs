//! The code that every provider needs besides its network: how its threads wait and wake each
//! other, what memory peers may access, and how it reports a loss.
//!
//! | module | what it is |
//! |---|---|
//! | [`acks`] | how targets acknowledge requests, most often on messages that are sent anyway |
//! | [`attempts`] | attempts to reach a PE that were refused, and when the next is to be made |
//! | [`backoff`] | how a waiter spins, yields and sleeps; how long the service thread backs off |
//! | [`batch`] | small operations that travel in one message, as bytes |
//! | [`batching`] | small operations that an origin batches to send them together |
//! | [`carried_out`] | the order in which a target carries out requests |
//! | [`engine`] | the service thread, which makes progress while no other thread polls |
//! | [`flush_list`] | operations that calls leave incomplete, for the thread that polls next |
//! | [`heap_blocks`] | the blocks in which a heap is registered that is locked by that |
//! | [`heap_probe`] | how much of a heap a network registers in blocks, for the doctor |
//! | [`network_pe`] | what every provider keeps of this PE |
//! | [`lock`] | mutexes that ignore poisoning |
//! | [`loss`] | the first loss of a PE, after which every verb fails |
//! | [`message`] | requests and replies as bytes |
//! | [`pe_map`] | a table with an entry for each PE that one thread uses |
//! | [`peers`] | the peers that were used; checks of addresses |
//! | [`progress_state`] | what threads that wait and the service thread know of each other |
//! | [`requests`] | requests that are messages, as their origin orders and counts them |
//! | [`segments`] | the memory of this PE that peers may use; checked accesses to it by this CPU |
//! | [`shared_pe_map`] | a table with an entry for each PE that threads use without a lock |
//! | [`stream`] | what a request says of itself |
//! | [`streams`] | what a target has carried out of all streams, and what it replies |
//! | [`target`] | what a target does with the requests that come |
//! | [`timer`] | the descriptor that wakes the service thread |
//! | [`violation`] | what a peer must not send |
//! | [`wait`] | how a thread waits for operations of its own |
//! | [`wakeup`] | who completes what calls leave unfinished, and when |
//! | [`variables`] | defaults of a C library, set in the environment |
//!
//! A provider shares one struct among its endpoints and its service thread, with a
//! [`ProgressState`](progress_state::ProgressState), a [`Loss`](loss::Loss),
//! [`Peers`](peers::Peers) and [`Segments`](segments::Segments). It implements
//! [`Driver`](engine::Driver) for its service thread and [`Waiter`](wait::Waiter) for its
//! endpoints. `transport-tcp` is an example: see its `shared.rs`, `progress.rs` and `endpoint.rs`.
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
