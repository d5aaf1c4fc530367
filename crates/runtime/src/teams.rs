//! The teams of this PE, those of active sets, and how PEs agree on a team that does not exist yet.
//!
//! It carries out no collective.

pub(crate) mod active_set;
pub(crate) mod agreement;
pub(crate) mod registry;
pub(crate) mod same_collective;
pub(crate) mod team;
