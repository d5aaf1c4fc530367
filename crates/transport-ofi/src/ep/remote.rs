//! The remote end of a transfer, as libfabric has it.
#![forbid(unsafe_code)]

use libfabric_sys as fi;

/// An address in a peer's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) pe: u32,
    pub(crate) at: fi::fi_addr_t,
    pub(crate) address: u64,
    pub(crate) key: u64,
}
