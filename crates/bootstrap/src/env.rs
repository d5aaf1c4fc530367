//! The names of the environment variables by which a launcher passes information to a PE.
//!
//! `launched::inherited` reads the descriptors of oshrun, `membership::route` the variables of
//! other launchers, and `unlaunched::variables` those of a job without a launcher.

/// Descriptor of an inherited Unix stream socket that is connected to `oshrun`.
pub const SOCKET: &str = "RUSHMEM_SOCKET";

/// Descriptor of an inherited memfd for the symmetric memory of all PEs of this node.
pub const MEMORY: &str = "RUSHMEM_MEMORY";

/// Descriptor of an inherited pipe that ends when `oshrun` ends.
pub const LIVENESS: &str = "RUSHMEM_LIVENESS";

/// Index of the PE on its node, for programs and wrappers. It stays in the environment.
pub const LOCAL_ID: &str = "SHMEM_LOCAL_ID";

/// Set if `oshrun` explains long waits, so that PEs record their last writes.
pub const EXPLAINED: &str = "RUSHMEM_EXPLAINED";

/// Names of the variables that `oshrun` itself has set for the PE, separated by spaces. By this
/// list the PE distinguishes them from variables of the user.
pub const SET_BY_OSHRUN: &str = "OSHRUN_SET";

/// The variables that are valid for one process only. A PE removes them when it joins its job,
/// so that programs that it starts are jobs of their own.
pub const OF_ONE_PE: [&str; 3] = [SOCKET, MEMORY, LIVENESS];

/// The setting of the time within which the job ends when another host is silent. `oshrun` and the
/// PEs use the same one.
pub const HOST_LIMIT: &str = "SHMEM_HOST_LIMIT";

/// The setting that chooses a [`crate::Protocol`].
pub const BOOTSTRAP: &str = "SHMEM_BOOTSTRAP";

/// Host and port of the meeting of a job without a launcher, or the unique id of the job.
pub const JOB: &str = "SHMEM_JOB";

/// The rank of this process in a job without a launcher.
pub const RANK: &str = "SHMEM_RANK";

/// The number of processes in a job without a launcher.
pub const SIZE: &str = "SHMEM_SIZE";

/// The secret of a job without a launcher, or `@` and the file that contains it.
pub const JOB_SECRET: &str = "SHMEM_JOB_SECRET";

/// Descriptor of an inherited socket that is connected to a PMI-1 or PMI-2 launcher.
pub const PMI_FD: &str = "PMI_FD";

/// The rank of this process under a PMI-1 or PMI-2 launcher.
pub const PMI_RANK: &str = "PMI_RANK";

/// The name of the job under a PMI-1 or PMI-2 launcher, if it has one.
pub const PMI_JOBID: &str = "PMI_JOBID";

/// Host and port at which a PMI-1 or PMI-2 launcher accepts connections.
pub const PMI_PORT: &str = "PMI_PORT";

/// The number by which the launcher at [`PMI_PORT`] identifies this process.
pub const PMI_ID: &str = "PMI_ID";

/// Number of processes in a job started by Hydra or by another PMI-1 or PMI-2 launcher.
pub const PMI_SIZE: &str = "PMI_SIZE";

/// Name of a job started by a PMIx launcher.
pub const PMIX_NAMESPACE: &str = "PMIX_NAMESPACE";

/// Rank in a job started by a PMIx launcher. No variable holds the number of processes.
pub const PMIX_RANK: &str = "PMIX_RANK";

/// Number of processes in a job started by Open MPI's launcher.
pub const OMPI_SIZE: &str = "OMPI_COMM_WORLD_SIZE";

/// The rank of this process in a job started by Open MPI's launcher.
pub const OMPI_RANK: &str = "OMPI_COMM_WORLD_RANK";

/// Rank in a Slurm step. It is not set in a shell that only has an allocation.
pub const SLURM_PROCID: &str = "SLURM_PROCID";

/// Number of processes in this Slurm step.
pub const SLURM_STEP_NUM_TASKS: &str = "SLURM_STEP_NUM_TASKS";

/// Number of processes requested from Slurm for the whole allocation.
pub const SLURM_NTASKS: &str = "SLURM_NTASKS";
