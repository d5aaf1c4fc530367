//! The additions of vendors to the standard, as `shmemx.h` declares them: ci/spec/extensions.csv
//! says where each function comes from, ci/spec/shmemx.csv which of them are here.

mod coll;
pub(crate) mod counters;
pub(crate) mod heap;
mod nonblocking;
mod rma;
mod setup;
mod sync;
mod team;
pub(crate) mod unique_id;
