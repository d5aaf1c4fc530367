//! What is reported of all PEs at the end of a job: [`statistics`] gathers their counters,
//! [`job_trace`] their traces, whose times [`clock`] makes comparable.

mod clock;
pub(crate) mod job_trace;
pub(crate) mod statistics;
