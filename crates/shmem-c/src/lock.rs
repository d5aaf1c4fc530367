//! Distributed locks (OpenSHMEM 1.6, 9.13).

use core::ffi::{c_int, c_long};

use rushmem_runtime::lock;

forward! {
    [shmem_set_lock](lock: *mut c_long) => lock::set;
    [shmem_clear_lock](lock: *mut c_long) => lock::clear;
    [shmem_test_lock](lock: *mut c_long) -> c_int => lock::test;
}
