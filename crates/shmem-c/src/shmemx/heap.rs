//! The use of the symmetric heap, deferred frees, and buffers of the program that become symmetric.

use core::ffi::{c_int, c_long, c_void};
use rushmem_runtime::{heap, register_buffer, unregister_buffer};

/// `shmemx_heap_info_t`.
#[repr(C)]
pub struct HeapInfo {
    total: usize,
    used: usize,
    largest_free: usize,
    reserved: [usize; 5],
}

export! {
    [shmemx_heap_info](info: *mut HeapInfo) = |call| {
        let heap::HeapInfo { total, used, largest_free } = heap::info(call);
        info.write(HeapInfo { total, used, largest_free, reserved: [0; 5] });
    };
}

forward! {
    [shmemx_buffer_register](addr: *mut c_void, nbytes: usize, options: c_long) -> *mut c_void
        => register_buffer;
    [shmemx_buffer_unregister](addr: *mut c_void) -> c_int => unregister_buffer;
    [shmemx_release](ptr: *mut c_void) => heap::release;
    [shmemx_reclaim]() -> usize => heap::reclaim;
}
