//! The arithmetic of REAL*16, an IEEE number of 128 bits, which stable Rust cannot do: the Rust
//! half of `quad.c`.
//!
//! On x86-64 it is not C's `long double`, whose 16 bytes hold 80 bits in another format.
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
            // SAFETY: the function is one of `quad.c`, made for such elements.
            unsafe { Combine::new(size_of::<Quad>(), $function) }
        })+
    };
}
operators! {
    /// The greater of two, ordered as in `combine`.
    max = rushmem_quad_max;
    /// The lesser of two, ordered as in `combine`.
    min = rushmem_quad_min;
    /// Addition.
    sum = rushmem_quad_sum;
    /// Multiplication.
    prod = rushmem_quad_prod;
}
