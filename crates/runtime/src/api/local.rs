//! This PE's own part of symmetric memory, for languages whose loads and stores must not meet those
//! of peers: C programs use plain ones.

pub use rushmem_transport::mem::{AtomicLoads, VolatileLoads, copy_elements, load, store};
