//! Progress of the networks: the service thread, and how the threads of a PE wait and wake each
//! other.
//!
//! A provider implements [`Driver`](service_thread::Driver) for its service thread. What differs
//! between providers (how long to sleep, when the service thread leaves the network to others) is a
//! constant that the provider supplies, the [`WaitLimits`](backoff::WaitLimits).

pub mod backoff;
pub mod cpu_sharing;
pub mod events;
pub mod flush_list;
mod schedule;
pub mod service_thread;
pub mod state;
pub mod timer;
pub mod wait;
pub mod wakeup;

/// The atomics and fences of `wakeup`, named in one place: the models in `ci/loom` compile that
/// file with loom's instead.
mod primitive {
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
}
