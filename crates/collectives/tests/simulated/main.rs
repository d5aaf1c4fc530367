//! All plans, run by a simulated executor: no process, no thread, no shared memory.

mod call;
mod clock;
mod depth;
mod every_size;
mod faults;
mod huge_teams;
mod memory;
mod network;
mod programs;
mod schedule;
mod simulator;
mod value;
mod volume;
