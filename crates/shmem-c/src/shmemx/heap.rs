//! The use of the symmetric heap, and deferred frees.

use core::ffi::c_void;

use rushmem_runtime::heap;

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
    [shmemx_release](ptr: *mut c_void) => heap::release;
    [shmemx_reclaim]() -> usize => heap::reclaim;
}
