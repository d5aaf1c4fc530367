//! The routines of the standard and of extensions, one module per chapter. Collectives are in
//! `coll`, fence and quiet in `rushmem_communication`, initialization in `start` and finalization
//! in `exit`.

pub mod amo;
pub mod buffers;
pub(crate) mod cray_splits;
pub mod ctx;
pub mod heap;
pub mod limits;
pub mod lock;
pub mod queries;
pub mod requests;
pub mod rma;
pub mod signal;
pub mod team;
pub mod wait;

/// Loads, stores and copies of this PE's own symmetric memory, for languages in which a plain
/// access must not race with those of peers. C programs use plain accesses.
pub mod local {
    pub use rushmem_transport::mem::{AtomicLoads, VolatileLoads, copy_elements, load, store};
}
