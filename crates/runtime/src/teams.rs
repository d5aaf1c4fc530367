//! The teams of this PE, the teams of active sets, how PEs agree on a team that does not exist yet,
//! and the check that all members are in the same collective. No collective is carried out here.

pub(crate) mod active_set;
pub(crate) mod agreement;
pub(crate) mod registry;
pub(crate) mod same_collective;
pub(crate) mod team;
