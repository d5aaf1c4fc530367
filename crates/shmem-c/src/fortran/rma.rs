//! Remote memory access.
//!
//! The number in a name is the size of an element: in bytes if it is 4 or 8, in bits if it is more.
//! So SHMEM_PUT8 is the same as SHMEM_PUT64, and not the same as `shmem_put8` in C.

use core::ffi::c_int;

use rushmem_runtime::DefaultContext;
use rushmem_runtime::rma;

use super::export::{Elements, In};

macro_rules! contiguous {
    ($([$($name:tt)+] $function:ident $t:ty;)+) => {
        fortran! {$(
            [$($name)+](dest: *mut $t, source: *const $t, nelems: Elements, pe: In<c_int>)
                = |call| rma::$function(call, DefaultContext, dest, source, nelems, pe);
        )+}
    };
}

macro_rules! strided {
    ($([$($name:tt)+] $function:ident $t:ty;)+) => {
        fortran! {$(
            [$($name)+]
                (
                    dest: *mut $t, source: *const $t, dst: In<c_int>, sst: In<c_int>,
                    nelems: Elements, pe: In<c_int>,
                )
                = |call| rma::$function(
                    call, DefaultContext, dest, source, dst as isize, sst as isize, nelems, pe
                );
        )+}
    };
}

/// A name is `[before] put [after]`: `real_put`, `put64`, `putmem`.
macro_rules! accesses {
    ([$($before:tt)*] [$($after:tt)*] $t:ty) => {
        contiguous! {
            [shmem_ $($before)* put $($after)*] put $t;
            [shmem_ $($before)* get $($after)*] get $t;
            [shmem_ $($before)* put $($after)* _nbi] put_nbi $t;
            [shmem_ $($before)* get $($after)* _nbi] get_nbi $t;
        }
        strided! {
            [shmem_ $($before)* iput $($after)*] iput $t;
            [shmem_ $($before)* iget $($after)*] iget $t;
        }
    };
}
accesses!([character_] [] u8);
accesses!([complex_] [] [f32; 2]);
accesses!([double_] [] f64);
accesses!([integer_] [] i32);
accesses!([logical_] [] i32);
accesses!([real_] [] f32);
accesses!([] [4] u32);
accesses!([] [8] u64);
accesses!([] [32] u32);
accesses!([] [64] u64);
accesses!([] [128] [u64; 2]);
accesses!([] [mem] u8);

contiguous! {
    [shmem_put] put u64;
    [shmem_get] get u64;
}
