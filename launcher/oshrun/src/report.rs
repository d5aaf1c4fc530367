//! Prints oshrun's own output: errors, the progress of the start, and on request what it would
//! start and when each phase was complete.

pub mod dry_run;
pub mod failure;
pub mod progress_line;
pub mod timings;
