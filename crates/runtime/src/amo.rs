//! Atomic memory operations (OpenSHMEM 1.6, §9.7) by this CPU.

use crate::address::translate;
use crate::call::Call;
use crate::ctx::Context;
use core::ffi::c_int;
use rushmem_transport::mem::{Amo, ArithmeticAmo, BitwiseAmo};

/// `shmem_atomic_fetch` (§9.7.1.1).
///
/// # Safety
/// `source` is aligned to its type's size; what else it may be is checked.
#[inline(always)]
pub unsafe fn fetch<T: Amo, C: Context>(call: Call, ctx: C, source: *const T, pe: c_int) -> T {
    let at = translate(call, "source", source, size_of::<T>(), ctx.world_pe(call, pe));
    // SAFETY: checked to be mapped, aligned by contract.
    unsafe { T::fetch(at) }
}

/// `shmem_atomic_fetch_nbi` (§9.7.2.1).
///
/// # Safety
/// As [`fetch`]; `fetch` is valid for a write.
#[inline(always)]
pub unsafe fn fetch_nbi<T: Amo, C: Context>(
    call: Call,
    ctx: C,
    fetch: *mut T,
    source: *const T,
    pe: c_int,
) {
    // SAFETY: the same contract.
    let old = unsafe { self::fetch(call, ctx, source, pe) };
    // SAFETY: valid for a write by contract.
    unsafe { fetch.write(old) }
}

/// `shmem_atomic_compare_swap` (§9.7.1.3).
///
/// # Safety
/// `dest` is aligned to its type's size; what else it may be is checked.
#[inline(always)]
pub unsafe fn compare_swap<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) -> T {
    let at = translate(call, "dest", dest, size_of::<T>(), ctx.world_pe(call, pe));
    // SAFETY: checked to be mapped, aligned by contract.
    unsafe { T::compare_swap(at, cond, value) }
}

/// `shmem_atomic_compare_swap_nbi` (§9.7.2.2).
///
/// # Safety
/// As [`compare_swap`]; `fetch` is valid for a write.
#[inline(always)]
pub unsafe fn compare_swap_nbi<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    fetch: *mut T,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) {
    // SAFETY: the same contract.
    let old = unsafe { compare_swap(call, ctx, dest, cond, value, pe) };
    // SAFETY: valid for a write by contract.
    unsafe { fetch.write(old) }
}

macro_rules! updates {
    ($($name:ident: $bound:ident :: $operation:ident, $clause:literal;)*) => {$(
        #[doc = concat!("`shmem_atomic_", stringify!($name), "` (§", $clause, ").")]
        ///
        /// # Safety
        /// `dest` is aligned to its type's size; what else it may be is checked.
        #[inline(always)]
        pub unsafe fn $name<T: $bound, C: Context>(
            call: Call,
            ctx: C,
            dest: *mut T,
            value: T,
            pe: c_int,
        ) {
            let at = translate(call, "dest", dest, size_of::<T>(), ctx.world_pe(call, pe));
            // SAFETY: checked to be mapped, aligned by contract.
            let _ = unsafe { <T as $bound>::$operation(at, value) };
        }
    )*};
}

updates! {
    set: Amo::set, "9.7.1.2";
    add: ArithmeticAmo::fetch_add, "9.7.1.8";
    and: BitwiseAmo::fetch_and, "9.7.1.10";
    or: BitwiseAmo::fetch_or, "9.7.1.12";
    xor: BitwiseAmo::fetch_xor, "9.7.1.14";
}

macro_rules! fetching {
    ($($name:ident, $name_nbi:ident: $bound:ident, $clause:literal, $clause_nbi:literal;)*) => {$(
        #[doc = concat!("`shmem_atomic_", stringify!($name), "` (§", $clause, ").")]
        ///
        /// # Safety
        /// `dest` is aligned to its type's size; what else it may be is checked.
        #[inline(always)]
        pub unsafe fn $name<T: $bound, C: Context>(
            call: Call,
            ctx: C,
            dest: *mut T,
            value: T,
            pe: c_int,
        ) -> T {
            let at = translate(call, "dest", dest, size_of::<T>(), ctx.world_pe(call, pe));
            // SAFETY: checked to be mapped, aligned by contract.
            unsafe { <T as $bound>::$name(at, value) }
        }

        #[doc = concat!("`shmem_atomic_", stringify!($name_nbi), "` (§", $clause_nbi, ").")]
        ///
        /// # Safety
        /// `dest` is aligned to its type's size; `fetch` is valid for a write.
        #[inline(always)]
        pub unsafe fn $name_nbi<T: $bound, C: Context>(
            call: Call,
            ctx: C,
            fetch: *mut T,
            dest: *mut T,
            value: T,
            pe: c_int,
        ) {
            // SAFETY: the same contract.
            let old = unsafe { $name(call, ctx, dest, value, pe) };
            // SAFETY: valid for a write by contract.
            unsafe { fetch.write(old) }
        }
    )*};
}

fetching! {
    swap, swap_nbi: Amo, "9.7.1.4", "9.7.2.3";
    fetch_add, fetch_add_nbi: ArithmeticAmo, "9.7.1.7", "9.7.2.5";
    fetch_and, fetch_and_nbi: BitwiseAmo, "9.7.1.9", "9.7.2.6";
    fetch_or, fetch_or_nbi: BitwiseAmo, "9.7.1.11", "9.7.2.7";
    fetch_xor, fetch_xor_nbi: BitwiseAmo, "9.7.1.13", "9.7.2.8";
}

/// `shmem_atomic_inc` (§9.7.1.6).
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub unsafe fn inc<T: ArithmeticAmo, C: Context>(call: Call, ctx: C, dest: *mut T, pe: c_int) {
    // SAFETY: the same contract.
    unsafe { add(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_atomic_fetch_inc` (§9.7.1.5).
///
/// # Safety
/// As [`fetch_add`].
#[inline(always)]
pub unsafe fn fetch_inc<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    pe: c_int,
) -> T {
    // SAFETY: the same contract.
    unsafe { fetch_add(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_atomic_fetch_inc_nbi` (§9.7.2.4).
///
/// # Safety
/// As [`fetch_add_nbi`].
#[inline(always)]
pub unsafe fn fetch_inc_nbi<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    fetch: *mut T,
    dest: *mut T,
    pe: c_int,
) {
    // SAFETY: the same contract.
    unsafe { fetch_add_nbi(call, ctx, fetch, dest, T::ONE, pe) }
}
