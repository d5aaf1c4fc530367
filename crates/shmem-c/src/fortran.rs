//! The Fortran routines of Rushmem: those of OpenSHMEM 1.4, the last version that specifies them,
//! and a few of other libraries (crates/shmem-c/spec/fortran.csv). The bodies read their arguments
//! and call the same functions of the runtime as the C functions do.
//!
//! Fortran compilers look for `SHMEM_PUT8` under the symbol `shmem_put8_`: gfortran, flang, ifx,
//! nvfortran and Cray's do so by default. Every symbol here has exactly one underscore at the end,
//! so programs cannot be compiled with gfortran's `-fsecond-underscore` or `-fno-underscoring`.
//!
//! Every argument is an address. The default INTEGER, LOGICAL and REAL have 4 bytes. A LOGICAL
//! result is 1 for `.TRUE.`, since each of these compilers tests at least the lowest bit. The
//! length of a CHARACTER argument is passed after all other arguments, so a routine that does not
//! use it does not declare it.

#[macro_use]
mod export;

mod amo;
mod coll;
mod lock;
mod memory;
mod order;
mod quad;
mod rma;
mod setup;
mod shmemx;
mod wait;
