//! The values of the constants and predefined handles that vendors add to the standard's.
//!
//! An installation copies them, with their first line of documentation, into `shmemx.h`; as in
//! `constants`, this file holds nothing but `pub const NAME: TYPE = LITERAL;`, and changing one
//! breaks the ABI.

use core::ffi::{c_int, c_long};

/// Cray: handle of no team.
pub const SHMEM_TEAM_NULL: usize = 0;
/// Cray: handle of the team of PEs on the caller's machine.
pub const SHMEM_TEAM_NODE: usize = 3;
/// Sandia: handle of the team of PEs on the caller's machine.
pub const SHMEMX_TEAM_NODE: usize = 3;
/// Cray: color of a PE that joins no team of shmemx_team_split.
pub const SHMEM_COLOR_UNDEFINED: c_int = -1;
/// Cray: length of a pSync array of shmemx_alltoallv or shmemx_alltoallv_packed.
pub const _SHMEM_ALLTOALL_SYNC_SIZE: c_int = 1;
/// Cray: length of a pSync array of an alltoalls.
pub const _SHMEM_ALLTOALLS_SYNC_SIZE: c_int = 1;
/// Rushmem: handle of no request.
pub const SHMEMX_REQ_NULL: usize = 0;
/// Sandia: hint to shmem_malloc_with_hints: no barrier at the end of the call.
pub const SHMEMX_MALLOC_NO_BARRIER: c_long = 4;
/// Rushmem: the header has shmemx_buffer_register.
pub const SHMEMX_HAS_BUFFERS: c_int = 1;
/// Rushmem: option of shmemx_buffer_register: the buffer never moves in the heap.
pub const SHMEMX_BUFFER_PINNED: c_long = 1;
/// NVSHMEM and rocSHMEM: flag of shmemx_init_attr: the attributes name the job by a unique id.
pub const SHMEMX_INIT_WITH_UNIQUEID: c_int = 1;
/// Rushmem: result of a wait with a limit: it is over.
pub const SHMEMX_SUCCESS: c_int = 0;
/// Rushmem: result of a wait with a limit: the limit has passed before it was over.
pub const SHMEMX_TIMED_OUT: c_int = 1;
/// Rushmem: there are waits with a limit.
pub const SHMEMX_HAS_TIMED_WAITS: c_int = 1;
/// Rushmem: there are shmemx_release and shmemx_reclaim.
pub const SHMEMX_HAS_RELEASE: c_int = 1;
/// Rushmem: there are shmemx_flush, shmemx_ctx_flush and shmemx_ctx_pe_flush.
pub const SHMEMX_HAS_FLUSH: c_int = 1;
