//! What every provider needs besides its network: how its threads wait and wake each other, what memory peers may access, and
//! how it reports a loss.
//!
//! | module | what it is |
//! |---|---|
//! | [`alone`] | the exclusion of an only user, who takes no lock, and of threads that claim what it uses |
//! | [`answers`] | requests that are messages: their order, and who has to be told what is carried out |
//! | [`attendance`] | who polls the network: threads that wait in the library, or the service thread |
//! | [`backoff`] | how a waiter spins, yields and sleeps, and for how long the service thread backs off |
//! | [`lock`] | mutexes that ignore poisoning |
//! | [`loss`] | the first loss of a PE, after which every verb fails |
//! | [`peers`] | the table of connected PEs; checks of addresses |
//! | [`segments`] | the memory of this PE that peers may use; checked accesses to it by this CPU |
//! | [`service`] | starts, wakes and joins the service thread |
//! | [`timer`] | the descriptor that wakes the service thread |
//! | [`unfinished`] | operations that calls leave incomplete, for the thread that polls next |
//! | [`variables`] | what a library of C is told by variables of the environment |
//!
//! A provider shares one struct among its endpoints and its service thread, with an [`Attendance`](attendance::Attendance), a
//! [`Loss`](loss::Loss), [`Peers`](peers::Peers) and [`Segments`](segments::Segments). `transport-tcp` is an example:
//! `shared.rs` has that struct, and `progress.rs` the waits and the loop of the service thread.
//!
//! The kit must never know a network library, a wire format or the runtime. What differs between providers (how often to poll,
//! how long to sleep) is a constant that the provider passes in.

pub mod alone;
pub mod answers;
pub mod attendance;
pub mod backoff;
pub mod lock;
pub mod loss;
pub mod peers;
mod primitive;
pub mod segments;
pub mod service;
pub mod timer;
pub mod unfinished;
pub mod variables;

/// The name of this host, for messages.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
