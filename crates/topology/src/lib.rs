//! The topology of one machine: packages, NUMA nodes, groups that share an L3 cache, cores and
//! NICs; and where each PE of the machine belongs.
//!
//! [`Topology`] is plain data. `hwloc` fills it from libhwloc, which is opened at run time and may
//! be absent (this machine, an XML file, a synthetic description), `sysfs` from what the kernel
//! shows without it. [`plan`] places the PEs of a machine and chooses their NICs: a pure function,
//! so that all processes get the same result for the same machine and number of PEs, without
//! communication. This crate starts, binds and moves nothing: launchers and the runtime do.

/// The variable that names the NIC that a PE should prefer, in the form of [`Nic::hint`].
pub const NIC_VARIABLE: &str = "SHMEM_NIC";

mod cpus;
mod groups;
mod hwloc;
mod live;
mod model;
mod nics;
mod placement;
mod sysfs;

pub use cpus::CpuSet;
pub use groups::GroupLimit;
pub use live::{cpus_at_once, has_choice, numa_node_of};
pub use model::{Level, Nic, NicKind, Numa, Topology};
pub use nics::assign;
pub use placement::{BindTo, MapBy, PePlacement, PlacementPlan, plan};
