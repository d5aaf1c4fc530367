//! The time that another host may be silent before the job has ended: the setting that `oshrun` and
//! the PEs share.

/// Its environment variable.
pub const VARIABLE: &str = "SHMEM_HOST_LIMIT";

/// Its value where the variable is not set.
pub const DEFAULT: &str = "10s";
