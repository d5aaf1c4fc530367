//! The Fortran face of Rushmem: the routines of OpenSHMEM 1.4, the last version that lists them,
//! and a few that other libraries have (ci/spec/fortran.csv).
//!
//! Fortran compilers find `SHMEM_PUT8` under the symbol `shmem_put8_`: gfortran, flang, ifx,
//! nvfortran and Cray's do so by default. One underscore is appended whatever the name
//! holds, so gfortran's `-fsecond-underscore` and `-fno-underscoring` are not for programs that
//! call us.
//!
//! Every argument is an address. The default INTEGER, LOGICAL and REAL have 4 bytes, and `.TRUE.`
//! is 1, of which all these compilers look at the last bit at least. The length that a compiler
//! passes along with a CHARACTER argument comes after all others, so that who has no use for it
//! need not declare it.
//!
//! Nothing here may know how a call is carried out: bodies read their arguments and call the same
//! generic functions of the runtime as the C face does.

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
