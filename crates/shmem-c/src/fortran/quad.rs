//! The arithmetic of REAL*16, an IEEE number of 128 bits, which stable Rust lacks: the Rust half of
//! `quad.c`.
//!
//! On x86-64, REAL*16 is not C's `long double`, which has 80 bits in another format.
#![allow(unsafe_code)]

use core::ffi::c_void;

use rushmem_runtime::combine::Combine;

/// A REAL*16, opaque to Rust.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct Quad([u64; 2]);

macro_rules! operators {
    ($($(#[$doc:meta])* $op:ident = $function:ident;)+) => {
        unsafe extern "C" {$(
            fn $function(
                dest: *mut c_void, left: *const c_void, right: *const c_void, nelems: usize,
            );
        )+}
        $($(#[$doc])* pub const fn $op() -> Combine {
            // SAFETY: the function is one of `quad.c`, which combines elements of this type.
            unsafe { Combine::new(size_of::<Quad>(), $function) }
        })+
    };
}
operators! {
    /// The maximum; NaN and signed zeros are ordered as for `f64` in `combine`.
    max = rushmem_quad_max;
    /// The minimum; NaN and signed zeros are ordered as for `f64` in `combine`.
    min = rushmem_quad_min;
    /// Addition.
    sum = rushmem_quad_sum;
    /// Multiplication.
    prod = rushmem_quad_prod;
}
