//! Symmetric memory of this node: from an address and a PE to a pointer, checked ranges, static data, and where the library's
//! own flags are.
//!
//! It reaches nothing that is not mapped here, and knows no network.

pub(crate) mod address;
pub(crate) mod areas;
pub(crate) mod object;
pub(crate) mod range;
pub(crate) mod statics;
