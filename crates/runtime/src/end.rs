//! The end of a PE: [`finalize`], [`at_exit`] if the library makes it, [`leave`] for an exit without
//! it, [`crash`] for a crash by a
//! signal, and [`threads`] for a process in which only threads of the library are left.
//! [`statistics`] and [`job_trace`] gather the counters and the traces of all PEs.

pub(crate) mod at_exit;
pub mod crash;
pub(crate) mod finalize;
pub(crate) mod job_trace;
pub(crate) mod leave;
pub(crate) mod statistics;
pub(crate) mod threads;
