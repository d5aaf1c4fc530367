//! The symmetric memory of this node: from an address and a PE to a pointer, checked ranges, static
//! data, and the locations of the library's own flags.
//!
//! It accesses only memory that is mapped here, and knows no network.

pub(crate) mod address;
pub(crate) mod areas;
pub(crate) mod checks;
pub(crate) mod huge_pages;
pub(crate) mod locked;
pub(crate) mod range;
pub(crate) mod shortage;
pub(crate) mod statics;
pub(crate) mod symmetric_location;
pub(crate) mod visibility;

/// The atomics of the library's own waiting and ordering, named in one place: the models in
/// `ci/loom` compile `doorbell` and `visibility` with loom's in their stead.
pub(crate) mod primitive {
    pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};
}
