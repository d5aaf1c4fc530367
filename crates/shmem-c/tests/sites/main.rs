//! Tests with needs that a machine may lack: libraries of networks, a Fortran compiler, Python,
//! debuggers, other launchers, namespaces. A test that lacks one is reported as ignored, with the
//! reason, or checks only what it can.

mod attackers;
mod mpi;
mod namespaces;

testkit::test_modules! {
    addresses,
    blocks,
    debug,
    doctor,
    every_transport,
    fabrics,
    fortran,
    hangs,
    hosts,
    huge_pages,
    kokkos,
    launchers,
    local_memory,
    meetings,
    python,
    recipes,
    refused,
    scale,
    shmem4py,
    slurm,
    sockets,
    ssh,
    starts,
    statics,
    threads,
    transports,
    unique_id,
    verify,
}
