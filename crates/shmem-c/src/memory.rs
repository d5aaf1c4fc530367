//! Symmetric memory (OpenSHMEM 1.6, 9.3), under the present and the deprecated names.

use core::ffi::{c_long, c_void};

use rushmem_runtime::memory;

forward! {
    [shmem_malloc](size: usize) -> *mut c_void => memory::malloc;
    [shmem_free](ptr: *mut c_void) => memory::free;
    [shmem_realloc](ptr: *mut c_void, size: usize) -> *mut c_void => memory::realloc;
    [shmem_align](alignment: usize, size: usize) -> *mut c_void => memory::align;
    [shmem_malloc_with_hints](size: usize, hints: c_long) -> *mut c_void
        => memory::malloc_with_hints;
    [shmem_calloc](count: usize, size: usize) -> *mut c_void => memory::calloc;

    [shmalloc](size: usize) -> *mut c_void => memory::malloc;
    [shfree](ptr: *mut c_void) => memory::free;
    [shrealloc](ptr: *mut c_void, size: usize) -> *mut c_void => memory::realloc;
    [shmemalign](alignment: usize, size: usize) -> *mut c_void => memory::align;
}
