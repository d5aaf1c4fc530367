//! Collectives, with shared memory and over TCP.

use super::super::suite::{Measured, Suite};

/// Collectives of PEs that share their memory, on the same number of processors and on fewer.
pub const COLLECTIVES: Suite = Suite {
    name: "collectives",
    sources: &["bare_reduction"],
    programs: &[("bare_reduction", 2), ("bare_reduction", 8), ("bare_reduction", 16)],
    measured: &[
        on_active_sets("2 PEs", 2),
        on_active_sets("8 PEs", 8),
        on_active_sets("16 PEs", 16),
    ],
    rows: include_str!("collectives.txt"),
    bare: "bare copies",
    ..Suite::EMPTY
};

/// The suite for PEs that have nothing but TCP over the loopback interface. Open MPI's go through
/// MPI.
pub const COLLECTIVES_TCP: Suite = Suite {
    name: "collectives-tcp",
    programs: &[("bare_reduction", 2), ("bare_reduction", 4)],
    measured: &[on_active_sets("2 PEs", 2), on_active_sets("4 PEs", 4)],
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "tcp"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
        ("OMPI_MCA_pml", "ob1"),
        ("OMPI_MCA_btl", "tcp,self"),
        ("OMPI_MCA_btl_tcp_if_include", "lo"),
    ],
    rows: include_str!("collectives-tcp.txt"),
    bare: "bare sockets",
    ..COLLECTIVES
};

/// Collectives on active sets, which every library has.
const fn on_active_sets(title: &'static str, pes: usize) -> Measured {
    Measured {
        title,
        pes,
        operations: "barrier_all,max_to_all,broadcast64,fcollect64",
        words: "--measures collective --sizes 8,8k,1m --time 1",
    }
}
