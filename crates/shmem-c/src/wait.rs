//! Point-to-point synchronisation (OpenSHMEM 1.6, 9.11).

use core::ffi::{c_int, c_long};

use rushmem_runtime::constants::SHMEM_CMP_NE;
use rushmem_runtime::wait::{self, Values};

macro_rules! scalar {
    ($name:ident, $type:ty) => {
        forward! {
            [shmem_ $name _wait_until](ivar: *mut $type, cmp: c_int, cmp_value: $type) => wait::wait_until;
            [shmem_ $name _test](ivar: *mut $type, cmp: c_int, cmp_value: $type) -> c_int => wait::test;
        }
    };
}
for_each_wait_type!(scalar);

/// One routine on a set of variables, which are compared with one value or with one each.
macro_rules! on_set {
    ($name:ident, $type:ty, $routine:ident $(, $indices:ident: $index:ty)? => $result:ty) => {
        export! {
            [shmem_ $name _ $routine](
                ivars: *mut $type, nelems: usize, $($indices: $index,)?
                status: *const c_int, cmp: c_int, cmp_value: $type,
            ) -> $result = |call| wait::$routine(
                call, ivars, nelems, $($indices,)? status, cmp, Values::Same(cmp_value)
            );
            [shmem_ $name _ $routine _vector](
                ivars: *mut $type, nelems: usize, $($indices: $index,)?
                status: *const c_int, cmp: c_int, cmp_values: *const $type,
            ) -> $result = |call| wait::$routine(
                call, ivars, nelems, $($indices,)? status, cmp, Values::Each(cmp_values)
            );
        }
    };
}

macro_rules! sets {
    ($name:ident, $type:ty) => {
        on_set!($name, $type, wait_until_all => ());
        on_set!($name, $type, wait_until_any => usize);
        on_set!($name, $type, wait_until_some, indices: *mut usize => usize);
        on_set!($name, $type, test_all => c_int);
        on_set!($name, $type, test_any => usize);
        on_set!($name, $type, test_some, indices: *mut usize => usize);
    };
}
for_each_standard_amo_type!(sets);

macro_rules! old {
    ($name:ident, $type:ty) => {
        export! {
            [shmem_ $name _wait](ivar: *mut $type, cmp_value: $type)
                = |call| wait::wait_until(call, ivar, SHMEM_CMP_NE, cmp_value);
        }
    };
}
for_each_old_wait_type!(old);

export! {
    [shmem_wait](ivar: *mut c_long, cmp_value: c_long)
        = |call| wait::wait_until(call, ivar, SHMEM_CMP_NE, cmp_value);
}

forward! {
    [shmem_wait_until](ivar: *mut c_long, cmp: c_int, cmp_value: c_long) => wait::wait_until;
}
