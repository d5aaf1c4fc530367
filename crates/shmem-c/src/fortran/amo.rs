//! Atomic memory operations, and sums of real numbers as an extension.

use core::ffi::c_int;

use rushmem_runtime::DefaultContext;
use rushmem_runtime::amo;

use super::export::In;

macro_rules! extended {
    ($($name:ident $t:ty;)+) => {
        fortran! {$(
            [shmem_ $name _fetch](source: *const $t, pe: In<c_int>) -> $t
                = |call| amo::fetch(call, DefaultContext, source, pe);
            [shmem_ $name _set](dest: *mut $t, value: In<$t>, pe: In<c_int>)
                = |call| amo::set(call, DefaultContext, dest, value, pe);
            [shmem_ $name _swap](dest: *mut $t, value: In<$t>, pe: In<c_int>) -> $t
                = |call| amo::swap(call, DefaultContext, dest, value, pe);
        )+}
    };
}
extended! {
    int4 i32;
    int8 i64;
    real4 f32;
    real8 f64;
}

macro_rules! standard {
    ($($name:ident $t:ty;)+) => {
        fortran! {$(
            [shmem_ $name _add](dest: *mut $t, value: In<$t>, pe: In<c_int>)
                = |call| amo::add(call, DefaultContext, dest, value, pe);
            [shmem_ $name _fadd](dest: *mut $t, value: In<$t>, pe: In<c_int>) -> $t
                = |call| amo::fetch_add(call, DefaultContext, dest, value, pe);
            [shmem_ $name _inc](dest: *mut $t, pe: In<c_int>)
                = |call| amo::inc(call, DefaultContext, dest, pe);
            [shmem_ $name _finc](dest: *mut $t, pe: In<c_int>) -> $t
                = |call| amo::fetch_inc(call, DefaultContext, dest, pe);
            [shmem_ $name _cswap]
                (dest: *mut $t, cond: In<$t>, value: In<$t>, pe: In<c_int>) -> $t
                = |call| amo::compare_swap(call, DefaultContext, dest, cond, value, pe);
        )+}
    };
}
standard! {
    int4 i32;
    int8 i64;
}

macro_rules! sums {
    ($($name:ident $t:ty;)+) => {
        fortran! {$(
            [shmemx_ $name _add](dest: *mut $t, value: In<$t>, pe: In<c_int>)
                = |call| amo::add(call, DefaultContext, dest, value, pe);
            [shmemx_ $name _fadd](dest: *mut $t, value: In<$t>, pe: In<c_int>) -> $t
                = |call| amo::fetch_add(call, DefaultContext, dest, value, pe);
        )+}
    };
}
sums! {
    real4 f32;
    real8 f64;
}

fortran! {
    [shmem_swap](dest: *mut i32, value: In<i32>, pe: In<c_int>) -> i32
        = |call| amo::swap(call, DefaultContext, dest, value, pe);
}
