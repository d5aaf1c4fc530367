//! The other routines of the standard, one module per chapter. They check their arguments, find the
//! PE's copy of an address and access it.

pub mod amo;
pub(crate) mod cray;
pub mod ctx;
pub mod heap;
pub mod lock;
pub mod queries;
pub mod rma;
pub mod signal;
pub mod team;
pub mod wait;

/// This PE's own part of symmetric memory, for languages whose loads and stores must not meet those
/// of peers: C programs use plain ones.
pub mod local {
    pub use rushmem_transport::mem::{AtomicLoads, VolatileLoads, copy_elements, load, store};
}
