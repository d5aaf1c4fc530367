//! The symmetric memory of this node: from an address and a PE to a pointer, checked ranges, static
//! data, and the locations of the library's own flags.
//!
//! It accesses only memory that is mapped here, and knows no network.

mod accessible;
pub(crate) mod address;
pub(crate) mod allocations;
pub(crate) mod areas;
pub(crate) mod available;
pub(crate) mod blocks;
pub(crate) mod huge_pages;
pub(crate) mod locked;
pub(crate) mod object;
pub(crate) mod primitive;
pub(crate) mod range;
pub(crate) mod refusal;
pub(crate) mod statics;
pub(crate) mod symmetric_location;
pub(crate) mod visibility;
