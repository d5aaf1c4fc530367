//! The C functions of Rushmem: every function of OpenSHMEM 1.6 with its profiling name. The Fortran
//! routines are in the directory `fortran`.
//!
//! There is a file for each chapter of the standard, and `shmemx` for extensions of vendors. Each
//! names C functions and forwards them to the generic functions of the runtime. `export` composes
//! the names from the type tables in `types`, so that no name, type list or body is written twice.
//! `cargo xtask symbols` compares the result with the tables, and the test `signatures` with our
//! headers.
//!
//! Nothing here holds state. The runtime checks arguments; only what the runtime's types cannot
//! express is checked here, such as a null configuration or a negative number of elements.
#![allow(
    clippy::missing_safety_doc,
    reason = "the contract of a C function is the standard's"
)]
#![cfg_attr(
    test,
    allow(
        unused_imports,
        unused_macros,
        dead_code,
        reason = "in the test program, exported functions have only signatures"
    )
)]

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
#[cfg(librushmem)]
mod crash;
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
