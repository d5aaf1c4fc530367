//! The list of the providers in this build, and the only place that names all of them. It contains
//! no logic: the runtime chooses among the providers. `crates/transport/src/engine/wire.rs` has the
//! steps to add one.
#![forbid(unsafe_code)]

use rushmem_transport::Provider;

/// Every provider, in the order in which `SHMEM_TRANSPORT=auto` prefers them.
///
/// UCX precedes libfabric. On InfiniBand and RoCE, which both support, UCX drives the NIC directly,
/// while libfabric uses a layer that emulates datagrams over connections. On a network that only
/// libfabric supports, UCX finds no device.
pub const ALL: &[Provider] = &[
    rushmem_transport_ucx::PROVIDER,
    rushmem_transport_ofi::PROVIDER,
    rushmem_transport_tcp::PROVIDER,
];
