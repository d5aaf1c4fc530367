//! Plain data: single words and runs.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Up to this many bytes a run of words is copied word by word, each untorn; a longer one by
/// `memmove`, whose accesses are at least as wide as a word where it is aligned.
const WORDWISE: usize = 64;

/// A type of which symmetric arrays are made: plain bytes to whoever copies it.
///
/// # Safety
/// A type of 1, 2, 4 or 8 bytes has no padding: all of its bytes are initialized in every value.
pub unsafe trait Element: Copy {}

macro_rules! element {
    ($($t:ty)*) => {$(
        // SAFETY: a number has no padding.
        unsafe impl Element for $t {}
    )*};
}

element! { i8 u8 i16 u16 i32 u32 i64 u64 isize usize i128 u128 f32 f64 }

// SAFETY: an array has no padding besides that of its elements, and where it is a word in size, so are they.
unsafe impl<T: Element, const N: usize> Element for [T; N] {}

/// How a copy reads the words of its source.
pub trait Loads {
    /// Whether by atomic loads.
    const ATOMIC: bool;
}

/// By atomic loads: the source is symmetric memory, which threads of this process may write meanwhile. It is valid for writes,
/// too, which the pointer of an atomic has to be.
pub enum Atomic {}

/// By volatile reads: no thread of this process writes the source meanwhile. It may be a `&[T]`, in which there can be no atomic.
pub enum Volatile {}

impl Loads for Atomic {
    const ATOMIC: bool = true;
}
impl Loads for Volatile {
    const ATOMIC: bool = false;
}

/// Reads one element of symmetric memory; untorn when its size is 1, 2, 4 or 8 and it is aligned to that.
///
/// # Safety
/// `source` is valid for reads and writes of a `T`, and what is there is one, whoever wrote it.
#[inline(always)]
pub unsafe fn load<T: Element>(source: *const T) -> T {
    // SAFETY: the same contract.
    unsafe { load_by::<Atomic, T>(source) }
}

/// As [`load`].
///
/// # Safety
/// `source` is valid for reads of a `T`, and what is there is one, whoever wrote it; what else it is, `L` says.
#[inline(always)]
unsafe fn load_by<L: Loads, T: Element>(source: *const T) -> T {
    macro_rules! word {
        ($word:ty, $atomic:ty) => {{
            let word: $word = if L::ATOMIC {
                // SAFETY: valid for reads and writes, as `L` says, and aligned by the test below.
                unsafe { <$atomic>::from_ptr(source.cast_mut().cast()) }.load(Relaxed)
            } else {
                // SAFETY: valid for a read by contract, aligned by the test below.
                unsafe { source.cast::<$word>().read_volatile() }
            };
            // SAFETY: `T` has the word's size, and the bits there are a `T` by contract.
            unsafe { std::mem::transmute_copy(&word) }
        }};
    }
    match size_of::<T>() {
        1 => word!(u8, AtomicU8),
        2 if source.addr().is_multiple_of(2) => word!(u16, AtomicU16),
        4 if source.addr().is_multiple_of(4) => word!(u32, AtomicU32),
        8 if source.addr().is_multiple_of(8) => word!(u64, AtomicU64),
        // SAFETY: valid for a read by contract; no alignment is needed.
        _ => unsafe { source.read_unaligned() },
    }
}

/// Writes one element; untorn when its size is 1, 2, 4 or 8 and it is aligned to that.
///
/// # Safety
/// `dest` is valid for writes of a `T`.
#[inline(always)]
pub unsafe fn store<T: Element>(dest: *mut T, value: T) {
    macro_rules! word {
        ($atomic:ty) => {{
            // SAFETY: `T` has the word's size and no padding, so its bytes are an integer.
            let word = unsafe { std::mem::transmute_copy(&value) };
            // SAFETY: valid for a write by contract, aligned by the test below.
            unsafe { <$atomic>::from_ptr(dest.cast()) }.store(word, Relaxed);
        }};
    }
    match size_of::<T>() {
        1 => word!(AtomicU8),
        2 if dest.addr().is_multiple_of(2) => word!(AtomicU16),
        4 if dest.addr().is_multiple_of(4) => word!(AtomicU32),
        8 if dest.addr().is_multiple_of(8) => word!(AtomicU64),
        // SAFETY: valid for a write by contract; no alignment is needed.
        _ => unsafe { dest.write_unaligned(value) },
    }
}

/// Copies `nelems` elements; each is untorn when its size is 1, 2, 4 or 8 and both sides are aligned.
///
/// # Safety
/// `source` is valid for reads, as `L` says, `dest` for writes of `nelems` elements; both may be anything when
/// `nelems` is 0.
#[inline(always)]
pub unsafe fn copy_elements<L: Loads, T: Element>(dest: *mut T, source: *const T, nelems: usize) {
    if nelems == 1 {
        // SAFETY: both are valid for one element by contract.
        let value = unsafe { load_by::<L, T>(source) };
        // SAFETY: as above.
        unsafe { store(dest, value) }
    } else {
        // SAFETY: the same contract.
        unsafe { copy_run::<L, T>(dest, source, nelems) }
    }
}

/// The part of [`copy_elements`] that is worth a call.
///
/// # Safety
/// As [`copy_elements`].
#[inline(never)]
unsafe fn copy_run<L: Loads, T: Element>(dest: *mut T, source: *const T, nelems: usize) {
    if nelems * size_of::<T>() <= WORDWISE {
        for i in 0..nelems {
            // SAFETY: `i` is below `nelems`.
            let from = unsafe { source.add(i) };
            // SAFETY: valid for reads by contract.
            let value = unsafe { load_by::<L, T>(from) };
            // SAFETY: `i` is below `nelems`.
            let to = unsafe { dest.add(i) };
            // SAFETY: valid for writes by contract.
            unsafe { store(to, value) }
        }
    } else {
        // SAFETY: valid by contract; as bytes no alignment is needed, and `copy` allows overlap.
        unsafe { std::ptr::copy(source.cast::<u8>(), dest.cast::<u8>(), nelems * size_of::<T>()) }
    }
}

/// Copies `nbytes` bytes of unknown type. Runs whose ends are aligned to 8 are copied in words of 8, and
/// runs of 2 or 4 aligned bytes as one word, so that a flag sent by `shmem_putmem` is untorn.
///
/// # Safety
/// `source` is valid for reads, as `L` says, `dest` for writes of `nbytes` bytes; both may be anything when
/// `nbytes` is 0.
#[inline(always)]
pub unsafe fn copy_bytes<L: Loads>(dest: *mut u8, source: *const u8, nbytes: usize) {
    if nbytes == 8 {
        // SAFETY: both are valid for 8 bytes by contract; a load and a store need no alignment.
        let value = unsafe { load_by::<L, u64>(source.cast()) };
        // SAFETY: as above.
        unsafe { store::<u64>(dest.cast(), value) }
    } else {
        // SAFETY: the same contract.
        unsafe { copy_other_bytes::<L>(dest, source, nbytes) }
    }
}

/// The part of [`copy_bytes`] that is worth a call.
///
/// # Safety
/// As [`copy_bytes`].
#[inline(never)]
unsafe fn copy_other_bytes<L: Loads>(dest: *mut u8, source: *const u8, nbytes: usize) {
    let alignment = dest.addr() | source.addr() | nbytes;
    if nbytes <= WORDWISE && alignment.is_multiple_of(8) {
        // SAFETY: as many words as fill `nbytes`, valid by contract.
        unsafe { copy_run::<L, u64>(dest.cast(), source.cast(), nbytes / 8) }
    } else if nbytes <= WORDWISE && alignment.is_multiple_of(4) {
        // SAFETY: as above.
        unsafe { copy_run::<L, u32>(dest.cast(), source.cast(), nbytes / 4) }
    } else if nbytes <= WORDWISE && alignment.is_multiple_of(2) {
        // SAFETY: as above.
        unsafe { copy_run::<L, u16>(dest.cast(), source.cast(), nbytes / 2) }
    } else {
        // SAFETY: valid by contract; `copy` allows overlap and, for bytes, any alignment.
        unsafe { std::ptr::copy(source, dest, nbytes) }
    }
}

/// Copies `nblocks` blocks of `bsize` elements that start `dst` and `sst` elements apart
/// (OpenSHMEM 1.6, `shmem_ibput`; `bsize` 1 is `shmem_iput`).
///
/// # Safety
/// Every block is valid for reads at `source`, as `L` says, and for writes at `dest`.
pub unsafe fn copy_strided<L: Loads, T: Element>(
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
) {
    for block in 0..nblocks as isize {
        let to = dest.wrapping_offset(block * dst);
        let from = source.wrapping_offset(block * sst);
        // SAFETY: the block lies within what the caller vouches for.
        unsafe { copy_elements::<L, T>(to, from, bsize) }
    }
}

#[cfg(test)]
mod tests;
