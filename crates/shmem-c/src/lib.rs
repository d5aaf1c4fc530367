//! The C face of Rushmem: every function of OpenSHMEM 1.6 and its profiling twin. Beside it the
//! Fortran face, in a folder of its own.
//!
//! A file per chapter of the standard, and `shmemx` for what vendors add to it; each names C
//! functions and forwards them to the generic function of the runtime that does the work. The names
//! are composed by `export` from the type tables in `types`, so that no name, type list or body is
//! written twice. `cargo xtask symbols` compares what comes out with the tables, and the test in
//! `signatures` with our headers.
//!
//! Nothing here may hold state, check an argument or know how a call is carried out.
#![allow(clippy::missing_safety_doc, reason = "the contract of a C function is the standard's")]

#[cfg(test)]
#[macro_use]
mod signatures;
#[macro_use]
mod types;
#[macro_use]
mod export;

mod active_set;
mod amo;
mod coll;
mod ctx;
mod fortran;
mod lock;
mod longdouble;
mod memory;
mod order;
mod profiling;
mod rma;
mod setup;
mod shmemx;
mod signal;
mod team;
mod wait;
