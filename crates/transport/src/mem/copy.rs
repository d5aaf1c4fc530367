//! Copies runs of elements and of bytes.
//!
//! # Whole words
//!
//! No aligned word of 1, 2, 4 or 8 bytes is torn by a copy of a run, whatever the run's start and
//! length are. If source and destination are aligned differently, this holds for one of them, as
//! [`Loads`] says. `memmove` stores with vector instructions that are placed relative to the start
//! and to the end of the run, so both must lie between words. The bytes before the first and after
//! the last aligned 8 bytes are copied in smaller words.
#![allow(unsafe_code)]

use super::element::{Element, Loads, WORDWISE, is_by_words, load_by, store};
use super::lanes::{Baseline, Lanes};
use super::opaque::{ANY_ALIGNMENT, Opaque, foreign_copy};
use std::sync::atomic::{AtomicU64, Ordering::Release};

/// The longest word, and its alignment.
const WORD: usize = size_of::<u64>();

/// Copies a word by one load and one store, unless a side is not aligned and there is no
/// [`ANY_ALIGNMENT`].
///
/// # Safety
/// `source` is valid for reads, as `L` says, `dest` for writes of a word.
#[inline(always)]
unsafe fn copy_word<L: Loads, W: Element + Opaque>(dest: *mut u8, source: *const u8) {
    if ANY_ALIGNMENT {
        // SAFETY: `source` is valid for reads of a word by contract, and need not be aligned.
        let word = unsafe { W::load_opaque(source.cast()) };
        // SAFETY: `dest` is valid for writes of a word by contract, and need not be aligned.
        unsafe { W::store_opaque(dest.cast(), word) }
    } else {
        // SAFETY: `source` is valid for reads of a word, as `L` says, by contract.
        let word = unsafe { load_by::<L, W>(source.cast()) };
        // SAFETY: `dest` is valid for writes of a word by contract.
        unsafe { store(dest.cast(), word) }
    }
}

/// Copies an element by words, with no other path: a call on it, though not taken, would make the
/// callers save registers.
///
/// # Safety
/// As [`copy_elements`] with one element; [`is_by_words`] holds for both addresses.
#[inline(always)]
unsafe fn copy_by_words<L: Loads, T: Element>(dest: *mut T, source: *const T) {
    let dest = dest.cast::<u8>();
    let source = source.cast::<u8>();
    match size_of::<T>() {
        // SAFETY: both sides are valid for one element, which has this size, by contract.
        1 => unsafe { copy_word::<L, u8>(dest, source) },
        // SAFETY: both sides are valid for one element, which has this size, by contract.
        2 => unsafe { copy_word::<L, u16>(dest, source) },
        // SAFETY: both sides are valid for one element, which has this size, by contract.
        4 => unsafe { copy_word::<L, u32>(dest, source) },
        // By vectors as `memmove`, which tear no aligned word either.
        16 if size_of::<Baseline>() == 16 => {
            // SAFETY: `source` is valid for reads of 16 bytes by contract, and every processor has
            // these vectors.
            let words = unsafe { Baseline::load(source) };
            // SAFETY: `dest` is valid for writes of 16 bytes by contract, and every processor has
            // these vectors.
            unsafe { words.store(dest) }
        }
        nbytes => {
            for offset in (0..nbytes).step_by(WORD) {
                let to = dest.wrapping_add(offset);
                let from = source.wrapping_add(offset);
                // SAFETY: `to` and `from` point to a word of the element, for which both sides are
                // valid by contract.
                unsafe { copy_word::<L, u64>(to, from) }
            }
        }
    }
}

/// Copies `nelems` elements. No aligned word is torn, and no element of 1, 2, 4 or 8 bytes if both
/// sides are aligned to its size.
///
/// # Safety
/// `source` is valid for reads, as `L` says, `dest` for writes of `nelems` elements; both may be
/// anything when `nelems` is 0.
#[inline(always)]
pub unsafe fn copy_elements<L: Loads, T: Element>(dest: *mut T, source: *const T, nelems: usize) {
    if nelems == 1 && is_by_words::<T>(dest.addr() | source.addr()) {
        // SAFETY: both are valid for one element by contract, and accessed by words.
        unsafe { copy_by_words::<L, T>(dest, source) }
    } else if T::PADDED || size_of::<T>().is_multiple_of(WORD) {
        // SAFETY: both sides are valid for `nelems` elements, by contract.
        unsafe { copy_run::<L, T>(dest, source, nelems) }
    } else {
        // SAFETY: both sides are valid for the bytes of `nelems` elements by contract. All of these
        // bytes are initialized, since `T` has no padding.
        unsafe { copy_other_bytes::<L>(dest.cast(), source.cast(), nelems * size_of::<T>()) }
    }
}

/// Copies elements that end where a word ends: the part of [`copy_elements`] that is not inlined.
///
/// # Safety
/// As [`copy_elements`].
#[inline(never)]
unsafe fn copy_run<L: Loads, T: Element>(dest: *mut T, source: *const T, nelems: usize) {
    let is_short = nelems * size_of::<T>() <= WORDWISE;
    if is_short && is_by_words::<T>(dest.addr() | source.addr()) {
        for i in 0..nelems {
            // SAFETY: `i` is below `nelems`.
            let from = unsafe { source.add(i) };
            // SAFETY: `i` is below `nelems`.
            let to = unsafe { dest.add(i) };
            // SAFETY: both sides are valid for this element by contract. Its addresses are as far
            // aligned as the first ones, since they differ by multiples of its size.
            unsafe { copy_by_words::<L, T>(to, from) }
        }
    } else {
        // SAFETY: both sides are valid for the bytes of `nelems` elements, by contract.
        unsafe { foreign_copy(dest.cast(), source.cast(), nelems * size_of::<T>()) }
    }
}

/// Copies `nbytes` bytes of unknown type. No aligned word is torn: a flag that `shmem_putmem` sends
/// may be one. Source and destination may be the same; where they overlap otherwise, the
/// destination's bytes are unspecified.
///
/// # Safety
/// `source` is valid for reads, as `L` says, `dest` for writes of `nbytes` bytes; both may be
/// anything when `nbytes` is 0.
#[inline(always)]
pub unsafe fn copy_bytes<L: Loads>(dest: *mut u8, source: *const u8, nbytes: usize) {
    if cfg!(race_detector) && nbytes == WORD && is_by_words::<u64>(dest.addr()) {
        // SAFETY: both sides are valid for 8 bytes, by contract.
        unsafe { copy_released::<L>(dest, source) }
    } else if nbytes == WORD && is_by_words::<u64>(dest.addr() | source.addr()) {
        // SAFETY: both are valid for 8 bytes by contract, and accessed by words.
        unsafe { copy_by_words::<L, u64>(dest.cast(), source.cast()) }
    } else {
        // SAFETY: both sides are valid for `nbytes` bytes, by contract.
        unsafe { copy_other_bytes::<L>(dest, source, nbytes) }
    }
}

/// Copies a word to an aligned address, under a race detector. It may be a flag that follows a
/// release fence; the detector knows no fences, so the store has release order.
///
/// # Safety
/// As [`copy_bytes`] with 8 bytes.
unsafe fn copy_released<L: Loads>(dest: *mut u8, source: *const u8) {
    let mut word = 0u64;
    let copied = (&raw mut word).cast();
    if is_by_words::<u64>(source.addr()) {
        // SAFETY: `source` is valid for reads of a word, as `L` says, by contract. `copied` points
        // to a local word.
        unsafe { copy_word::<L, u64>(copied, source) }
    } else {
        // SAFETY: `source` is valid for reads of a word by contract. `copied` points to a local
        // word.
        unsafe { foreign_copy(copied, source, WORD) }
    }

    // SAFETY: `dest` points to an aligned word, valid for writes by contract, which peers access
    // atomically.
    unsafe { AtomicU64::from_ptr(dest.cast()) }.store(word, Release);
}

/// Copies any number of bytes: the part of [`copy_bytes`] that is not inlined.
///
/// # Safety
/// As [`copy_bytes`].
#[inline(never)]
unsafe fn copy_other_bytes<L: Loads>(dest: *mut u8, source: *const u8, nbytes: usize) {
    if (dest.addr() | source.addr() | nbytes).is_multiple_of(WORD) {
        // SAFETY: as many words as fill `nbytes`, valid by contract.
        unsafe { copy_run::<L, u64>(dest.cast(), source.cast(), nbytes / WORD) }
    } else {
        // SAFETY: both sides are valid for `nbytes` bytes, by contract.
        unsafe { copy_cut::<L>(dest, source, nbytes) }
    }
}

/// Returns how many bytes of a run at `addr` are before its first and after its last aligned 8
/// bytes. The bits of the two numbers are the sizes of the words in which these bytes are copied:
/// at the start of the run the smallest word is first, at its end the largest one.
#[inline(always)]
fn cut(addr: usize, nbytes: usize) -> (usize, usize) {
    let mut before = addr.wrapping_neg() % WORD;
    // If the run ends before the next aligned 8 bytes, drops the largest words until the rest fits.
    for smaller in [3, 1, 0] {
        if before > nbytes {
            before &= smaller;
        }
    }
    (before, (nbytes - before) % WORD)
}

/// Copies a run that begins or ends within aligned 8 bytes. The part of whole 8 bytes is copied
/// last, so that a call of a function for it saves no registers.
///
/// # Safety
/// As [`copy_bytes`].
#[inline(never)]
unsafe fn copy_cut<L: Loads>(dest: *mut u8, source: *const u8, nbytes: usize) {
    // A program may synchronize by whole words. A race detector must see accesses to other bytes,
    // which it does for the foreign copy.
    if cfg!(race_detector) {
        // SAFETY: both sides are valid for `nbytes` bytes, by contract.
        return unsafe { foreign_copy(dest, source, nbytes) };
    }

    // Where the two sides are aligned differently, the words of one of them are copied whole.
    let aligned = if L::ATOMIC {
        source.addr()
    } else {
        dest.addr()
    };
    let (before, after) = cut(aligned, nbytes);

    let mut offset = 0;
    // Copies a word of this type at `offset` if the bits of `$bytes` include its size.
    macro_rules! word_of {
        ($bytes:ident, $word:ty) => {
            if $bytes & size_of::<$word>() != 0 {
                let to = dest.wrapping_add(offset);
                let from = source.wrapping_add(offset);
                // SAFETY: `to` and `from` point to a word within the run, for which both sides are
                // valid by contract.
                unsafe { copy_word::<L, $word>(to, from) };
                offset += size_of::<$word>();
            }
        };
    }

    word_of!(before, u8);
    word_of!(before, u16);
    word_of!(before, u32);
    debug_assert_eq!(offset, before, "the start of the long part");

    offset = nbytes - after;
    word_of!(after, u32);
    word_of!(after, u16);
    word_of!(after, u8);
    debug_assert_eq!(offset, nbytes, "the end of the run");

    let to = dest.wrapping_add(before);
    let from = source.wrapping_add(before);
    let nbytes = nbytes - before - after;
    if nbytes > WORDWISE {
        // SAFETY: the `nbytes` bytes are within the run, for which both sides are valid by
        // contract.
        unsafe { foreign_copy(to, from, nbytes) }
    } else {
        for offset in (0..nbytes).step_by(WORD) {
            // SAFETY: `offset` is that of a word in these bytes, for which both sides are valid by
            // contract.
            unsafe { copy_word::<L, u64>(to.wrapping_add(offset), from.wrapping_add(offset)) }
        }
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
    let mut to = dest;
    let mut from = source;

    // Two words at a time take one block of instructions: see `copy_pair_opaque`.
    let by_words = bsize == 1 && is_by_words::<T>(dest.addr() | source.addr());
    let n_pairs = if by_words { nblocks / 2 } else { 0 };
    for _ in 0..n_pairs {
        // SAFETY: `to` and `from` are the starts of the next two blocks, which are valid by
        // contract.
        unsafe { copy_pair::<L, T>(to, from, dst, sst) }
        to = to.wrapping_offset(dst.wrapping_mul(2));
        from = from.wrapping_offset(sst.wrapping_mul(2));
    }

    // What is left: one word at most, or all blocks.
    for _ in 2 * n_pairs..nblocks {
        // SAFETY: `to` and `from` are the starts of the next block, which is valid by contract.
        unsafe { copy_elements::<L, T>(to, from, bsize) }
        to = to.wrapping_offset(dst);
        from = from.wrapping_offset(sst);
    }
}

/// Copies two elements by words.
///
/// # Safety
/// As [`copy_strided`] with two blocks of one element; [`is_by_words`] holds for both addresses.
#[inline(always)]
unsafe fn copy_pair<L: Loads, T: Element>(dest: *mut T, source: *const T, dst: isize, sst: isize) {
    let bytes = |elements: isize| elements * size_of::<T>() as isize;
    macro_rules! words {
        ($word:ty) => {{
            let dest = dest.cast::<$word>();
            let source = source.cast::<$word>();
            // SAFETY: both sides are valid for two elements, which have this size, by contract.
            unsafe { <$word>::copy_pair_opaque(dest, source, bytes(dst), bytes(sst)) }
        }};
    }
    match size_of::<T>() {
        1 if ANY_ALIGNMENT => words!(u8),
        2 if ANY_ALIGNMENT => words!(u16),
        4 if ANY_ALIGNMENT => words!(u32),
        8 if ANY_ALIGNMENT => words!(u64),
        _ => {
            // SAFETY: `dest` and `source` point to the first block on each side, valid and accessed
            // by words, by contract.
            unsafe { copy_by_words::<L, T>(dest, source) };

            let to = dest.wrapping_offset(dst);
            let from = source.wrapping_offset(sst);
            // SAFETY: `to` and `from` point to the second block on each side, valid by contract.
            // They are as far aligned as the first ones, from which they differ by multiples of the
            // size of an element.
            unsafe { copy_by_words::<L, T>(to, from) }
        }
    }
}

#[cfg(test)]
mod tests;
