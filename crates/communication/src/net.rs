//! The means to reach other PEs: the open network, the library's own flags in their memory, copies
//! between PEs, and the yield in a loop of calls by which a program polls.

pub mod copy;
mod doorbell;
pub mod flags;
pub mod network;
pub mod polls;

/// The atomics of [`doorbell`]. The models in `ci/loom` compile that file with loom's atomics under
/// this name.
mod primitive {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering, fence};
}
