//! Atomic memory operations (OpenSHMEM 1.6, §9.7). This CPU carries out an operation on a word that
//! is mapped here, unless the job leaves all atomic operations to the network. Otherwise the
//! transport does.
#![allow(unsafe_code)]

use rushmem_communication::access::Access;
use rushmem_communication::access::contexts::{Context, PeArgument};
use rushmem_communication::observers::Argument;
use rushmem_pe::call::Call;
use rushmem_pe::memory::address::{mapped_atomic, mapped_polled_atomic};
use rushmem_transport::AmoOp;
pub use rushmem_transport::mem::{AddAmo, Amo, ArithmeticAmo, BitwiseAmo};

/// `shmem_atomic_fetch` (§9.7.1.1): returns the value of `source` on `pe`.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[inline(always)]
pub unsafe fn fetch<T: Amo, C: Context>(
    call: Call,
    ctx: C,
    source: *const T,
    pe: impl PeArgument,
) -> T {
    let pe = pe.of_world(call, ctx);
    match mapped_polled_atomic(source, pe) {
        // SAFETY: the lookup returns only mapped, aligned words.
        Some(word) => unsafe { T::fetch(word) },
        None => {
            let access = Access::of_word::<T, C>(call, ctx, Argument::Source, pe.number());
            T::from_bits(access.fetch(source.addr(), T::WIDTH, AmoOp::Fetch, 0, 0))
        }
    }
}

/// `shmem_atomic_fetch_nbi` (§9.7.2.1): stores the value of `source` on `pe` in the local `fetch`,
/// at the latest at the next quiet.
///
/// # Safety
/// As [`fetch`]; `fetch` is valid for a write until the next quiet.
#[inline(always)]
pub unsafe fn fetch_nbi<T: Amo, C: Context>(
    call: Call,
    ctx: C,
    fetch: *mut T,
    source: *const T,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    match mapped_polled_atomic(source, pe) {
        Some(word) => {
            // SAFETY: the lookup returns only mapped, aligned words.
            let old = unsafe { T::fetch(word) };
            // SAFETY: the caller promises that `fetch` is valid for a write until the next quiet.
            unsafe { fetch.write(old) }
        }
        None => {
            let access = Access::of_word::<T, C>(call, ctx, Argument::Source, pe.number());
            let op = AmoOp::Fetch;

            // SAFETY: the caller promises that `fetch` is valid for a write until the next quiet.
            unsafe { access.fetch_nbi(fetch.cast(), source.addr(), T::WIDTH, op, 0, 0) }
        }
    }
}

/// `shmem_atomic_compare_swap` (§9.7.1.3): stores `value` in `dest` on `pe` if that equals `cond`.
/// Returns the old value.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[inline(always)]
pub unsafe fn compare_swap<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    cond: T,
    value: T,
    pe: impl PeArgument,
) -> T {
    let pe = pe.of_world(call, ctx);
    match mapped_polled_atomic(dest, pe) {
        // SAFETY: the lookup returns only mapped, aligned words.
        Some(word) => unsafe { T::compare_swap(word, cond, value) },
        None => {
            let access = Access::of_word::<T, C>(call, ctx, Argument::Dest, pe.number());
            let op = AmoOp::CompareSwap;
            let old = access.fetch(dest.addr(), T::WIDTH, op, value.to_bits(), cond.to_bits());
            T::from_bits(old)
        }
    }
}

/// `shmem_atomic_compare_swap_nbi` (§9.7.2.2): a [`compare_swap`] that stores the old value in the
/// local `fetch`, at the latest at the next quiet.
///
/// # Safety
/// As [`compare_swap`]; `fetch` is valid for a write until the next quiet.
#[inline(always)]
pub unsafe fn compare_swap_nbi<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    fetch: *mut T,
    dest: *mut T,
    cond: T,
    value: T,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    match mapped_polled_atomic(dest, pe) {
        Some(word) => {
            // SAFETY: the lookup returns only mapped, aligned words.
            let old = unsafe { T::compare_swap(word, cond, value) };
            // SAFETY: the caller promises that `fetch` is valid for a write until the next quiet.
            unsafe { fetch.write(old) }
        }
        None => {
            let access = Access::of_word::<T, C>(call, ctx, Argument::Dest, pe.number());
            let op = AmoOp::CompareSwap;
            let value = value.to_bits();
            let cond = cond.to_bits();

            // SAFETY: the caller promises that `fetch` is valid for a write until the next quiet.
            unsafe { access.fetch_nbi(fetch.cast(), dest.addr(), T::WIDTH, op, value, cond) }
        }
    }
}

/// Defines the operations `$name` that combine `value` with `dest` on `pe` and return nothing:
/// `$operation` on a mapped word, `$op` over a network. `$clause` is that of the standard.
macro_rules! updates {
    ($($name:ident: $bound:ident :: $operation:ident, $op:expr, $clause:literal;)*) => {$(
        #[doc = concat!("`shmem_atomic_", stringify!($name), "` (§", $clause, "):")]
        #[doc = "updates `dest` on `pe` with `value`."]
        ///
        /// # Safety
        /// The precondition of all routines, which [the crate](crate#safety) states.
        #[inline(always)]
        pub unsafe fn $name<T: $bound, C: Context>(
            call: Call,
            ctx: C,
            dest: *mut T,
            value: T,
            pe: impl PeArgument,
        ) {
            let pe = pe.of_world(call, ctx);
            match mapped_atomic(dest, pe) {
                Some(word) => {
                    // The routine returns no value, so the old one is dropped.
                    // SAFETY: the lookup returns only mapped, aligned words.
                    let _ = unsafe { <T as $bound>::$operation(word, value) };
                }
                None => {
                    let access = Access::of_word::<T, C>(call, ctx, Argument::Dest, pe.number());
                    access.update(dest.addr(), T::WIDTH, $op, value.to_bits());
                }
            }
        }
    )*};
}

updates! {
    set: Amo::set, AmoOp::Set, "9.7.1.2";
    add: AddAmo::fetch_add, T::ADD, "9.7.1.8";
    and: BitwiseAmo::fetch_and, AmoOp::And, "9.7.1.10";
    or: BitwiseAmo::fetch_or, AmoOp::Or, "9.7.1.12";
    xor: BitwiseAmo::fetch_xor, AmoOp::Xor, "9.7.1.14";
}

/// Defines the operations that combine `value` with `dest` on `pe`: `$name` returns the old value,
/// `$name_nbi` stores it in the local `fetch`, at the latest at the next quiet.
macro_rules! fetching {
    ($(
        $name:ident, $name_nbi:ident: $bound:ident, $op:expr, $clause:literal, $clause_nbi:literal;
    )*) => {$(
        #[doc = concat!("`shmem_atomic_", stringify!($name), "` (§", $clause, "):")]
        #[doc = "updates `dest` on `pe` with `value`. Returns the old value."]
        ///
        /// # Safety
        /// The precondition of all routines, which [the crate](crate#safety) states.
        #[inline(always)]
        pub unsafe fn $name<T: $bound, C: Context>(
            call: Call,
            ctx: C,
            dest: *mut T,
            value: T,
            pe: impl PeArgument,
        ) -> T {
            let pe = pe.of_world(call, ctx);
            match mapped_polled_atomic(dest, pe) {
                // SAFETY: the lookup returns only mapped, aligned words.
                Some(word) => unsafe { <T as $bound>::$name(word, value) },
                None => {
                    let access = Access::of_word::<T, C>(call, ctx, Argument::Dest, pe.number());
                    let old = access.fetch(dest.addr(), T::WIDTH, $op, value.to_bits(), 0);
                    T::from_bits(old)
                }
            }
        }

        #[doc = concat!("`shmem_atomic_", stringify!($name_nbi), "` (§", $clause_nbi, "):")]
        #[doc = "updates `dest` on `pe` with `value`. Stores the old value in the local `fetch`,"]
        #[doc = "at the latest at the next quiet."]
        ///
        /// # Safety
        /// The precondition of all routines, which [the crate](crate#safety) states; `fetch` is
        /// valid for a write until the next quiet.
        #[inline(always)]
        pub unsafe fn $name_nbi<T: $bound, C: Context>(
            call: Call,
            ctx: C,
            fetch: *mut T,
            dest: *mut T,
            value: T,
            pe: impl PeArgument,
        ) {
            let pe = pe.of_world(call, ctx);
            match mapped_polled_atomic(dest, pe) {
                Some(word) => {
                    // SAFETY: the lookup returns only mapped, aligned words.
                    let old = unsafe { <T as $bound>::$name(word, value) };
                    // SAFETY: the caller promises that `fetch` is valid for a write until the next
                    // quiet.
                    unsafe { fetch.write(old) }
                }
                None => {
                    let access = Access::of_word::<T, C>(call, ctx, Argument::Dest, pe.number());
                    let value = value.to_bits();
                    // SAFETY: the caller promises that `fetch` is valid for a write until the next
                    // quiet.
                    unsafe { access.fetch_nbi(fetch.cast(), dest.addr(), T::WIDTH, $op, value, 0) }
                }
            }
        }
    )*};
}

fetching! {
    swap, swap_nbi: Amo, AmoOp::Swap, "9.7.1.4", "9.7.2.3";
    fetch_add, fetch_add_nbi: AddAmo, T::ADD, "9.7.1.7", "9.7.2.5";
    fetch_and, fetch_and_nbi: BitwiseAmo, AmoOp::And, "9.7.1.9", "9.7.2.6";
    fetch_or, fetch_or_nbi: BitwiseAmo, AmoOp::Or, "9.7.1.11", "9.7.2.7";
    fetch_xor, fetch_xor_nbi: BitwiseAmo, AmoOp::Xor, "9.7.1.13", "9.7.2.8";
}

/// `shmem_atomic_inc` (§9.7.1.6): adds 1 to `dest` on `pe`.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub unsafe fn inc<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    pe: impl PeArgument,
) {
    // SAFETY: the caller keeps the contract of `add`.
    unsafe { add(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_atomic_fetch_inc` (§9.7.1.5): adds 1 to `dest` on `pe`. Returns the old value.
///
/// # Safety
/// As [`fetch_add`].
#[inline(always)]
pub unsafe fn fetch_inc<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    pe: impl PeArgument,
) -> T {
    // SAFETY: the caller keeps the contract of `fetch_add`.
    unsafe { fetch_add(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_atomic_fetch_inc_nbi` (§9.7.2.4): a [`fetch_inc`] that stores the old value in the local
/// `fetch`, at the latest at the next quiet.
///
/// # Safety
/// As [`fetch_add_nbi`].
#[inline(always)]
pub unsafe fn fetch_inc_nbi<T: ArithmeticAmo, C: Context>(
    call: Call,
    ctx: C,
    fetch: *mut T,
    dest: *mut T,
    pe: impl PeArgument,
) {
    // SAFETY: the caller keeps the contract of `fetch_add_nbi`.
    unsafe { fetch_add_nbi(call, ctx, fetch, dest, T::ONE, pe) }
}
