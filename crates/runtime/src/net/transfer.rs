//! Puts and gets of contiguous bytes for which `address` has no pointer: somebody observes them, or
//! a network reaches the bytes.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::memory::address;
use crate::net::contexts::Context;
use crate::net::remote::{Access, Completion, completion, get_bytes, put_bytes};
use crate::observers::{self, AccessKind, Argument, Effect};
use core::ffi::c_int;

/// `nbytes` bytes to `dest`. The arguments are those of the routines that put, in their order, so
/// that they stay in their registers.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub(crate) unsafe fn put<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    if observers::any() {
        address::cold_path();
        // SAFETY: the same contract.
        unsafe { observed_put::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    } else {
        // SAFETY: the same contract.
        unsafe { put_bytes::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    }
}

/// One element of `nbytes` bytes, as [`put`].
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes.
#[cold]
#[inline(never)]
pub(crate) unsafe fn p<C: Context>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    if observers::any() {
        address::cold_path();
        // SAFETY: the same contract.
        unsafe { observed_p(ctx, dest, source, nbytes, pe, call) }
    } else {
        // SAFETY: the same contract.
        unsafe { put_bytes::<C, false>(ctx, dest, source, nbytes, pe, call) }
    }
}

/// `nbytes` bytes from `source`, with its arguments as those of [`put`].
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub(crate) unsafe fn get<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    if observers::any() {
        address::cold_path();
        // SAFETY: the same contract.
        unsafe { observed_get::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    } else {
        // SAFETY: the same contract.
        unsafe { get_bytes::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    }
}

/// One element of `nbytes` bytes, as [`get`].
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes.
#[cold]
#[inline(never)]
pub(crate) unsafe fn g<C: Context>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    if observers::any() {
        address::cold_path();
        // SAFETY: the same contract.
        unsafe { observed_g(ctx, dest, source, nbytes, pe, call) }
    } else {
        // SAFETY: the same contract.
        unsafe { get_bytes::<C, false>(ctx, dest, source, nbytes, pe, call) }
    }
}

/// Works as [`put`] while somebody observes.
///
/// # Safety
/// As that one.
#[inline(never)]
unsafe fn observed_put<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Dest, pe);
    let kind = if AT_QUIET { AccessKind::PutNbi } else { AccessKind::Put };
    let event = access.event(kind, Effect::Writes, dest, nbytes).with_buffer(source, nbytes);
    // SAFETY: the same contract.
    observers::access(event, |_| unsafe {
        access.put_observed(dest, source, nbytes, completion::<AT_QUIET>())
    });
}

/// Works as [`p`] while somebody observes.
///
/// # Safety
/// As that one.
#[inline(never)]
unsafe fn observed_p<C: Context>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Dest, pe);
    let event = access.event(AccessKind::P, Effect::Writes, dest, nbytes);
    // SAFETY: the same contract.
    observers::access(event, |_| unsafe {
        access.put_observed(dest, source, nbytes, Completion::Now)
    });
}

/// Works as [`get`] while somebody observes.
///
/// # Safety
/// As that one.
#[inline(never)]
unsafe fn observed_get<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Source, pe);
    let kind = if AT_QUIET { AccessKind::GetNbi } else { AccessKind::Get };
    let event = access.event(kind, Effect::Reads, source, nbytes).with_buffer(dest, nbytes);
    // SAFETY: the same contract.
    observers::access(event, |_| unsafe {
        access.get_observed(dest, source, nbytes, completion::<AT_QUIET>())
    });
}

/// Works as [`g`] while somebody observes.
///
/// # Safety
/// As that one.
#[inline(never)]
unsafe fn observed_g<C: Context>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Source, pe);
    let event = access.event(AccessKind::G, Effect::Reads, source, nbytes);
    // SAFETY: the same contract.
    observers::access(event, |_| unsafe {
        access.get_observed(dest, source, nbytes, Completion::Now)
    });
}
