//! Ordering, completion and signals.

use core::ffi::c_int;

use rushmem_runtime::{ContextHandle, order, signal};

on_contexts_as! { shmemx_ shmemx_ctx_:
    [fence_test]() -> c_int => order::fence_test;
    [quiet_test]() -> c_int => order::quiet_test;
    [flush]() => order::flush;
    [signal_add](sig_addr: *mut u64, signal: u64, pe: c_int) => signal::add;
    [signal_set](sig_addr: *mut u64, signal: u64, pe: c_int) => signal::set;
}

forward! {
    [shmemx_ctx_pe_flush](ctx: ContextHandle, target_pes: *const c_int, npes: usize)
        => order::pe_flush;
    [shmemx_local_complete]() => order::local_complete;
}
