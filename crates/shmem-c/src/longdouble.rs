//! `long double` by value, and its arithmetic: the Rust half of `longdouble.c`.
//!
//! Stable Rust cannot pass a `long double`, but it can jump to a C function that has one as an
//! argument. The code before the jump adds a last argument: the Rust function that moves the value
//! between addresses. The register of that argument depends only on the number of integer
//! arguments, since the value itself is on the stack (x86-64) or in a vector register (aarch64).
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use rushmem_runtime::combine::Combine;
use rushmem_runtime::rma;
use rushmem_runtime::{ContextHandle, DefaultContext};

use crate::types::LongDouble;

macro_rules! operators {
    ($($(#[$doc:meta])* $op:ident = $function:ident, $identity:expr;)+) => {
        unsafe extern "C" {$(
            fn $function(
                dest: *mut c_void, left: *const c_void, right: *const c_void, nelems: usize,
            );
        )+}
        $($(#[$doc])* pub const fn $op() -> Combine {
            // SAFETY: the function is one of `longdouble.c`, which combines elements of this type.
            unsafe { Combine::new(size_of::<LongDouble>(), $function) }.with_identity($identity)
        })+
    };
}
operators! {
    /// The maximum; NaN and signed zeros are ordered as for `f64` in `combine`.
    max = rushmem_longdouble_max, bytes_of(0xffff);
    /// The minimum; NaN and signed zeros are ordered as for `f64` in `combine`.
    min = rushmem_longdouble_min, bytes_of(0x7fff);
    /// The sum.
    sum = rushmem_longdouble_sum, [0; 16];
    /// The product.
    prod = rushmem_longdouble_prod, bytes_of(0x3fff);
}

/// Returns the bytes of a number other than 0 with this sign and exponent and no fraction: 0x3fff
/// is 1, 0x7fff and 0xffff are infinite.
const fn bytes_of(sign_and_exponent: u16) -> [u8; 16] {
    // On x86-64 the leading 1 of the significand is a bit of its own.
    #[cfg(target_arch = "x86_64")]
    let bits = (sign_and_exponent as u128) << 64 | 1 << 63;
    #[cfg(target_arch = "aarch64")]
    let bits = (sign_and_exponent as u128) << 112;
    bits.to_le_bytes()
}

/// Exports a function with a `long double` by value:
/// `[parts of the C name] = C function(x86-64 register, aarch64 register, Rust function);`
///
/// The registers are those of the argument that is added, which is the Rust function.
macro_rules! by_value {
    ([$($part:tt)+] = $function:ident($x86_64:literal, $aarch64:literal, $mover:ident)) => {
        const _: () = {
            unsafe extern "C" {
                fn $function();
            }

            #[unsafe(naked)]
            #[unsafe(export_name = concat!("p", $(stringify!($part)),+))]
            unsafe extern "C" fn body() {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!(
                    concat!("lea ", $x86_64, ", [rip + {mover}]"),
                    "jmp {function}",
                    mover = sym $mover,
                    function = sym $function,
                );
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!(
                    concat!("adrp ", $aarch64, ", {mover}"),
                    concat!("add ", $aarch64, ", ", $aarch64, ", :lo12:{mover}"),
                    "b {function}",
                    mover = sym $mover,
                    function = sym $function,
                );
            }

            jump!([$($part)+] => body);
        };
    };
}
by_value!([shmem_longdouble_p] = rushmem_longdouble_p("rdx", "x2", put));
by_value!([shmem_ctx_longdouble_p] = rushmem_longdouble_ctx_p("rcx", "x3", ctx_put));
by_value!([shmem_longdouble_g] = rushmem_longdouble_g("rdx", "x2", get));
by_value!([shmem_ctx_longdouble_g] = rushmem_longdouble_ctx_g("rcx", "x3", ctx_get));

unsafe extern "C" fn put(dest: *mut LongDouble, source: *const LongDouble, pe: c_int) {
    // SAFETY: the caller keeps the standard's contract for `dest` and `pe`; `source` is one element
    // on the stack.
    unsafe {
        rma::put(
            rushmem_runtime::call!("shmem_longdouble_p"),
            DefaultContext,
            dest,
            source,
            1,
            pe,
        )
    };
}

unsafe extern "C" fn ctx_put(
    ctx: ContextHandle,
    dest: *mut LongDouble,
    source: *const LongDouble,
    pe: c_int,
) {
    // SAFETY: the caller keeps the standard's contract for `ctx`, `dest` and `pe`; `source` is one
    // element on the stack.
    unsafe {
        rma::put(
            rushmem_runtime::call!("shmem_ctx_longdouble_p"),
            ctx,
            dest,
            source,
            1,
            pe,
        )
    };
}

unsafe extern "C" fn get(dest: *mut LongDouble, source: *const LongDouble, pe: c_int) {
    // SAFETY: the caller keeps the standard's contract for `source` and `pe`; `dest` is one element
    // on the stack.
    unsafe {
        rma::get(
            rushmem_runtime::call!("shmem_longdouble_g"),
            DefaultContext,
            dest,
            source,
            1,
            pe,
        )
    };
}

unsafe extern "C" fn ctx_get(
    ctx: ContextHandle,
    dest: *mut LongDouble,
    source: *const LongDouble,
    pe: c_int,
) {
    // SAFETY: the caller keeps the standard's contract for `ctx`, `source` and `pe`; `dest` is one
    // element on the stack.
    unsafe {
        rma::get(
            rushmem_runtime::call!("shmem_ctx_longdouble_g"),
            ctx,
            dest,
            source,
            1,
            pe,
        )
    };
}
