//! The values of the standard's constants and predefined handles (OpenSHMEM 1.6, sections 6 and 7).
//!
//! This is their only definition: the library uses it, and an installation copies it, with the
//! first line of documentation of each constant, into `shmem.h`. Therefore this file holds nothing
//! but `pub const NAME: TYPE = LITERAL;`. Programs have the values compiled in, so changing one
//! breaks the ABI.

use core::ffi::{c_int, c_long};

/// Major version of the standard: the 1 of OpenSHMEM 1.6.
pub const SHMEM_MAJOR_VERSION: c_int = 1;
/// Minor version of the standard: the 6 of OpenSHMEM 1.6.
pub const SHMEM_MINOR_VERSION: c_int = 6;
/// Maximum length of a vendor string, its null byte included.
pub const SHMEM_MAX_NAME_LEN: c_int = 256;
/// Name and version of the library.
pub const SHMEM_VENDOR_STRING: &str = "Rushmem 0.1.0";

/// Thread level: the program has one thread.
pub const SHMEM_THREAD_SINGLE: c_int = 0;
/// Thread level: only the thread that initialized the library calls it.
pub const SHMEM_THREAD_FUNNELED: c_int = 1;
/// Thread level: threads call the library one at a time.
pub const SHMEM_THREAD_SERIALIZED: c_int = 2;
/// Thread level: any thread calls the library at any time.
pub const SHMEM_THREAD_MULTIPLE: c_int = 3;

/// Hint to shmem_malloc_with_hints: target of remote atomics.
pub const SHMEM_MALLOC_ATOMICS_REMOTE: c_long = 1;
/// Hint to shmem_malloc_with_hints: holds signals.
pub const SHMEM_MALLOC_SIGNAL_REMOTE: c_long = 2;

/// Handle of no team.
pub const SHMEM_TEAM_INVALID: usize = 0;
/// Handle of the team of all PEs.
pub const SHMEM_TEAM_WORLD: usize = 1;
/// Handle of the team of PEs that share memory with the caller.
pub const SHMEM_TEAM_SHARED: usize = 2;
/// Mask bit: num_contexts of shmem_team_config_t is set.
pub const SHMEM_TEAM_NUM_CONTEXTS: c_long = 1;

/// Handle of no context.
pub const SHMEM_CTX_INVALID: usize = 0;
/// Handle of the default context.
pub const SHMEM_CTX_DEFAULT: usize = 1;
/// Context option: no two threads use it at the same time.
pub const SHMEM_CTX_SERIALIZED: c_long = 1;
/// Context option: only the thread that created it uses it.
pub const SHMEM_CTX_PRIVATE: c_long = 2;
/// Context option: quiet and fence need not order stores to memory.
pub const SHMEM_CTX_NOSTORE: c_long = 4;
/// Session option: operations tolerate latency and may be batched.
pub const SHMEM_CTX_SESSION_BATCH: c_long = 1;
/// Mask bit: total_ops of shmem_ctx_session_config_t is set.
pub const SHMEM_CTX_SESSION_TOTAL_OPS: c_long = 1;

/// Signal update: store the value.
pub const SHMEM_SIGNAL_SET: c_int = 1;
/// Signal update: add the value.
pub const SHMEM_SIGNAL_ADD: c_int = 2;

/// Comparison: equal.
pub const SHMEM_CMP_EQ: c_int = 1;
/// Comparison: not equal.
pub const SHMEM_CMP_NE: c_int = 2;
/// Comparison: greater than.
pub const SHMEM_CMP_GT: c_int = 3;
/// Comparison: greater than or equal.
pub const SHMEM_CMP_GE: c_int = 4;
/// Comparison: less than.
pub const SHMEM_CMP_LT: c_int = 5;
/// Comparison: less than or equal.
pub const SHMEM_CMP_LE: c_int = 6;

// The library has flags of its own. It never accesses a pWrk, and never writes a pSync, which it
// distinguishes from others by the address. (With SHMEM_CHECK it reads the first element.) So one
// element suffices, and zeroed memory is ready for use.

/// Initial value of every element of a pSync array.
pub const SHMEM_SYNC_VALUE: c_long = 0;
/// Length of a pSync array of shmem_sync.
pub const SHMEM_SYNC_SIZE: c_int = 1;
/// Length of a pSync array of shmem_barrier.
pub const SHMEM_BARRIER_SYNC_SIZE: c_int = 1;
/// Length of a pSync array of a broadcast.
pub const SHMEM_BCAST_SYNC_SIZE: c_int = 1;
/// Length of a pSync array of a collect or fcollect.
pub const SHMEM_COLLECT_SYNC_SIZE: c_int = 1;
/// Length of a pSync array of an alltoall.
pub const SHMEM_ALLTOALL_SYNC_SIZE: c_int = 1;
/// Length of a pSync array of an alltoalls.
pub const SHMEM_ALLTOALLS_SYNC_SIZE: c_int = 1;
/// Length of a pSync array of a reduction.
pub const SHMEM_REDUCE_SYNC_SIZE: c_int = 1;
/// Minimum length of a pWrk array of a reduction.
pub const SHMEM_REDUCE_MIN_WRKDATA_SIZE: c_int = 1;
