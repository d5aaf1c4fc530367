//! The environment variables by which a launcher and a PE find each other, each named once.
//!
//! This file only names them; `inherited` reads our own variables, `detect` those of other
//! launchers.

/// Number of an inherited, connected unix stream socket that leads to `oshrun`.
pub const SOCKET: &str = "RUSHMEM_SOCKET";

/// Number of an inherited memfd that holds the symmetric memory of every PE of this node.
pub const MEMORY: &str = "RUSHMEM_MEMORY";

/// Number of an inherited pipe that ends with `oshrun`.
pub const LIVENESS: &str = "RUSHMEM_LIVENESS";

/// Number of the PE on its node, for programs and wrappers; it stays in the environment.
pub const LOCAL_ID: &str = "SHMEM_LOCAL_ID";

/// Set if `oshrun` explains long waits, so that PEs record their last writes.
pub const EXPLAINED: &str = "RUSHMEM_EXPLAINED";

/// Names of variables that `oshrun` itself has set for the PE, separated by spaces, so that the PE
/// can distinguish them from the user's.
pub const SET_BY_OSHRUN: &str = "OSHRUN_SET";

/// The variables that belong to one PE alone: removed when it has opened its session, so that
/// programs it starts are jobs of their own.
pub const OF_ONE_PE: [&str; 3] = [SOCKET, MEMORY, LIVENESS];

/// The setting of the time that another host may be silent before the job has ended; `oshrun` and the
/// PEs share it.
pub const HOST_LIMIT: &str = "SHMEM_HOST_LIMIT";

/// The setting that chooses a [`crate::Protocol`].
pub const BOOTSTRAP: &str = "SHMEM_BOOTSTRAP";

/// Host and port of the meeting of a job, or its unique id.
pub const JOB: &str = "SHMEM_JOB";

/// The rank of this process in that job.
pub const RANK: &str = "SHMEM_RANK";

/// The number of processes in that job.
pub const SIZE: &str = "SHMEM_SIZE";

/// The secret of that job.
pub const JOB_SECRET: &str = "SHMEM_JOB_SECRET";

/// Number of an inherited socket that leads to a PMI-1 or PMI-2 launcher.
pub const PMI_FD: &str = "PMI_FD";

/// This process's number under such a launcher.
pub const PMI_RANK: &str = "PMI_RANK";

/// The name of its job under such a launcher, where it has one.
pub const PMI_JOBID: &str = "PMI_JOBID";

/// Host and port of a PMI-1 or PMI-2 launcher that waits for connections.
pub const PMI_PORT: &str = "PMI_PORT";

/// The number that such a launcher gives this process.
pub const PMI_ID: &str = "PMI_ID";

/// Number of processes in a job started by Hydra or by another PMI-1 or PMI-2 launcher.
pub const PMI_SIZE: &str = "PMI_SIZE";

/// Name of a job started by a PMIx launcher.
pub const PMIX_NAMESPACE: &str = "PMIX_NAMESPACE";

/// Rank in a job started by a PMIx launcher; it comes without a size.
pub const PMIX_RANK: &str = "PMIX_RANK";

/// Number of processes in a job started by Open MPI's launcher.
pub const OMPI_SIZE: &str = "OMPI_COMM_WORLD_SIZE";

/// This process's number in such a job.
pub const OMPI_RANK: &str = "OMPI_COMM_WORLD_RANK";

/// Launchers that Rushmem joins by PMI or PMIx, or not at all: the name, and the variables with
/// this process's number and the number of processes.
pub(crate) const OTHERS: [(&str, &str, &str); 3] = [
    ("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("MVAPICH2's mpirun_rsh", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
];

/// Rank in a Slurm step; absent in a shell that merely holds an allocation.
pub const SLURM_PROCID: &str = "SLURM_PROCID";

/// Number of processes in this Slurm step.
pub const SLURM_STEP_NUM_TASKS: &str = "SLURM_STEP_NUM_TASKS";

/// Number of processes requested from Slurm for the whole allocation.
pub const SLURM_NTASKS: &str = "SLURM_NTASKS";
