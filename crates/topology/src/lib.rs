//! The topology of one machine (packages, NUMA nodes, groups of cores that share an L3 cache, cores
//! and NICs), and the placement of the machine's PEs on it.
//!
//! [`Topology`] is plain data. `hwloc` reads it from libhwloc: for this machine, an XML file or a
//! synthetic description. The library is opened at run time and may be absent; for this machine,
//! `sysfs` then reads what the kernel shows. [`plan`] places the PEs of a machine and chooses their
//! NICs. It is a pure function, so that all processes get the same result without communication.
//! The launcher and the runtime start and bind processes; this crate does not.

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
pub use groups::{GroupLimit, memory_kills};
pub use live::{cpus_at_once, has_choice, numa_node_of};
pub use model::{Level, Nic, NicKind, Numa, Topology};
pub use nics::assign;
pub use placement::{BindTo, MapBy, PePlacement, PlacementPlan, plan};

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
