//! Tests of several PEs in one process, each a value with threads of its own. They run the routines
//! of the standard by the same code as a job of processes, down to the copies and flags in shared
//! memory and the connections over loopback.
//!
//! `kit` makes the jobs. `model` has the collectives and the results that they must have. Planted
//! faults (`ci/xtask/src/mutants/pes.txt`) show what these tests find.

mod active_sets;
mod algorithms;
mod buffers;
mod ends;
mod finalize;
pub(crate) mod kit;
mod limits;
mod locks;
mod mailboxes;
mod model;
mod programs;
mod releases;
mod requests;
mod teams;
mod threads;
mod waits;
mod wakes;
