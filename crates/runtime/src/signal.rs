//! Signaling operations (OpenSHMEM 1.6, §9.8): data, then a word that says so.

use crate::address::translate;
use crate::call::{Call, fail};
use crate::constants::{SHMEM_SIGNAL_ADD, SHMEM_SIGNAL_SET};
use crate::ctx::Context;
use crate::visibility::release;
use crate::{rma, wait};
use core::ffi::c_int;
use rushmem_transport::mem::{Amo, ArithmeticAmo};

/// `shmem_put_signal` (§9.8.1): a put, then `sig_op` (`SHMEM_SIGNAL_SET` or `SHMEM_SIGNAL_ADD`) with
/// `signal` on the word `sig_addr` of the same PE, never seen before the data.
///
/// # Safety
/// `source` is valid for reads of `nelems` elements; `sig_addr` is aligned.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_put_signal")]
#[inline(always)]
pub unsafe fn put_signal<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    // SAFETY: the same contract.
    unsafe { rma::put(call, ctx, dest, source, nelems, pe) };
    // SAFETY: aligned by contract.
    unsafe { update(call, ctx, sig_addr, signal, sig_op, pe) }
}

/// `shmem_put_signal_nbi` (§9.8.2).
///
/// # Safety
/// As [`put_signal`], but `source` until the next quiet.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_put_signal_nbi")]
#[inline(always)]
pub unsafe fn put_signal_nbi<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    // SAFETY: the same contract.
    unsafe { put_signal(call, ctx, dest, source, nelems, sig_addr, signal, sig_op, pe) }
}

/// `shmem_signal_add` (§9.8.3).
///
/// # Safety
/// `sig_addr` is aligned.
#[inline(always)]
pub unsafe fn add<C: Context>(call: Call, ctx: C, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: the same contract.
    unsafe { update(call, ctx, sig_addr, signal, SHMEM_SIGNAL_ADD, pe) }
}

/// `shmem_signal_set` (§9.8.5).
///
/// # Safety
/// `sig_addr` is aligned.
#[inline(always)]
pub unsafe fn set<C: Context>(call: Call, ctx: C, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: the same contract.
    unsafe { update(call, ctx, sig_addr, signal, SHMEM_SIGNAL_SET, pe) }
}

#[inline(always)]
unsafe fn update<C: Context>(
    call: Call,
    ctx: C,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    let at = translate(call, "sig_addr", sig_addr, 8, ctx.world_pe(call, pe));
    release();
    match sig_op {
        // SAFETY: checked to be mapped, aligned by contract.
        SHMEM_SIGNAL_SET => unsafe { u64::set(at, signal) },
        SHMEM_SIGNAL_ADD => {
            // SAFETY: checked to be mapped, aligned by contract.
            unsafe { u64::fetch_add(at, signal) };
        }
        _ => fail!(
            call,
            "argument sig_op is {sig_op}, neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD"
        ),
    }
}

/// `shmem_signal_fetch` (§9.8.4): the own signal word.
///
/// # Safety
/// `sig_addr` is valid for reads and aligned.
pub unsafe fn fetch(call: Call, sig_addr: *const u64) -> u64 {
    crate::job::require(call);
    // SAFETY: valid and aligned by contract.
    unsafe { u64::fetch(sig_addr) }
}

/// `shmem_signal_wait_until` (§9.11.15): wait for the own signal word, return the value that
/// satisfied the comparison.
///
/// # Safety
/// `sig_addr` is valid for reads and aligned.
pub unsafe fn wait_until(call: Call, sig_addr: *mut u64, cmp: c_int, cmp_value: u64) -> u64 {
    // SAFETY: the same contract.
    unsafe { wait::wait_for(call, sig_addr, cmp, cmp_value) }
}
