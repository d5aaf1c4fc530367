//! The teams of this PE and of active sets, and the agreement of PEs on a new team. `coll` carries
//! out collectives on teams.

pub(crate) mod active_set;
pub(crate) mod agreement;
pub(crate) mod checked_group;
pub(crate) mod registry;
pub(crate) mod team;
