//! Memory ordering (OpenSHMEM 1.6, 9.12), and the routines on caches that 1.5 removed.

use core::ffi::{c_int, c_void};

use rushmem_runtime::order;

on_contexts! {
    [fence]() => order::fence;
    [quiet]() => order::quiet;
    [pe_quiet](target_pes: *const c_int, npes: usize) => order::pe_quiet;
}

// No-ops, since the caches of the supported processors are coherent.
export! {
    [shmem_clear_cache_inv]() = |_call| ();
    [shmem_set_cache_inv]() = |_call| ();
    [shmem_udcflush]() = |_call| ();
    [shmem_clear_cache_line_inv](_dest: *mut c_void) = |_call| ();
    [shmem_set_cache_line_inv](_dest: *mut c_void) = |_call| ();
    [shmem_udcflush_line](_dest: *mut c_void) = |_call| ();
}
