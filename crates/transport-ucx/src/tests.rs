//! Tests of two PEs in one process: the messages that they exchange, and the state after a loss.

mod answered;
mod establish;
mod in_flight;
pub(crate) mod pair;
