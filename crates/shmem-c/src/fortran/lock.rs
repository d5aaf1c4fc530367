//! Distributed locks. In Fortran a lock is a default INTEGER of 4 bytes, half the size of a lock in
//! C. The bytes beside it belong to other variables, so the runtime has locks of both sizes.

use core::ffi::c_int;

use rushmem_runtime::lock;

fortran! {
    [shmem_set_lock](lock: *mut c_int) = |call| lock::set(call, lock);
    [shmem_clear_lock](lock: *mut c_int) = |call| lock::clear(call, lock);
    [shmem_test_lock](lock: *mut c_int) -> c_int = |call| lock::test(call, lock);
}
