//! What OpenSHMEM does, above symmetric memory and below every language.
//!
//! One module per chapter of the standard: [`setup`], [`memory`], [`team`], [`ctx`], [`rma`], [`amo`],
//! [`signal`], [`coll`], [`wait`], [`order`], [`lock`]. Their functions take what the C functions take, after
//! the name of the call for messages; they check it, find the PE's copy of an address and hand the
//! access to `transport::mem`. On-node nothing else is on the path: no lock, no allocation, no
//! system call, no log.
//!
//! Beneath them: [`address`] translates, `statics` makes the program's variables symmetric, `job` is what
//! the process knows of the job, `internal` is the library's own symmetric area, `bell` and `patience`
//! are how PEs wait, `entered`, `channel` and `execute` carry out the plans of `collectives`, `mailbox` and
//! `agreement` let PEs agree without a team. `network`, `remote` and `neighbour` reach the memory of PEs
//! that is not mapped here. `check` is what `SHMEM_CHECK` asks for, [`stdio`] what the program holds back of its output.
//!
//! The runtime names no provider and no launcher, and knows nothing of C names or types.

pub mod address;
mod agreement;
pub mod alltoallv;
pub mod amo;
mod bell;
mod call;
mod channel;
mod check;
pub mod coll;
pub mod combine;
pub mod constants;
pub mod ctx;
mod entered;
pub mod env;
mod execute;
pub mod extension_constants;
mod internal;
mod job;
pub mod lock;
mod mailbox;
pub mod memory;
mod neighbour;
mod network;
mod object;
pub mod order;
mod patience;
mod primitive;
mod range;
mod refusal;
mod remote;
pub mod rma;
pub mod setup;
pub mod signal;
mod statics;
pub mod stdio;
pub mod team;
pub mod time;
mod visibility;
pub mod wait;

pub use call::Call;
pub use combine::Combine;
pub use ctx::{Context, World};
