//! Memory ordering, and the routines on caches.

use core::ffi::c_void;

use rushmem_runtime::DefaultContext;
use rushmem_runtime::order;

fortran! {
    [shmem_fence]() = |call| order::fence(call, DefaultContext);
    [shmem_quiet]() = |call| order::quiet(call, DefaultContext);

    // No-ops, since the caches of the supported processors are coherent.
    [shmem_clear_cache_inv]() = |_call| ();
    [shmem_set_cache_inv]() = |_call| ();
    [shmem_udcflush]() = |_call| ();
    [shmem_clear_cache_line_inv](_dest: *mut c_void) = |_call| ();
    [shmem_set_cache_line_inv](_dest: *mut c_void) = |_call| ();
    [shmem_udcflush_line](_dest: *mut c_void) = |_call| ();
}
