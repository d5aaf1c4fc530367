//! Access to memory of other PEs off the fast path: the open transport, contexts and their
//! endpoints, order and completion, and the library's own flags. The transport is any
//! implementation of the trait `Transport`.

pub mod contexts;
pub mod copy;
mod doorbell;
pub mod flags;
pub mod network;
pub mod order;
pub mod polls;
pub mod remote;
pub mod strided;

/// The atomics of [`doorbell`]. The models in `ci/loom` compile that file with loom's atomics under
/// this name.
mod primitive {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering, fence};
}
