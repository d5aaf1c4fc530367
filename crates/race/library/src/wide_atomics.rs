//! Atomic operations of 16 bytes, like the shorter ones in `tsan`. A value takes two registers, so
//! the return address is an earlier argument than there, or, for a compare-and-swap, a later one.
#![allow(unsafe_code)]

use crate::atomic_operation::AtomicOperation;
use crate::tsan::with_return_address;
use core::ffi::c_int;
use portable_atomic::AtomicU128;
use std::sync::atomic::Ordering::SeqCst;

fn word(addr: usize) -> &'static AtomicU128 {
    // SAFETY: the program makes an atomic operation of this size at the address, so it is valid and
    // aligned now; the callers use the reference at once.
    unsafe { AtomicU128::from_ptr(std::ptr::with_exposed_provenance_mut(addr)) }
}

fn operation(addr: usize, return_address: usize) -> AtomicOperation {
    AtomicOperation {
        addr,
        nbytes: size_of::<u128>(),
        return_address,
    }
}

// All are sequentially consistent, as those of `tsan`.

extern "C" fn load(
    addr: usize,
    order: c_int,
    _: usize,
    _: usize,
    _: usize,
    return_address: usize,
) -> u128 {
    operation(addr, return_address).load(order, || word(addr).load(SeqCst))
}

extern "C" fn store(
    addr: usize,
    value: u128,
    order: c_int,
    // On aarch64 the two registers of a value begin with an even one, so one is skipped.
    #[cfg(target_arch = "x86_64")] _: usize,
    return_address: usize,
) {
    operation(addr, return_address).store(order, || word(addr).store(value, SeqCst));
}

macro_rules! updates {
    ($($name:ident)*) => {$(
        extern "C" fn $name(
            addr: usize,
            value: u128,
            order: c_int,
            // As for `store`.
            #[cfg(target_arch = "x86_64")] _: usize,
            return_address: usize,
        ) -> u128 {
            operation(addr, return_address).update(order, || word(addr).$name(value, SeqCst))
        }
    )*};
}

updates! { swap fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand }

extern "C" fn compare_exchange(
    addr: usize,
    expected: *mut u128,
    value: u128,
    success: c_int,
    failure: c_int,
    return_address: usize,
) -> c_int {
    // SAFETY: `expected` points to a variable of the program of this type.
    let wanted = unsafe { expected.read() };
    let found = compare_exchange_val(addr, wanted, value, success, failure, return_address);
    if found != wanted {
        // SAFETY: as above; the program lets the operation write to the variable.
        unsafe { expected.write(found) };
    }
    c_int::from(found == wanted)
}

extern "C" fn compare_exchange_val(
    addr: usize,
    wanted: u128,
    value: u128,
    success: c_int,
    failure: c_int,
    return_address: usize,
) -> u128 {
    let load = || word(addr).load(SeqCst);
    let exchange = || word(addr).compare_exchange(wanted, value, SeqCst, SeqCst);
    operation(addr, return_address)
        .compare_exchange(wanted, [success, failure], load, exchange)
        .unwrap_or_else(|other| other)
}

with_return_address! {
    __tsan_atomic128_load => load;
    __tsan_atomic128_store => store;
    __tsan_atomic128_exchange => swap;
    __tsan_atomic128_fetch_add => fetch_add;
    __tsan_atomic128_fetch_sub => fetch_sub;
    __tsan_atomic128_fetch_and => fetch_and;
    __tsan_atomic128_fetch_or => fetch_or;
    __tsan_atomic128_fetch_xor => fetch_xor;
    __tsan_atomic128_fetch_nand => fetch_nand;
}

/// Defines stubs of functions of ThreadSanitizer whose arguments leave no register for the return
/// address on x86-64: the program's six are in registers.
macro_rules! with_seventh_argument {
    ($($name:ident)+) => {$(
        /// A stub of ThreadSanitizer's function of this name.
        ///
        /// # Safety
        /// The compiler makes the call.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push qword ptr [rsp]",
                ".cfi_adjust_cfa_offset 8",
                "call {}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                sym compare_exchange
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("mov x6, x30", "b {}", sym compare_exchange);
        }
    )+};
}

with_seventh_argument! {
    __tsan_atomic128_compare_exchange_strong
    __tsan_atomic128_compare_exchange_weak
}

/// A stub of ThreadSanitizer's function of this name.
///
/// # Safety
/// The compiler makes the call.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_val() {
    // The two values leave one register for the two orders, so the second order is on the stack.
    // The function that is called finds it there again, and then the return address.
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        "push qword ptr [rsp + 8]",
        "push qword ptr [rsp + 24]",
        ".cfi_adjust_cfa_offset 24",
        "call {}",
        "add rsp, 24",
        ".cfi_adjust_cfa_offset -24",
        "ret",
        ".cfi_endproc",
        sym compare_exchange_val
    );
    // The values and the orders are in the registers up to x7.
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub sp, sp, #32",
        ".cfi_def_cfa_offset 32",
        "str x30, [sp]",
        "str x30, [sp, #16]",
        ".cfi_offset x30, -16",
        "bl {}",
        "ldr x30, [sp, #16]",
        "add sp, sp, #32",
        ".cfi_def_cfa_offset 0",
        "ret",
        ".cfi_endproc",
        sym compare_exchange_val
    );
}
