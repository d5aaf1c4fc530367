//! Tests of the memory order that Rushmem promises, in every execution that the memory model
//! allows.
//!
//! loom knows only its own atomics and threads. So the same source files that Rushmem uses are
//! compiled here with loom's atomics instead of those of the standard library: the runtime's files
//! about waiting and ordering, and that of `transport` about waking the service thread. Threads
//! stand for PEs.
#![cfg(test)]
#![forbid(unsafe_code)]

mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
}
#[path = "../../../crates/communication/src/net/doorbell.rs"]
mod doorbell;
#[path = "../../../crates/pe/src/memory/visibility.rs"]
mod visibility;
#[path = "../../../crates/transport/src/progress/wakeup.rs"]
mod wakeup;

mod litmus;
mod progress;
mod wake_up;
