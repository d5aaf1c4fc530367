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
//!
//! To add a routine:
//!
//! 1. Write it in the module of its chapter in `crates/runtime/src/api` or `coll`, and its C
//!    function in the file of its chapter here.
//! 2. Add its row in `crates/shmem-c/spec` (`shmemx.csv` for an extension), from which the
//!    installation makes the headers, and its page in `manual.txt` with an example in
//!    `spec/examples`.
//! 3. `cargo xtask symbols PREFIX --accept` adds it to `spec/abi-1.txt`.
//! 4. Its Fortran form, if it has one, is in `fortran` and in `spec/fortran.csv`.
//! 5. Its Rust form is in `crates/shmem/src`, without any check that the runtime makes. An example
//!    in its documentation is a test of 2 PEs. What must not compile is in
//!    `crates/shmem/tests/compile_fail`. docs/rust-reference.md has a row for it.
//! 6. A program in `tests/programs` tests it.
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
mod rma;
mod setup;
mod shmemx;
mod signal;
mod team;
mod wait;
