//! The symmetric memory that is mapped in this process: turns an address and a PE into a pointer,
//! checks ranges, shares static data, and lays out the library's own flags. Nothing here uses a
//! network; see `net`.

pub(crate) mod accessible;
pub(crate) mod address;
pub(crate) mod areas;
pub(crate) mod checks;
pub(crate) mod constants;
pub(crate) mod huge_pages;
pub(crate) mod locked;
pub(crate) mod range;
pub(crate) mod shortage;
pub(crate) mod statics;
pub(crate) mod symmetric_location;
pub(crate) mod visibility;

/// The atomics of `net::doorbell` and `visibility`. The models in `ci/loom` compile these two files
/// with loom's atomics under this name.
pub(crate) mod primitive {
    pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};
}
