//! Remote memory access (OpenSHMEM 1.6, 9.6).
//!
//! A name is `[before] put [after]`: `long_put`, `put64`, `putmem`.

use core::ffi::c_int;

use rushmem_runtime::rma;

macro_rules! contiguous {
    ([$($before:tt)*] [$($after:tt)*] $t:ty) => {
        on_contexts! {
            [$($before)* put $($after)*]
                (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::put;
            [$($before)* get $($after)*]
                (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::get;
            [$($before)* put $($after)* _nbi]
                (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::put_nbi;
            [$($before)* get $($after)* _nbi]
                (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::get_nbi;
        }
    };
}

macro_rules! strided {
    ([$($before:tt)*] [$($after:tt)*] $t:ty) => {
        on_contexts! {
            [$($before)* iput $($after)*]
                (dest: *mut $t, source: *const $t, dst: isize, sst: isize, nelems: usize, pe: c_int)
                => rma::iput;
            [$($before)* iget $($after)*]
                (dest: *mut $t, source: *const $t, dst: isize, sst: isize, nelems: usize, pe: c_int)
                => rma::iget;
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

macro_rules! single {
    // By value: see `longdouble`.
    (longdouble, $t:ty) => {};
    ($name:ident, $t:ty) => {
        on_contexts! {
            [$name _p](dest: *mut $t, value: $t, pe: c_int) => rma::p;
            [$name _g](source: *const $t, pe: c_int) -> $t => rma::g;
        }
    };
}

macro_rules! typed {
    ($name:ident, $t:ty) => {
        contiguous!([$name _] [] $t);
        strided!([$name _] [] $t);
        single!($name, $t);
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($size:tt, $t:ty) => {
        contiguous!([] [$size] $t);
        strided!([] [$size] $t);
    };
}
for_each_size!(sized);

contiguous!([] [mem] u8);
