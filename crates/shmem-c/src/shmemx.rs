//! Extensions of vendors, as `shmemx.h` declares them. crates/shmem-c/spec/extensions.csv lists the
//! extensions of all vendors with their origins, crates/shmem-c/spec/shmemx.csv those that are
//! implemented.

mod coll;
pub(crate) mod counters;
pub(crate) mod heap;
mod nonblocking;
mod rma;
mod setup;
mod sync;
mod team;
pub(crate) mod timed;
pub(crate) mod unique_id;
