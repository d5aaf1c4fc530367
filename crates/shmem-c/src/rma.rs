//! Remote memory access (OpenSHMEM 1.6, 9.6).
//!
//! A name is `[before] put [after]`: `long_put`, `put64`, `putmem`.

use core::ffi::c_int;

use rushmem_runtime::rma;

macro_rules! contiguous {
    ([$($before:tt)*] [$($after:tt)*] $type:ty) => {
        on_contexts! {
            [$($before)* put $($after)*]
                (dest: *mut $type, source: *const $type, nelems: usize, pe: c_int) => rma::put;
            [$($before)* get $($after)*]
                (dest: *mut $type, source: *const $type, nelems: usize, pe: c_int) => rma::get;
            [$($before)* put $($after)* _nbi]
                (dest: *mut $type, source: *const $type, nelems: usize, pe: c_int) => rma::put_nbi;
            [$($before)* get $($after)* _nbi]
                (dest: *mut $type, source: *const $type, nelems: usize, pe: c_int) => rma::get_nbi;
        }
    };
}

macro_rules! strided {
    ([$($before:tt)*] [$($after:tt)*] $type:ty) => {
        on_contexts! {
            [$($before)* iput $($after)*]
                (dest: *mut $type, source: *const $type, dst: isize, sst: isize, nelems: usize, pe: c_int)
                => rma::iput;
            [$($before)* iget $($after)*]
                (dest: *mut $type, source: *const $type, dst: isize, sst: isize, nelems: usize, pe: c_int)
                => rma::iget;
            [$($before)* ibput $($after)*]
                (dest: *mut $type, source: *const $type, dst: isize, sst: isize, bsize: usize, nblocks: usize, pe: c_int)
                => rma::ibput;
            [$($before)* ibget $($after)*]
                (dest: *mut $type, source: *const $type, dst: isize, sst: isize, bsize: usize, nblocks: usize, pe: c_int)
                => rma::ibget;
        }
    };
}

macro_rules! single {
    // By value: see `longdouble`.
    (longdouble, $type:ty) => {};
    ($name:ident, $type:ty) => {
        on_contexts! {
            [$name _p](dest: *mut $type, value: $type, pe: c_int) => rma::p;
            [$name _g](source: *const $type, pe: c_int) -> $type => rma::g;
        }
    };
}

macro_rules! typed {
    ($name:ident, $type:ty) => {
        contiguous!([$name _] [] $type);
        strided!([$name _] [] $type);
        single!($name, $type);
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($size:tt, $type:ty) => {
        contiguous!([] [$size] $type);
        strided!([] [$size] $type);
    };
}
for_each_size!(sized);

contiguous!([] [mem] u8);
