//! The teams of this PE and of active sets, the agreement of PEs on a new team, and the check that
//! all members are in the same collective. `coll` carries out collectives on teams.

pub(crate) mod active_set;
pub(crate) mod agreement;
pub(crate) mod registry;
pub(crate) mod same_collective;
pub(crate) mod team;
