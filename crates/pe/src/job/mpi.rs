//! Compares the number of PEs with the number of processes of the program's MPI.

use crate::call::warning::warning;
use crate::job::Job;
use rushmem_bootstrap::{MpiWorld, mpi_world};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True once [`mpi_world`] has given a final answer: MPI has started, cannot start any more, or has
/// handles that are not known. Relaxed: a thread that misses it asks MPI once more.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

/// True if the last call of [`warn_if_alone`] found an MPI that had not started. Relaxed: it
/// publishes nothing, and a later call asks again.
static IS_AWAITED: AtomicBool = AtomicBool::new(false);

/// Prints a warning if MPI has started with one process although the job has several PEs: the
/// launcher of the job does not start MPI. Once it is certain what MPI does, later calls do
/// nothing.
pub fn warn_if_alone(job: &Job) {
    if job.n_pes == 1 || IS_KNOWN.load(Relaxed) {
        return;
    }

    let world = mpi_world();
    let is_known = !matches!(world, MpiWorld::Absent | MpiWorld::Later);
    IS_KNOWN.store(is_known, Relaxed);
    IS_AWAITED.store(world == MpiWorld::Later, Relaxed);

    if world == MpiWorld::Size(1) {
        warning!(
            each: "MPI_COMM_WORLD has one process, but the job has {} PEs: this launcher does not start MPI; start the program by \
             mpirun, mpiexec or srun, which start both",
            job.n_pes
        );
    }
}

/// Warns if this PE is alone in MPI_COMM_WORLD, and [`warn_if_alone`] has last found an MPI that
/// had not started. Each allocation calls this, so it does not look whether an MPI has been loaded
/// since: that takes 0.24 us.
pub fn warn_if_awaited(job: &Job) {
    if IS_AWAITED.load(Relaxed) {
        warn_if_alone(job);
    }
}
