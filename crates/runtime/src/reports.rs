//! What is reported of all PEs at the end of a job: [`statistics`] gathers their counters,
//! [`job_trace`] their traces.

pub(crate) mod job_trace;
pub(crate) mod statistics;
