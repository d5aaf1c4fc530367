//! The program's static data: the global and static variables of the executable.
//!
//! They are symmetric objects too (OpenSHMEM 1.6, §6), so peers must be able to access them like
//! the heap, although the linker has chosen their addresses and the kernel has mapped them
//! privately. `program` finds them in the program headers; `remap` maps shared memory in their
//! place; `fork` gives child processes a `copy` of their own; `slots`
//! assigns them their locations in the node's memory; `views` maps the static data of the node's
//! other PEs. Variables of shared libraries are not symmetric.

mod copy;
mod fork;
mod program;
mod remap;
mod slots;
mod views;

pub use fork::are_shared;
pub use program::{ConstantMemory, Statics};
pub use remap::{NotRemapped, Remapped};
#[cfg(test)]
pub(crate) use slots::StaticSlots;
pub use views::PeerStatics;
pub(crate) use views::{NodeFile, Views};
