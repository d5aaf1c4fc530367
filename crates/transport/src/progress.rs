//! Progress of the networks: the service thread, and how the threads of a PE wait and wake each
//! other.
//!
//! The loop of the service thread is in the [engine](crate::engine::service_thread). What differs
//! between providers (how long to sleep, when the service thread leaves the network to others) is a
//! constant that the provider supplies, the [`WaitLimits`](backoff::WaitLimits).
//!
//! A change of how threads wait touches [`backoff`] (polls, yields and sleeps of all waits), and in
//! `crates/communication/src`: `sync/waits.rs` (what ends the sleep of a call), `net/doorbell.rs`
//! with its model in `ci/loom/src/wake_up.rs`, and `sync/word_tasks` with its model in
//! `ci/loom/src/word_tasks.rs`.

pub mod backoff;
pub mod cpu_sharing;
pub mod events;
pub mod flush_list;
pub(crate) mod schedule;
pub mod state;
pub mod timer;
pub(crate) mod wait;
pub mod wakeup;

/// The locks, atomics and fences of `flush_list` and `wakeup`, named in one place: the models in
/// `ci/loom` compile these files with loom's instead.
mod primitive {
    pub(crate) use rushmem_system::lock::lock;
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
}

#[cfg(test)]
mod tests;
