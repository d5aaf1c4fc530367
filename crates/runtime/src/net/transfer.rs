//! Puts and gets of contiguous bytes for which `address` has no pointer: somebody observes them, or
//! a network reaches the bytes.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::memory::address;
use crate::net::contexts::Context;
use crate::net::polling;
use crate::net::remote::{Access, Completion};
use crate::observers::{self, AccessKind, Argument, Effect};
use core::ffi::c_int;
use rushmem_transport::mem::{self, Loads};

/// Puts `nbytes` bytes to `dest`, which are one element of `shmem_p` if `IS_ELEMENT`. The arguments
/// are those of the routines that put, in their order, so that they stay in their registers.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub(crate) unsafe fn put<C: Context, const AT_QUIET: bool, const IS_ELEMENT: bool>(
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
        unsafe { observed_put::<C, AT_QUIET, IS_ELEMENT>(ctx, dest, source, nbytes, pe, call) }
    } else {
        // SAFETY: the same contract.
        unsafe { unobserved_put::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    }
}

/// Gets `nbytes` bytes from `source`, which are one element of `shmem_g` if `IS_ELEMENT`.
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub(crate) unsafe fn get<C: Context, const AT_QUIET: bool, const IS_ELEMENT: bool>(
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
        unsafe { observed_get::<C, AT_QUIET, IS_ELEMENT>(ctx, dest, source, nbytes, pe, call) }
    } else {
        // SAFETY: the same contract.
        unsafe { unobserved_get::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) }
    }
}

#[inline(always)]
fn completion<const AT_QUIET: bool>() -> Completion {
    if AT_QUIET { Completion::AtQuiet } else { Completion::Now }
}

/// Works as [`put`] while nobody observes. It is a function of its own so that the other branch
/// need not save the registers that this one uses.
///
/// # Safety
/// As [`put`].
#[inline(never)]
unsafe fn unobserved_put<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Dest, pe);
    // SAFETY: the same contract.
    unsafe { access.put(dest, source, nbytes, completion::<AT_QUIET>()) }
}

/// Works as [`get`] while nobody observes, as [`unobserved_put`].
///
/// # Safety
/// As [`get`].
#[inline(never)]
unsafe fn unobserved_get<C: Context, const AT_QUIET: bool>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Source, pe);
    // SAFETY: the same contract.
    unsafe { access.get(dest, source, nbytes, completion::<AT_QUIET>()) }
}

const fn put_kind(is_at_quiet: bool, is_element: bool) -> AccessKind {
    match (is_element, is_at_quiet) {
        (true, _) => AccessKind::P,
        (false, true) => AccessKind::PutNbi,
        (false, false) => AccessKind::Put,
    }
}

const fn get_kind(is_at_quiet: bool, is_element: bool) -> AccessKind {
    match (is_element, is_at_quiet) {
        (true, _) => AccessKind::G,
        (false, true) => AccessKind::GetNbi,
        (false, false) => AccessKind::Get,
    }
}

/// Works as [`put`] while somebody observes.
///
/// # Safety
/// As [`put`].
#[inline(never)]
unsafe fn observed_put<C: Context, const AT_QUIET: bool, const IS_ELEMENT: bool>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Dest, pe);
    let kind = put_kind(AT_QUIET, IS_ELEMENT);
    let event = access.event(kind, Effect::Writes, dest, nbytes);
    let event = if IS_ELEMENT { event } else { event.with_buffer(source, nbytes) };
    let mapped = address::observed(dest, nbytes, pe);
    observers::access(event, mapped.is_some(), |_| match mapped {
        // SAFETY: mapped, and valid by contract.
        Some(to) => unsafe { copy::<mem::VolatileLoads>(to, source, nbytes) },
        // SAFETY: the same contract.
        None => unsafe { unobserved_put::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) },
    });
}

/// Works as [`get`] while somebody observes.
///
/// # Safety
/// As [`get`].
#[inline(never)]
unsafe fn observed_get<C: Context, const AT_QUIET: bool, const IS_ELEMENT: bool>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let access = Access::of_bytes(call, ctx, Argument::Source, pe);
    let kind = get_kind(AT_QUIET, IS_ELEMENT);
    let event = access.event(kind, Effect::Reads, source, nbytes);
    let event = if IS_ELEMENT { event } else { event.with_buffer(dest, nbytes) };
    let mapped = address::observed(source, nbytes, pe);
    observers::access(event, mapped.is_some(), |_| match mapped {
        // SAFETY: mapped, and valid by contract.
        Some(from) => unsafe { copy_got(dest, from, source, nbytes, pe) },
        // SAFETY: the same contract.
        None => unsafe { unobserved_get::<C, AT_QUIET>(ctx, dest, source, nbytes, pe, call) },
    });
}

/// Copies the bytes of a get from the mapped ones of `source`.
///
/// # Safety
/// As [`mem::copy_bytes`].
#[inline(always)]
unsafe fn copy_got(dest: *mut u8, from: *const u8, source: usize, nbytes: usize, pe: c_int) {
    // SAFETY: the same contract.
    unsafe { copy::<mem::AtomicLoads>(dest, from, nbytes) };
    // SAFETY: just written.
    unsafe { polling::got(source, pe, dest, nbytes) };
}

/// Copies bytes, which are most often one word.
///
/// # Safety
/// As [`mem::copy_bytes`].
#[inline(always)]
unsafe fn copy<L: Loads>(dest: *mut u8, source: *const u8, nbytes: usize) {
    match nbytes {
        // SAFETY: the same contract; `copy_elements` checks whether the words are aligned.
        2 => unsafe { mem::copy_elements::<L, u16>(dest.cast(), source.cast(), 1) },
        // SAFETY: the same contract; `copy_elements` checks whether the words are aligned.
        4 => unsafe { mem::copy_elements::<L, u32>(dest.cast(), source.cast(), 1) },
        // SAFETY: the same contract.
        _ => unsafe { mem::copy_bytes::<L>(dest, source, nbytes) },
    }
}
