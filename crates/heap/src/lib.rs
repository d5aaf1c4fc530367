//! Symmetric memory: where it is, how it is mapped, who hands it out.
//!
//! One memfd per node holds a slice for each of the node's PEs at a fixed stride; every PE maps the
//! whole of it once. So a peer's copy of an address is the own address plus a multiple of the
//! stride, one descriptor serves any number of PEs, and since the file has no name nothing can be
//! left behind.
//!
//! [`layout`] says where things are (pure), [`node`] maps them, [`statics`] moves the program's variables
//! there, [`allocator`] hands out the heap. This is the only crate that maps memory. It must never know teams,
//! transports or launchers, and it dereferences symmetric memory only in the allocator and where a child process
//! gets its copy of the static data.

pub mod allocator;
mod error;
pub mod layout;
mod mapping;
pub mod node;
mod numa;
pub mod statics;

pub use allocator::{Allocator, Place};
pub use error::Error;
pub use layout::Layout;
pub use node::NodeMemory;
pub use statics::Statics;
