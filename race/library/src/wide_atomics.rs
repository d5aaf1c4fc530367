//! Atomic operations of 16 bytes, like the shorter ones in `tsan`. A value takes two registers, so
//! the return address, which is in the sixth register, is an earlier argument than there.
#![allow(unsafe_code)]

use crate::tsan::{atomic, with_place};
use core::ffi::c_int;
use portable_atomic::AtomicU128;
use std::sync::atomic::Ordering::SeqCst;

const NBYTES: usize = 16;

fn at(addr: usize) -> &'static AtomicU128 {
    // SAFETY: the program makes an atomic operation of this size at the address, so it is valid and
    // aligned now; the callers use the reference at once.
    unsafe { AtomicU128::from_ptr(std::ptr::with_exposed_provenance_mut(addr)) }
}

extern "C" fn load(a: usize, _: c_int, _: usize, _: usize, _: usize, place: usize) -> u128 {
    atomic(a, NBYTES, false, place, || at(a).load(SeqCst))
}

macro_rules! updates {
    ($($name:ident)*) => {$(
        extern "C" fn $name(
            a: usize,
            v: u128,
            _: c_int,
            // On aarch64 the two registers of a value begin with an even one, so one is skipped.
            #[cfg(target_arch = "x86_64")] _: usize,
            place: usize,
        ) -> u128 {
            atomic(a, NBYTES, true, place, || at(a).$name(v, SeqCst))
        }
    )*};
}

updates! { swap fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand }

extern "C" fn compare_exchange(
    a: usize,
    expected: *mut u128,
    v: u128,
    _: c_int,
    place: usize,
) -> c_int {
    // SAFETY: the compiler passes a variable of this type.
    let wanted = unsafe { expected.read() };
    let exchange = || at(a).compare_exchange(wanted, v, SeqCst, SeqCst);
    let found = atomic(a, NBYTES, true, place, exchange);
    if let Err(other) = found {
        // SAFETY: the same variable.
        unsafe { expected.write(other) };
    }
    c_int::from(found.is_ok())
}

extern "C" fn compare_exchange_val(a: usize, wanted: u128, v: u128, place: usize) -> u128 {
    let exchange = || at(a).compare_exchange(wanted, v, SeqCst, SeqCst);
    atomic(a, NBYTES, true, place, exchange).unwrap_or_else(|other| other)
}

with_place! {
    __tsan_atomic128_load => load;
    __tsan_atomic128_store => swap;
    __tsan_atomic128_exchange => swap;
    __tsan_atomic128_fetch_add => fetch_add;
    __tsan_atomic128_fetch_sub => fetch_sub;
    __tsan_atomic128_fetch_and => fetch_and;
    __tsan_atomic128_fetch_or => fetch_or;
    __tsan_atomic128_fetch_xor => fetch_xor;
    __tsan_atomic128_fetch_nand => fetch_nand;
    __tsan_atomic128_compare_exchange_strong => compare_exchange;
    __tsan_atomic128_compare_exchange_weak => compare_exchange;
}

/// A stub of ThreadSanitizer's function of this name.
///
/// # Safety
/// The compiler makes the call.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_val() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov r9, [rsp]", "jmp {}", sym compare_exchange_val);
    // The two values are in the registers from x2 to x5, so the return address is in the seventh.
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x6, x30", "b {}", sym compare_exchange_val);
}
