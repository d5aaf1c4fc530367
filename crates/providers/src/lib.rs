//! The list of transports that this build has: the composition root, the only place that names
//! every provider.
//!
//! It must never hold logic: choosing among the providers is the runtime's.
#![forbid(unsafe_code)]

use rushmem_transport::Provider;

/// Every provider, in the order in which `SHMEM_TRANSPORT=auto` would try them. None is built in yet:
/// PEs of one node share memory and need no transport.
pub const ALL: &[Provider] = &[];
