//! Symmetric memory: its layout, its mapping and its allocation.
//!
//! One memfd per node contains a slice for each PE of the node at a fixed stride, and every PE maps
//! all slices as one range. The address of a peer's object in the heap is therefore the own address
//! plus a multiple of the stride, one descriptor serves any number of PEs, and nothing remains
//! after the job, since the file has no name. Heaps of reserved huge pages are in a second file.
//!
//! [`layout`] computes the locations (pure), [`Reservation`] finds addresses for them, [`node`]
//! maps the memory, [`statics`] moves the program's variables there, [`allocator`] allocates from
//! the heap, and [`pages`] maps pages of a block in place of pages of the program. This is the only
//! crate that maps symmetric memory. It depends on neither transports nor launchers. It reads and
//! writes symmetric memory only in the allocator, and to move or copy static data and pages of the
//! program.

pub mod allocator;
mod error;
pub mod huge_pages;
mod hugetlb;
mod kept_file;
pub mod layout;
mod mapping;
pub mod node;
mod numa;
pub mod pages;
mod published;
mod reservation;
pub mod statics;

pub use allocator::{AddressKind, Allocator, Misplaced, Overwritten, Unusable};
pub use error::{Error, Operation};
pub use hugetlb::{ReservedAt, ReservedPages};
pub use layout::Layout;
pub use node::{NodeMapping, NodeMemory};
pub use reservation::Reservation;
pub use statics::Statics;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
