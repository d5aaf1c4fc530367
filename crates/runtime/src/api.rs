//! The other routines of the standard, one module per chapter. They check their arguments, find the
//! PE's copy of an address and access it.

pub mod amo;
pub mod counters;
pub(crate) mod cray;
pub mod ctx;
pub mod heap;
pub mod local;
pub mod lock;
pub mod queries;
pub mod rma;
pub mod signal;
pub(crate) mod split;
pub mod team;
pub mod wait;
