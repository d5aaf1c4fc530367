//! Compares the job with that of the program's MPI.

use crate::call::warning::warning;
use crate::job::Job;
use rushmem_bootstrap::{MpiWorld, mpi_world};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Prints a warning if MPI has started with one process although the job has several PEs: the
/// launcher of the job does not start MPI. Once MPI has started, later calls do nothing.
pub(crate) fn warn_if_alone(job: &Job) {
    static IS_KNOWN: AtomicBool = AtomicBool::new(false);
    if job.n_pes == 1 || IS_KNOWN.load(Relaxed) {
        return;
    }
    let world = mpi_world();
    IS_KNOWN.store(!matches!(world, MpiWorld::Absent | MpiWorld::Later), Relaxed);
    if world == MpiWorld::Of(1) {
        warning!(
            each: "MPI_COMM_WORLD has one process, but the job has {} PEs: this launcher does not start MPI; start the program by \
             mpirun, mpiexec or srun, which start both",
            job.n_pes
        );
    }
}
