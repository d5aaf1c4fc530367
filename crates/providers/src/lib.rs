//! The list of the providers in this build, and the only place that names all of them. It contains
//! no logic: the runtime chooses among the providers.
#![forbid(unsafe_code)]

use rushmem_transport::Provider;

/// Every provider, in the order in which `SHMEM_TRANSPORT=auto` prefers them. UCX before libfabric:
/// where both have InfiniBand or RoCE, UCX drives it directly and libfabric through a layer that
/// makes datagrams of connections; what is libfabric's alone, UCX does not find.
pub const ALL: &[Provider] = &[
    rushmem_transport_ucx::PROVIDER,
    rushmem_transport_ofi::PROVIDER,
    rushmem_transport_tcp::PROVIDER,
];
