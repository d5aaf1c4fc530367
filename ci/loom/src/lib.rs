//! The memory order that Rushmem promises, tried in every execution that the memory model allows.
//!
//! Loom cannot see memory shared between processes, so the runtime's files about waiting and
//! ordering, and that of `transport` about the service thread, are compiled here with loom's atomics
//! in the place of the standard library's. They are the same files: what passes here is what runs.
#![cfg(test)]
#![forbid(unsafe_code)]

mod memory {
    pub(crate) mod primitive {
        pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};
    }
}
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering, fence};
}
#[path = "../../../crates/runtime/src/net/doorbell.rs"]
mod doorbell;
#[path = "../../../crates/runtime/src/memory/visibility.rs"]
mod visibility;
#[path = "../../../crates/transport/src/progress/wakeup.rs"]
mod wakeup;

mod litmus;
mod progress;
mod wake_up;
