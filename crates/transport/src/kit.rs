//! What every provider needs besides its network: how its threads wait and wake each other, what peers may touch, and
//! how a loss is told.
//!
//! | module | what it is |
//! |---|---|
//! | [`amos`] | who carries out atomic operations, where the user chooses |
//! | [`attendance`] | who lets the network progress: threads that wait in the library, or the service thread |
//! | [`backoff`] | how a waiter spins, yields and sleeps, and for how long the service thread backs off |
//! | [`lock`] | mutexes whose holder may have panicked |
//! | [`loss`] | the first loss of a PE, which ends everything |
//! | [`peers`] | what is known of each PE once it is connected |
//! | [`segments`] | the memory of this PE that peers may use, with its bounds and the CPU's accesses to it |
//! | [`service`] | the service thread: started without signals, woken, joined |
//! | [`timer`] | the descriptor that wakes the service thread |
//! | [`unfinished`] | what calls leave unfinished, for whoever polls next |
//!
//! Nothing here may know a network library, a wire format or the runtime. What differs between providers (how many polls,
//! how long a sleep) is a constant of theirs that they pass in.

pub mod amos;
pub mod attendance;
pub mod backoff;
pub mod lock;
pub mod loss;
pub mod peers;
pub mod segments;
pub mod service;
pub mod timer;
pub mod unfinished;

/// The name of this host, for messages.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
