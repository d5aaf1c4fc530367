//! Tests with needs that a machine may lack: libraries of networks, a Fortran compiler, Python,
//! debuggers, other launchers, namespaces. A test that lacks one is reported as ignored, with the
//! reason, or checks only what it can.

mod addresses;
mod attackers;
mod blocks;
mod debug;
mod doctor;
mod fabrics;
mod fortran;
mod hangs;
mod hosts;
mod huge_pages;
mod launchers;
mod local_memory;
mod meetings;
mod mpi;
mod namespaces;
mod recipes;
mod refused;
mod scale;
mod shmem4py;
mod slurm;
mod sockets;
mod ssh;
mod starts;
mod statics;
mod threads;
mod transports;
mod unique_id;

fn main() -> std::process::ExitCode {
    testkit::run(
        [
            addresses::tests(),
            blocks::tests(),
            debug::tests(),
            doctor::tests(),
            fabrics::tests(),
            fortran::tests(),
            hangs::tests(),
            hosts::tests(),
            huge_pages::tests(),
            launchers::tests(),
            local_memory::tests(),
            meetings::tests(),
            recipes::tests(),
            refused::tests(),
            scale::tests(),
            shmem4py::tests(),
            slurm::tests(),
            sockets::tests(),
            ssh::tests(),
            starts::tests(),
            statics::tests(),
            threads::tests(),
            transports::tests(),
            unique_id::tests(),
        ]
        .into_iter()
        .flatten()
        .collect(),
    )
}
