//! Symmetric memory (OpenSHMEM 1.6, 9.3), under the present and the deprecated names.

use core::ffi::{c_long, c_void};

use rushmem_runtime::heap;

forward! {
    [shmem_malloc](size: usize) -> *mut c_void => heap::malloc;
    [shmem_free](ptr: *mut c_void) => heap::free;
    [shmem_realloc](ptr: *mut c_void, size: usize) -> *mut c_void => heap::realloc;
    [shmem_align](alignment: usize, size: usize) -> *mut c_void => heap::align;
    [shmem_malloc_with_hints](size: usize, hints: c_long) -> *mut c_void
        => heap::malloc_with_hints;
    [shmem_calloc](count: usize, size: usize) -> *mut c_void => heap::calloc;

    [shmalloc](size: usize) -> *mut c_void => heap::malloc;
    [shfree](ptr: *mut c_void) => heap::free;
    [shrealloc](ptr: *mut c_void, size: usize) -> *mut c_void => heap::realloc;
    [shmemalign](alignment: usize, size: usize) -> *mut c_void => heap::align;
}
