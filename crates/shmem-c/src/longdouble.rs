//! `long double` by value, and its arithmetic: the Rust half of `longdouble.c`.
//!
//! Stable Rust cannot pass a `long double`, but it can jump to a C function that takes one. The
//! jump adds an argument behind those of the caller: the Rust function that moves the value between
//! addresses. That argument's register follows from the integer arguments alone, since the value
//! travels on the stack (x86-64) or in a vector register (aarch64).
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use rushmem_runtime::combine::Combine;
use rushmem_runtime::rma;
use rushmem_runtime::{ContextHandle, DefaultContext};

use crate::types::LongDouble;

macro_rules! operators {
    ($($(#[$doc:meta])* $op:ident = $function:ident;)+) => {
        unsafe extern "C" {$(
            fn $function(
                dest: *mut c_void, left: *const c_void, right: *const c_void, nelems: usize,
            );
        )+}
        $($(#[$doc])* pub const fn $op() -> Combine {
            // SAFETY: the function is one of `longdouble.c`, made for such elements.
            unsafe { Combine::new(size_of::<LongDouble>(), $function) }
        })+
    };
}
operators! {
    /// The greater of two, ordered as in `combine`.
    max = rushmem_longdouble_max;
    /// The lesser of two, ordered as in `combine`.
    min = rushmem_longdouble_min;
    /// Addition.
    sum = rushmem_longdouble_sum;
    /// Multiplication.
    prod = rushmem_longdouble_prod;
}

/// The operator of a reduction over `TYPE`, by its name in the type table.
macro_rules! combine {
    (longdouble, $type:ty, $op:ident) => {
        const { &$crate::longdouble::$op() }
    };
    ($name:ident, $type:ty, $op:ident) => {
        const { &rushmem_runtime::combine::Combine::$op::<$type>() }
    };
}
pub(crate) use combine;

/// Exports a function by value: `[parts of the C name] = C function(register, Rust function);`
///
/// The register is that of the argument added, on x86-64 and on aarch64.
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
    // SAFETY: dest and pe are the caller's, source is one element on the stack.
    unsafe {
        rma::put(rushmem_runtime::call!("shmem_longdouble_p"), DefaultContext, dest, source, 1, pe)
    };
}

unsafe extern "C" fn ctx_put(
    ctx: ContextHandle,
    dest: *mut LongDouble,
    source: *const LongDouble,
    pe: c_int,
) {
    // SAFETY: as `put`, and ctx is the caller's.
    unsafe { rma::put(rushmem_runtime::call!("shmem_ctx_longdouble_p"), ctx, dest, source, 1, pe) };
}

unsafe extern "C" fn get(dest: *mut LongDouble, source: *const LongDouble, pe: c_int) {
    // SAFETY: source and pe are the caller's, dest is one element on the stack.
    unsafe {
        rma::get(rushmem_runtime::call!("shmem_longdouble_g"), DefaultContext, dest, source, 1, pe)
    };
}

unsafe extern "C" fn ctx_get(
    ctx: ContextHandle,
    dest: *mut LongDouble,
    source: *const LongDouble,
    pe: c_int,
) {
    // SAFETY: as `get`, and ctx is the caller's.
    unsafe { rma::get(rushmem_runtime::call!("shmem_ctx_longdouble_g"), ctx, dest, source, 1, pe) };
}
