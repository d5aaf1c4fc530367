//! Signaling operations (OpenSHMEM 1.6, §9.8): updates of signal words. A put with signal is a put,
//! then an update of a word at the same PE, which is visible only after the data. `wait` waits for
//! signal words.
#![allow(unsafe_code)]

use crate::api::rma::{bytes_of, copy};
use crate::api::wait;
use crate::own_pe::Caller;
use core::ffi::c_int;
use rushmem_communication::access::atomic::{SignalUpdate, update_mapped};
use rushmem_communication::access::contexts::{Context, PeArgument};
use rushmem_communication::access::{Access, Completion};
use rushmem_communication::net::polls;
use rushmem_communication::observers::{self, Action, Event};
use rushmem_communication::status::polled_calls;
use rushmem_explain::status::PolledObject;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::{SHMEM_SIGNAL_ADD, SHMEM_SIGNAL_SET};
use rushmem_pe::job;
use rushmem_pe::memory::address::{mapped, mapped_atomic};
use rushmem_pe::memory::checks::require_aligned;
use rushmem_pe::memory::range::symmetric;
use rushmem_transport::mem::{Amo, Element, VolatileLoads};
use rushmem_transport::{AmoOp, AmoWidth};

/// Defines forms of a put with a signal. `$completion` is the [`Completion`] of the put.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident = $completion:ident;)*) => {$(
        $(#[$doc])*
        #[expect(clippy::too_many_arguments, reason = "the arguments of shmem_put_signal")]
        #[inline(always)]
        pub unsafe fn $name<T: Element, C: Context>(
            call: Call,
            ctx: C,
            dest: *mut T,
            source: *const T,
            nelems: usize,
            sig_addr: *mut u64,
            signal: u64,
            sig_op: c_int,
            pe: impl PeArgument,
        ) {
            let completion = Completion::$completion;
            // SAFETY: the caller promises that `source` is valid for reads of `nelems` elements
            // until the put is complete.
            unsafe {
                put_signal_until(
                    call, ctx, dest, source, nelems, sig_addr, signal, sig_op, pe, completion,
                )
            }
        }
    )*};
}

forms! {
    /// `shmem_put_signal` (§9.8.1): a put, then an update of the word `sig_addr` at the same PE
    /// with `signal` by `sig_op` (`SHMEM_SIGNAL_SET` or `SHMEM_SIGNAL_ADD`).
    ///
    /// # Safety
    /// `source` is valid for reads of `nelems` elements.
    put_signal = Now;

    /// `shmem_put_signal_nbi` (§9.8.2): a [`put_signal`] that the next quiet completes.
    ///
    /// # Safety
    /// As [`put_signal`], but `source` must be valid until the next quiet.
    put_signal_nbi = AtQuiet;
}

/// Performs a put with a signal, of which `completion` says when it is complete.
///
/// # Safety
/// As [`put_signal`]; `source` must be valid until the put is complete.
#[expect(
    clippy::too_many_arguments,
    reason = "the arguments of shmem_put_signal"
)]
#[inline(always)]
unsafe fn put_signal_until<T: Element, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: impl PeArgument,
    completion: Completion,
) {
    let pe = pe.of_world(call, ctx);
    let op = operation(call, sig_op);
    let nbytes = bytes_of::<T>(nelems);

    // Without elements, `dest` may be any address.
    let to = if nelems == 0 {
        Some(dest)
    } else {
        mapped(dest, nbytes, pe)
    };
    match (to, mapped_atomic(sig_addr, pe)) {
        (Some(to), Some(word)) => {
            if nelems > 0 {
                // SAFETY: `to` is mapped for `nelems` elements, and the caller promises that
                // `source` is valid for reads of as many.
                unsafe { copy::<VolatileLoads, T>(to, source, nelems) };
            }
            // SAFETY: the lookup returns only mapped, aligned words.
            unsafe { update_mapped(word, op, signal) }
        }
        _ => {
            let update = SignalUpdate {
                sig_addr: sig_addr.addr(),
                signal,
                op,
            };
            // SAFETY: the caller promises that `source` is valid for reads of `nelems` elements
            // until the put is complete.
            unsafe {
                Access::put_signal(
                    call,
                    ctx,
                    dest.addr(),
                    source.cast(),
                    nbytes,
                    update,
                    pe.number(),
                    completion,
                )
            }
        }
    }
}

/// `shmem_signal_add` (§9.8.3): adds `signal` to the word `sig_addr` on `pe`.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[inline(always)]
pub unsafe fn add<C: Context>(
    call: Call,
    ctx: C,
    sig_addr: *mut u64,
    signal: u64,
    pe: impl PeArgument,
) {
    // SAFETY: the caller promises the precondition of all routines.
    unsafe { update(call, ctx, sig_addr, signal, SHMEM_SIGNAL_ADD, pe) }
}

/// `shmem_signal_set` (§9.8.5): stores `signal` in the word `sig_addr` on `pe`.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[inline(always)]
pub unsafe fn set<C: Context>(
    call: Call,
    ctx: C,
    sig_addr: *mut u64,
    signal: u64,
    pe: impl PeArgument,
) {
    // SAFETY: the caller promises the precondition of all routines.
    unsafe { update(call, ctx, sig_addr, signal, SHMEM_SIGNAL_SET, pe) }
}

/// Sets the signal word at `sig_addr` on `pe` to `signal`, or adds `signal` to it, as `sig_op`
/// says.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[inline(always)]
unsafe fn update<C: Context>(
    call: Call,
    ctx: C,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    let op = operation(call, sig_op);
    match mapped_atomic(sig_addr, pe) {
        // SAFETY: the lookup returns only mapped, aligned words.
        Some(word) => unsafe { update_mapped(word, op, signal) },
        None => {
            let access = Access::of_signal(call, ctx, pe.number());
            access.update(sig_addr.addr(), AmoWidth::Eight, op, signal);
        }
    }
}

#[inline(always)]
fn operation(call: Call, sig_op: c_int) -> AmoOp {
    match sig_op {
        SHMEM_SIGNAL_SET => AmoOp::Set,
        SHMEM_SIGNAL_ADD => AmoOp::Add,
        _ => fail!(
            call,
            "argument sig_op is {sig_op}, neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD"
        ),
    }
}

/// `shmem_signal_fetch` (§9.8.4): returns a signal word of this PE.
///
/// # Safety
/// `sig_addr` is valid for reads.
pub unsafe fn fetch(call: Call, sig_addr: *const u64) -> u64 {
    let job = job::require(call);
    require_aligned(call, "sig_addr", sig_addr.addr(), 8);
    if job.settings.checks() {
        symmetric(job, call, "sig_addr", sig_addr.cast(), 8);
    }

    // SAFETY: the caller promises that `sig_addr` is valid for reads; it was checked to be aligned.
    let value = unsafe { u64::fetch(sig_addr) };
    polls::count_read();
    polled_calls::count(call, sig_addr.addr(), PolledObject::MemoryOf(job.me.0));
    observers::report(|| {
        // The library does not know what the program compares the value with.
        let seen = Action::Seen { has_surplus: false };
        Event::new(call, seen).with_bytes(sig_addr, size_of::<u64>())
    });
    value
}

/// `shmem_signal_wait_until` (§9.11.15): waits for a signal word of this PE, and returns the value
/// that satisfied the comparison.
///
/// # Safety
/// `sig_addr` is valid for reads.
pub unsafe fn wait_until(
    caller: impl Caller,
    sig_addr: *mut u64,
    cmp: c_int,
    cmp_value: u64,
) -> u64 {
    // SAFETY: the caller promises that `sig_addr` is valid for reads.
    unsafe { wait::wait_for(caller, sig_addr, cmp, cmp_value) }
}
