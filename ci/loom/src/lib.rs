//! The memory order that Rushmem promises, tried in every execution that the memory model allows.
//!
//! Loom cannot see memory shared between processes, so the runtime's files about waiting and
//! ordering, and the kit's about the service thread and about what one thread uses without an
//! atomic read-modify-write, are compiled here with loom's atomics in the place of the standard
//! library's. They are the same files: what passes here is what runs.
#![cfg(test)]
#![forbid(unsafe_code)]

mod base {
    pub(crate) mod primitive {
        pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};
    }
}
/// Loom has no `membarrier`: a fence on either side orders what the kernel's barrier on both
/// orders.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

    pub(crate) fn has_heavy_barrier() -> bool {
        true
    }

    pub(crate) fn light_barrier() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy_barrier() {
        fence(Ordering::SeqCst);
    }
}
#[path = "../../../crates/transport/src/kit/alone.rs"]
mod alone;
#[path = "../../../crates/runtime/src/sync/bell.rs"]
mod bell;
#[path = "../../../crates/runtime/src/base/visibility.rs"]
mod visibility;
#[path = "../../../crates/transport/src/kit/wakeup.rs"]
mod wakeup;

mod exclusion;
mod litmus;
mod progress;
mod wake_up;
