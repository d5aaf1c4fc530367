//! The program's static data: where the executable's global and static variables are.
//!
//! They are symmetric objects too (OpenSHMEM 1.6, §6), so they must be reachable like the heap although
//! the linker placed them and the kernel mapped them privately. `program` finds them in the program
//! headers; `remap` puts shared memory in their place; `fork` gives child processes a `copy` of their
//! own; `views` maps those of the node's other PEs. Variables of shared libraries are not symmetric.

mod copy;
mod fork;
mod program;
mod remap;
mod signals;
mod views;

pub use fork::are_shared;
pub use program::Statics;
pub use remap::{Refusal, Remapped};
pub(crate) use views::Views;
