//! Queries about this PE and the others (OpenSHMEM 1.6, §9.1).

use super::team;
use core::ffi::{c_int, c_void};
use rushmem_pe::call::Call;
use rushmem_pe::job;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::memory::address;
use rushmem_pe::process;

/// `shmem_my_pe` (§9.1.2): the number of this PE in the world.
#[inline]
pub fn my_pe(call: Call) -> c_int {
    job::require_or_inherited(call).me.0 as c_int
}

/// `shmem_n_pes` (§9.1.3): the number of PEs of the job.
#[inline]
pub fn n_pes(call: Call) -> c_int {
    job::require_or_inherited(call).n_pes as c_int
}

/// `shmem_ptr` (§9.1.9): the address by which this PE can load and store `pe`'s copy of `dest`;
/// null if that copy is not mapped here.
pub fn ptr(call: Call, dest: *const c_void, pe: c_int) -> *mut c_void {
    job::require_pe(call, "pe", pe);
    // One byte, since the number of bytes at `dest` is not known.
    match address::reachable(dest.addr(), 1, pe) {
        Some(mapped) => mapped.cast(),
        None => std::ptr::null_mut(),
    }
}

/// `shmem_team_ptr` (§9.1.10): as [`ptr`], for PE `pe` of `team`; null if the team has no such PE
/// or is invalid.
pub fn team_ptr(call: Call, team: TeamHandle, dest: *const c_void, pe: c_int) -> *mut c_void {
    job::require(call);
    match team::translate_pe(call, team, pe, TeamHandle::WORLD) {
        -1 => std::ptr::null_mut(),
        world_pe => ptr(call, dest, world_pe),
    }
}

/// `shmem_addr_accessible` (§9.1.8): 1 if routines can access `addr` on `pe`, else 0.
pub fn addr_accessible(call: Call, addr: *const c_void, pe: c_int) -> c_int {
    c_int::from(pe_accessible(call, pe) == 1 && address::locate(addr.addr(), 1).is_some())
}

/// `shmem_pe_accessible` (§9.1.7): 1 if `pe` is a PE of the job, since routines can access every
/// one; else 0.
pub fn pe_accessible(call: Call, pe: c_int) -> c_int {
    c_int::from((0..n_pes(call)).contains(&pe))
}

/// `shmem_query_initialized` (§9.1.5): 1 after an initialization that was not finalized yet, else
/// 0. Can be called at any time.
pub fn query_initialized() -> c_int {
    c_int::from(process::inits() > 0)
}

/// `shmem_query_thread` (§9.2.2): the thread level that initialization has provided.
pub fn query_thread(call: Call) -> c_int {
    job::require(call).thread_level
}
