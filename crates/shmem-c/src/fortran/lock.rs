//! Distributed locks. Here a lock is a default INTEGER, which has half the room of C's: 4 bytes on
//! either side of it are somebody else's, so it is not C's lock under another name.

use core::ffi::c_int;

use rushmem_runtime::lock;

fortran! {
    [shmem_set_lock](lock: *mut c_int) = |call| lock::set(call, lock);
    [shmem_clear_lock](lock: *mut c_int) = |call| lock::clear(call, lock);
    [shmem_test_lock](lock: *mut c_int) -> c_int = |call| lock::test(call, lock);
}
