//! Collectives, with shared memory and over TCP.

use super::super::suite::{Measured, Suite, alone, row};
use super::super::table::{Aim, Unit};

/// Collectives of PEs that share their memory, on as many processors and on fewer.
pub const COLLECTIVES: Suite = Suite {
    name: "collectives",
    sources: &["bare_reduction"],
    programs: &[("bare_reduction", 2), ("bare_reduction", 8), ("bare_reduction", 16)],
    measured: &[
        on_active_sets("2 PEs", 2),
        on_active_sets("8 PEs", 8),
        on_active_sets("16 PEs", 16),
    ],
    launches: &[],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        alone(
            "collective barrier_all 0 2",
            "barrier_all, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.4)],
        ),
        alone(
            "collective max_to_all 8 2",
            "max_to_all of a long, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective max_to_all 8192 2",
            "max_to_all of 8 KiB, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.3)],
        ),
        row(
            "collective max_to_all 1048576 2",
            "max_to_all of 1 MiB, 2 PEs",
            "bare_max_large_2",
            &[Aim::OfTheirs(0.4), Aim::OfBare(1.3)],
        ),
        alone(
            "collective broadcast64 and barrier_all 8 2",
            "broadcast of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.5)],
        ),
        alone(
            "collective fcollect64 and barrier_all 8 2",
            "fcollect of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective barrier_all 0 8",
            "barrier_all, 8 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective max_to_all 8 8",
            "max_to_all of a long, 8 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective max_to_all 8192 8",
            "max_to_all of 8 KiB, 8 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.3)],
        ),
        row(
            "collective max_to_all 1048576 8",
            "max_to_all of 1 MiB, 8 PEs",
            "bare_max_large_8",
            &[Aim::OfTheirs(0.3), Aim::OfBare(1.3)],
        ),
        alone(
            "collective barrier_all 0 16",
            "barrier_all, 16 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.5)],
        ),
        alone(
            "collective max_to_all 8 16",
            "max_to_all of a long, 16 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.5)],
        ),
        alone(
            "collective max_to_all 8192 16",
            "max_to_all of 8 KiB, 16 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.3)],
        ),
        row(
            "collective max_to_all 1048576 16",
            "max_to_all of 1 MiB, 16 PEs",
            "bare_max_large_16",
            &[Aim::OfTheirs(0.3), Aim::OfBare(1.3)],
        ),
    ],
    bare: "bare copies",
};

/// The same where the PEs have nothing but TCP over the loopback interface. Open MPI's go through MPI.
pub const COLLECTIVES_TCP: Suite = Suite {
    name: "collectives-tcp",
    programs: &[("bare_reduction", 2), ("bare_reduction", 4)],
    measured: &[on_active_sets("2 PEs", 2), on_active_sets("4 PEs", 4)],
    carrier: None,
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "tcp"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
        ("OMPI_MCA_pml", "ob1"),
        ("OMPI_MCA_btl", "tcp,self"),
        ("OMPI_MCA_btl_tcp_if_include", "lo"),
    ],
    rows: &[
        alone(
            "collective barrier_all 0 2",
            "barrier_all, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        alone(
            "collective max_to_all 8 2",
            "max_to_all of a long, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        alone(
            "collective max_to_all 8192 2",
            "max_to_all of 8 KiB, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        row(
            "collective max_to_all 1048576 2",
            "max_to_all of 1 MiB, 2 PEs",
            "bare_max_large_2",
            &[Aim::OfTheirs(0.7), Aim::OfBare(1.2)],
        ),
        alone(
            "collective broadcast64 and barrier_all 8 2",
            "broadcast of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        alone(
            "collective fcollect64 and barrier_all 8 2",
            "fcollect of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        alone(
            "collective barrier_all 0 4",
            "barrier_all, 4 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        alone(
            "collective max_to_all 8 4",
            "max_to_all of a long, 4 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        alone(
            "collective max_to_all 8192 4",
            "max_to_all of 8 KiB, 4 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        row(
            "collective max_to_all 1048576 4",
            "max_to_all of 1 MiB, 4 PEs",
            "bare_max_large_4",
            &[Aim::OfTheirs(0.7), Aim::OfBare(1.2)],
        ),
    ],
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
