//! Remote memory access (OpenSHMEM 1.6, §9.6).
//!
//! Find the PE's copy of the address, copy. The non-blocking forms are the blocking ones: on-node
//! nothing is faster than having copied.

use crate::address::translate;
use crate::call::{Call, fail};
use crate::ctx::Context;
use core::ffi::c_int;
use rushmem_transport::mem;

/// `shmem_put`: copy `nelems` elements from the local `source` to `dest` on `pe` (§9.6.1.1).
///
/// # Safety
/// `source` is valid for reads of `nelems` elements; nobody writes them during the call.
#[inline(always)]
pub unsafe fn put<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(call, pe);
    if nelems == 0 {
        return;
    }
    let to = translate(call, "dest", dest, bytes_of::<T>(nelems), pe);
    // SAFETY: `to` was checked to be mapped for `nelems` elements, `source` is valid by contract.
    unsafe { copy(to, source, nelems) }
}

/// `shmem_get`: copy `nelems` elements from `source` on `pe` to the local `dest` (§9.6.1.5).
///
/// # Safety
/// `dest` is valid for writes of `nelems` elements; nobody else accesses them during the call.
#[inline(always)]
pub unsafe fn get<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(call, pe);
    if nelems == 0 {
        return;
    }
    let from = translate(call, "source", source, bytes_of::<T>(nelems), pe);
    // SAFETY: `from` was checked to be mapped for `nelems` elements, `dest` is valid by contract.
    unsafe { copy(dest, from, nelems) }
}

/// `shmem_p`: store one element to `dest` on `pe` (§9.6.1.2).
///
/// # Safety
/// None beyond the standard's: what `dest` may be is checked.
#[inline(always)]
pub unsafe fn p<T: Copy, C: Context>(call: Call, ctx: C, dest: *mut T, value: T, pe: c_int) {
    let to = translate(call, "dest", dest, size_of::<T>(), ctx.world_pe(call, pe));
    // SAFETY: `to` was checked to be mapped for an element.
    unsafe { mem::store(to, value) }
}

/// `shmem_g`: load one element from `source` on `pe` (§9.6.1.6).
///
/// # Safety
/// None beyond the standard's: what `source` may be is checked.
#[inline(always)]
pub unsafe fn g<T: Copy, C: Context>(call: Call, ctx: C, source: *const T, pe: c_int) -> T {
    let from = translate(call, "source", source, size_of::<T>(), ctx.world_pe(call, pe));
    // SAFETY: `from` was checked to be mapped for an element.
    unsafe { mem::load(from) }
}

/// `shmem_ibput`: put `nblocks` blocks of `bsize` elements whose starts are `dst` and `sst` elements
/// apart (§9.6.1.4); with `bsize` 1, `shmem_iput` (§9.6.1.3).
///
/// # Safety
/// `source` is valid for reads of every block.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_ibput")]
#[inline(always)]
pub unsafe fn ibput<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(call, pe);
    if nblocks == 0 || bsize == 0 {
        return;
    }
    let to = translate(call, "dest", dest, span::<T>(call, dst, sst, bsize, nblocks).0, pe);
    // SAFETY: the whole span of `to` was checked to be mapped, `source` is valid by contract.
    unsafe { mem::copy_strided(to, source, dst, sst, bsize, nblocks) }
}

/// `shmem_ibget`: get `nblocks` blocks of `bsize` elements whose starts are `dst` and `sst` elements
/// apart (§9.6.1.8); with `bsize` 1, `shmem_iget` (§9.6.1.7).
///
/// # Safety
/// `dest` is valid for writes of every block.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_ibget")]
#[inline(always)]
pub unsafe fn ibget<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(call, pe);
    if nblocks == 0 || bsize == 0 {
        return;
    }
    let from = translate(call, "source", source, span::<T>(call, dst, sst, bsize, nblocks).1, pe);
    // SAFETY: the whole span of `from` was checked to be mapped, `dest` is valid by contract.
    unsafe { mem::copy_strided(dest, from, dst, sst, bsize, nblocks) }
}

/// `shmem_iput`: put `nelems` elements that are `dst` and `sst` elements apart (§9.6.1.3).
///
/// # Safety
/// As [`ibput`] with blocks of one element.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_iput")]
#[inline(always)]
pub unsafe fn iput<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: the same contract.
    unsafe { ibput(call, ctx, dest, source, dst, sst, 1, nelems, pe) }
}

/// `shmem_iget`: get `nelems` elements that are `dst` and `sst` elements apart (§9.6.1.7).
///
/// # Safety
/// As [`ibget`] with blocks of one element.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_iget")]
#[inline(always)]
pub unsafe fn iget<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: the same contract.
    unsafe { ibget(call, ctx, dest, source, dst, sst, 1, nelems, pe) }
}

/// `shmem_put_nbi`: a put that is complete at the next quiet (§9.6.2.1).
///
/// # Safety
/// As [`put`], but until the next quiet.
#[inline(always)]
pub unsafe fn put_nbi<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: the same contract.
    unsafe { put(call, ctx, dest, source, nelems, pe) }
}

/// `shmem_get_nbi`: a get that is complete at the next quiet (§9.6.2.2).
///
/// # Safety
/// As [`get`], but until the next quiet.
#[inline(always)]
pub unsafe fn get_nbi<T: Copy, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: the same contract.
    unsafe { get(call, ctx, dest, source, nelems, pe) }
}

/// Bytes of `nelems` elements; what overflows fits no segment.
#[inline(always)]
pub(crate) fn bytes_of<T>(nelems: usize) -> usize {
    nelems.saturating_mul(size_of::<T>())
}

/// Copy elements, or bytes whose type is not known.
///
/// # Safety
/// Both are valid for `nelems` elements.
#[inline(always)]
pub(crate) unsafe fn copy<T: Copy>(dest: *mut T, source: *const T, nelems: usize) {
    if size_of::<T>() == 1 {
        // SAFETY: the same contract; an element is a byte.
        unsafe { mem::copy_bytes(dest.cast(), source.cast(), nelems) }
    } else {
        // SAFETY: the same contract.
        unsafe { mem::copy_elements(dest, source, nelems) }
    }
}

/// Bytes from the first to the end of the last block, at the destination and at the source.
fn span<T>(call: Call, dst: isize, sst: isize, bsize: usize, nblocks: usize) -> (usize, usize) {
    let one = |name: &str, stride: isize| {
        if stride < 1 || (stride as usize) < bsize {
            fail!(call, "argument {name} is {stride}, but a stride is at least {bsize} here");
        }
        (stride as usize)
            .saturating_mul(nblocks - 1)
            .saturating_add(bsize)
            .saturating_mul(size_of::<T>())
    };
    (one("dst", dst), one("sst", sst))
}
