//! The symmetric memory that is mapped in this process: turns an address and a PE into a pointer,
//! checks ranges, shares static data, and lays out the library's own flags. Nothing here uses a
//! network; the crate `communication` does.

pub mod accessible;
pub mod address;
pub mod areas;
pub mod buffers;
pub mod checks;
pub mod constants;
pub mod huge_pages;
pub mod images;
pub mod locked;
pub mod range;
pub mod shortage;
pub mod statics;
pub mod symmetric_location;
pub mod visibility;

/// The atomics of [`visibility`]. The models in `ci/loom` compile that file with loom's atomics
/// under this name.
mod primitive {
    pub(super) use std::sync::atomic::{Ordering, fence};
}
