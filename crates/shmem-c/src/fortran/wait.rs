//! Point-to-point synchronization.

use core::ffi::c_int;

use rushmem_runtime::constants::SHMEM_CMP_NE;
use rushmem_runtime::wait;

use super::export::In;

macro_rules! waits {
    ($([$($name:tt)+] $t:ty;)+) => {
        fortran! {$(
            [$($name)+](ivar: *mut $t, cmp_value: In<$t>)
                = |call| wait::wait_until(call, ivar, SHMEM_CMP_NE, cmp_value);
            [$($name)+ _until](ivar: *mut $t, cmp: In<c_int>, cmp_value: In<$t>)
                = |call| wait::wait_until(call, ivar, cmp, cmp_value);
        )+}
    };
}
waits! {
    [shmem_wait] i32;
    [shmem_int4_wait] i32;
    [shmem_int8_wait] i64;
}
