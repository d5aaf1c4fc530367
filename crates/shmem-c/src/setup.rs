//! Setup, exit and query (OpenSHMEM 1.6, 9.1 and 9.2), under the present and the deprecated names,
//! and the control of profiling (10.1.1).
#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_void};

use rushmem_providers::ALL;
use rushmem_runtime::TeamHandle;
use rushmem_runtime::constants::{
    SHMEM_MAJOR_VERSION, SHMEM_MAX_NAME_LEN, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING,
};
use rushmem_runtime::{setup, start};

const _: () = assert!(SHMEM_VENDOR_STRING.len() < SHMEM_MAX_NAME_LEN as usize);

forward! {
    [shmem_my_pe]() -> c_int => setup::my_pe;
    [_my_pe]() -> c_int => setup::my_pe;
    [shmem_n_pes]() -> c_int => setup::n_pes;
    [_num_pes]() -> c_int => setup::n_pes;
    [shmem_finalize]() => setup::finalize;
    [shmem_global_exit](status: c_int) -> ! => setup::global_exit;
    [shmem_ptr](dest: *const c_void, pe: c_int) -> *mut c_void => setup::ptr;
    [shmem_team_ptr](team: TeamHandle, dest: *const c_void, pe: c_int) -> *mut c_void
        => setup::team_ptr;
    [shmem_addr_accessible](addr: *const c_void, pe: c_int) -> c_int => setup::addr_accessible;
    [shmem_pe_accessible](pe: c_int) -> c_int => setup::pe_accessible;
}

export! {
    [shmem_init]() = |call| start::init(call, ALL);
    [shmem_init_thread](requested: c_int, provided: *mut c_int) -> c_int
        = |call| match start::init_thread(call, ALL, requested) {
            Some(level) => {
                provided.write(level);
                0
            }
            None => 1,
        };
    [start_pes](_npes: c_int) = |call| start::start_pes(call, ALL);

    [shmem_query_initialized](initialized: *mut c_int)
        = |_call| initialized.write(setup::query_initialized());
    [shmem_query_thread](provided: *mut c_int) = |call| provided.write(setup::query_thread(call));

    [shmem_info_get_version](major: *mut c_int, minor: *mut c_int) = |_call| version(major, minor);
    [shmem_info_get_name](name: *mut c_char) = |_call| vendor(name);

    // Variadic in C. On x86-64 and aarch64 Linux, a caller may pass more arguments than the callee
    // declares, because the caller places and removes them.
    [shmem_pcontrol](_level: c_int) = |_call| ();
}

/// Writes the version of the standard.
///
/// # Safety
/// Both pointers are valid for writes.
unsafe fn version(major: *mut c_int, minor: *mut c_int) {
    // SAFETY: `major` is valid for writes, as this function requires.
    unsafe { major.write(SHMEM_MAJOR_VERSION) };
    // SAFETY: `minor` is valid for writes, as this function requires.
    unsafe { minor.write(SHMEM_MINOR_VERSION) };
}

/// Writes the vendor string and a final 0.
///
/// # Safety
/// `name` has room for `SHMEM_MAX_NAME_LEN` bytes.
unsafe fn vendor(name: *mut c_char) {
    let bytes = SHMEM_VENDOR_STRING.as_bytes();
    // SAFETY: the string is shorter than `SHMEM_MAX_NAME_LEN`, as asserted above, and a constant,
    // so it does not overlap the caller's buffer.
    unsafe { name.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    // SAFETY: the buffer is longer than the string by at least this byte.
    unsafe { name.wrapping_add(bytes.len()).write(0) };
}
