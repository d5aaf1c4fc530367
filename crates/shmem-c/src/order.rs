//! Memory ordering (OpenSHMEM 1.6, 9.12).

use core::ffi::c_int;

use rushmem_runtime::order;

on_contexts! {
    [fence]() => order::fence;
    [quiet]() => order::quiet;
    [pe_quiet](target_pes: *const c_int, npes: usize) => order::pe_quiet;
}
