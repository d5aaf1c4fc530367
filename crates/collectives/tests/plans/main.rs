//! Runs all plans by a simulated executor, without processes, threads or shared memory.

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
