//! Strided blocks under Sandia's names, bitwise atomics on the signed types of C, and atomic sums
//! of floating-point numbers.

use core::ffi::{c_int, c_long, c_longlong};

use rushmem_runtime::{amo, rma};

macro_rules! blocks {
    ([$($before:tt)*] [$($after:tt)*] $t:ty) => {
        on_contexts_as! { shmemx_ shmemx_ctx_:
            [$($before)* ibput $($after)*]
                (
                    dest: *mut $t, source: *const $t, dst: isize, sst: isize,
                    bsize: usize, nblocks: usize, pe: c_int,
                )
                => rma::ibput;
            [$($before)* ibget $($after)*]
                (
                    dest: *mut $t, source: *const $t, dst: isize, sst: isize,
                    bsize: usize, nblocks: usize, pe: c_int,
                )
                => rma::ibget;
        }
    };
}

macro_rules! typed {
    ($name:ident, $t:ty) => {
        blocks!([$name _] [] $t);
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($size:tt, $t:ty) => {
        blocks!([] [$size] $t);
    };
}
for_each_size!(sized);

macro_rules! bitwise {
    ($name:ident, $t:ty) => {
        on_contexts! {
            [$name _atomic_and](dest: *mut $t, value: $t, pe: c_int) => amo::and;
            [$name _atomic_or](dest: *mut $t, value: $t, pe: c_int) => amo::or;
            [$name _atomic_xor](dest: *mut $t, value: $t, pe: c_int) => amo::xor;
            [$name _atomic_fetch_and](dest: *mut $t, value: $t, pe: c_int) -> $t => amo::fetch_and;
            [$name _atomic_fetch_or](dest: *mut $t, value: $t, pe: c_int) -> $t => amo::fetch_or;
            [$name _atomic_fetch_xor](dest: *mut $t, value: $t, pe: c_int) -> $t => amo::fetch_xor;
        }
    };
}
bitwise!(int, c_int);
bitwise!(long, c_long);
bitwise!(longlong, c_longlong);

macro_rules! float {
    ($name:ident, $t:ty) => {
        on_contexts_as! { shmemx_ shmemx_ctx_:
            [$name _atomic_add](dest: *mut $t, value: $t, pe: c_int) => amo::add;
            [$name _atomic_fetch_add](dest: *mut $t, value: $t, pe: c_int) -> $t => amo::fetch_add;
            [$name _atomic_fetch_add_nbi](fetch: *mut $t, dest: *mut $t, value: $t, pe: c_int)
                => amo::fetch_add_nbi;
        }
    };
}
float!(float, f32);
float!(double, f64);
