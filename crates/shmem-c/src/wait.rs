//! Point-to-point synchronization (OpenSHMEM 1.6, 9.11).

use core::ffi::{c_int, c_long};

use rushmem_runtime::constants::SHMEM_CMP_NE;
use rushmem_runtime::wait::{self, Values};

macro_rules! scalar {
    ($name:ident, $t:ty) => {
        forward! {
            [shmem_ $name _wait_until](ivar: *mut $t, cmp: c_int, cmp_value: $t)
                => wait::wait_until;
            [shmem_ $name _test](ivar: *mut $t, cmp: c_int, cmp_value: $t) -> c_int => wait::test;
        }
    };
}
for_each_wait_type!(scalar);

/// Exports a routine on several variables in two forms: all are compared with the same value, or
/// each with its own.
macro_rules! on_set {
    ($name:ident, $t:ty, $routine:ident $(, $indices:ident: $index:ty)? => $result:ty) => {
        export! {
            [shmem_ $name _ $routine](
                ivars: *mut $t, nelems: usize, $($indices: $index,)?
                status: *const c_int, cmp: c_int, cmp_value: $t,
            ) -> $result = |call| wait::$routine(
                call, ivars, nelems, $($indices,)? status, cmp, Values::Same(cmp_value)
            );
            [shmem_ $name _ $routine _vector](
                ivars: *mut $t, nelems: usize, $($indices: $index,)?
                status: *const c_int, cmp: c_int, cmp_values: *const $t,
            ) -> $result = |call| wait::$routine(
                call, ivars, nelems, $($indices,)? status, cmp, Values::Each(cmp_values)
            );
        }
    };
}

macro_rules! sets {
    ($name:ident, $t:ty) => {
        on_set!($name, $t, wait_until_all => ());
        on_set!($name, $t, wait_until_any => usize);
        on_set!($name, $t, wait_until_some, indices: *mut usize => usize);
        on_set!($name, $t, test_all => c_int);
        on_set!($name, $t, test_any => usize);
        on_set!($name, $t, test_some, indices: *mut usize => usize);
    };
}
for_each_standard_amo_type!(sets);

macro_rules! old {
    ($name:ident, $t:ty) => {
        export! {
            [shmem_ $name _wait](ivar: *mut $t, cmp_value: $t)
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
