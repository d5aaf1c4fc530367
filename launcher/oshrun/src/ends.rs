//! Ends all processes of a job: when the PEs have ended (`processes`, `descendants`), when oshrun
//! is killed (`guard`, `liveness`), and when it hangs (`watchdog`). `mark` identifies the processes
//! of the job, and `leftovers` removes files that they leave.

pub mod descendants;
pub mod guard;
pub mod leftovers;
pub mod liveness;
pub mod mark;
pub mod processes;
pub mod watchdog;
