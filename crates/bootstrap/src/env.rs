//! Every environment variable by which a launcher and a PE find each other, named once.
//!
//! This file only names; reading and judging is done by `inherited` (our own) and `foreign` (other launchers').
#![forbid(unsafe_code)]

/// Number of an inherited, connected unix stream socket that leads to `oshrun`.
pub const SOCKET: &str = "RUSHMEM_SOCKET";

/// Number of an inherited memfd that holds the symmetric memory of every PE of this node.
pub const MEMORY: &str = "RUSHMEM_MEMORY";

/// Number of the PE on its node, for programs and wrappers; it stays in the environment.
pub const LOCAL_ID: &str = "SHMEM_LOCAL_ID";

/// The variables that belong to one PE alone: removed when it has opened its session, so that programs it starts are
/// jobs of their own.
pub const OF_ONE_PE: [&str; 2] = [SOCKET, MEMORY];

/// Number of processes in a job started by Hydra or by another PMI-1 or PMI-2 launcher.
pub const PMI_SIZE: &str = "PMI_SIZE";

/// Rank in a job started by a PMIx launcher; it comes without a size.
pub const PMIX_RANK: &str = "PMIX_RANK";

/// Number of processes in a job started by Open MPI's launcher.
pub const OMPI_SIZE: &str = "OMPI_COMM_WORLD_SIZE";

/// Rank in a Slurm step; absent in a shell that merely holds an allocation.
pub const SLURM_PROCID: &str = "SLURM_PROCID";

/// Number of processes in this Slurm step.
pub const SLURM_STEP_NUM_TASKS: &str = "SLURM_STEP_NUM_TASKS";

/// Number of processes asked of Slurm for the whole allocation.
pub const SLURM_NTASKS: &str = "SLURM_NTASKS";
