//! Chooses where the sockets of a job listen: on which interfaces of this machine, and at which
//! ports.
//!
//! - `selection`: the list of `SHMEM_TCP_INTERFACE`, which names interfaces and subnets.
//! - `addresses`: the addresses of this machine that the list admits, in the order in which peers
//!   try them, or the reason why there are none.
//! - `flags`: the names of the interfaces, and which of them are down.
//! - `ports`: the range of `SHMEM_TCP_PORTS`.
//!
//! docs/transports.md describes the rules, and `crates/shmem-c/tests/sites/sockets.rs` tests them.

mod addresses;
mod flags;
mod ports;
mod selection;

pub use addresses::{Need, addresses, interface_names};
pub use flags::down;
pub use if_addrs::{IfAddr, IfOperStatus, Ifv4Addr, Interface, get_if_addrs};
pub use ports::{PORTS, PortRange};
pub use selection::{INTERFACES, Selection};
