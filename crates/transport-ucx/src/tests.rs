//! Tests of two PEs in one process: what their messages are, and what a loss leaves.

mod answered;
mod establish;
mod in_flight;
pub(crate) mod pair;
