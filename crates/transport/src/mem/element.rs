//! Loads and stores one element: a word, or several words that are accessed one by one.
#![allow(unsafe_code)]

use super::opaque::{ANY_ALIGNMENT, Opaque, foreign_copy};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Up to this many bytes a run of words is copied word by word, each untorn; a longer one by
/// `memmove`, whose accesses are at least as wide as a word where it is aligned.
pub(super) const WORDWISE: usize = 64;

/// A type of which symmetric arrays are made: plain bytes to the code that copies it.
///
/// # Safety
/// The type has no padding, that is, all of its bytes are initialized in every value, unless
/// `PADDED` is true.
pub unsafe trait Element: Copy {
    /// True if some bytes may be padding. Such an element is copied without reading a word of it;
    /// its size must not be 1, 2, 4 or 8.
    const PADDED: bool = false;
}

macro_rules! element {
    ($($t:ty)*) => {$(
        // SAFETY: a number has no padding.
        unsafe impl Element for $t {}
    )*};
}

element! { i8 u8 i16 u16 i32 u32 i64 u64 isize usize i128 u128 f32 f64 }

// SAFETY: an array has no padding besides that of its elements.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const PADDED: bool = T::PADDED;
}

/// The way in which a copy reads the words of its source.
pub trait Loads {
    /// True if the copy may read them by atomic loads.
    const ATOMIC: bool;
}

/// By atomic or opaque loads: the source is symmetric memory, which threads of this process may
/// write meanwhile, or a constant of the program. Symmetric memory is valid for writes, too, as the
/// pointer of an atomic must be; of a constant, relaxed loads of a word are allowed
/// (`std::sync::atomic`, "Atomic accesses to read-only memory"). If source and destination are
/// aligned differently, the words of the source are not torn.
pub enum AtomicLoads {}

/// By opaque loads: the source may be a `&[T]`, in which there can be no atomic, or symmetric
/// memory. If both sides are aligned differently, the words of the destination are not torn.
pub enum VolatileLoads {}

impl Loads for AtomicLoads {
    const ATOMIC: bool = true;
}
impl Loads for VolatileLoads {
    const ATOMIC: bool = false;
}

/// Reads one element of symmetric memory; untorn when its size is 1, 2, 4 or 8 and it is aligned to
/// that.
///
/// # Safety
/// `source` is valid for reads and writes of a `T`; a peer may have written it.
#[inline(always)]
pub unsafe fn load<T: Element>(source: *const T) -> T {
    // SAFETY: `source` is valid for reads and writes by contract, as atomic loads require.
    unsafe { load_by::<AtomicLoads, T>(source) }
}

/// Reads one element by the loads of `L`; untorn as by [`load`].
///
/// # Safety
/// `source` is valid for reads of a `T`, as `L` says; a peer may have written it.
#[inline(always)]
pub(super) unsafe fn load_by<L: Loads, T: Element>(source: *const T) -> T {
    macro_rules! word {
        ($word:ty, $atomic:ty) => {{
            let word: $word = if L::ATOMIC {
                // SAFETY: `source` is valid for reads and writes, as `L` says, and aligned by the
                // test below.
                unsafe { <$atomic>::from_ptr(source.cast_mut().cast()) }.load(Relaxed)
            } else {
                // SAFETY: `source` is valid for a read by contract, and aligned by the test below.
                unsafe { <$word>::load_opaque(source.cast()) }
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
        nbytes => {
            let mut value = MaybeUninit::<T>::uninit();
            let to = value.as_mut_ptr();
            if is_of_words::<T>(source.addr()) {
                for i in 0..nbytes / size_of::<u64>() {
                    let from = source.cast::<u64>().wrapping_add(i);
                    let word = if L::ATOMIC {
                        // SAFETY: `from` points to a word of the element, valid for reads and
                        // writes, as `L` says, and aligned by the test above.
                        unsafe { AtomicU64::from_ptr(from.cast_mut()) }.load(Relaxed)
                    } else {
                        // SAFETY: `from` points to a word of the element, valid for a read by
                        // contract, and aligned by the test above.
                        unsafe { u64::load_opaque(from) }
                    };
                    // SAFETY: `to` has the size of the element, so it has the same word.
                    unsafe { to.cast::<u64>().wrapping_add(i).write_unaligned(word) };
                }
            } else {
                // SAFETY: `source` is valid for reads of an element by contract, and `to` is an
                // element of this function.
                unsafe { foreign_copy(to.cast(), source.cast(), nbytes) };
            }
            // SAFETY: all bytes of `value` were written, and are a `T` by contract.
            unsafe { value.assume_init() }
        }
    }
}

/// Returns true if elements of this type are accessed by words, each of them untorn. `addrs` is the
/// bitwise or of their addresses, which is aligned only if all of them are.
#[inline(always)]
pub(super) fn is_by_words<T: Element>(addrs: usize) -> bool {
    match size_of::<T>() {
        nbytes @ (1 | 2 | 4 | 8) => ANY_ALIGNMENT || addrs.is_multiple_of(nbytes),
        _ => is_of_words::<T>(addrs),
    }
}

/// Returns true if an element at this address whose size is not that of a word is accessed word by
/// word.
#[inline(always)]
fn is_of_words<T: Element>(addr: usize) -> bool {
    !T::PADDED
        && size_of::<T>() <= WORDWISE
        && (addr | size_of::<T>()).is_multiple_of(size_of::<u64>())
}

/// Writes one element; untorn when its size is 1, 2, 4 or 8 and it is aligned to that.
///
/// # Safety
/// `dest` is valid for writes of a `T`.
#[inline(always)]
pub unsafe fn store<T: Element>(dest: *mut T, value: T) {
    const {
        assert!(
            !T::PADDED || !matches!(size_of::<T>(), 1 | 2 | 4 | 8),
            "not an integer"
        )
    };
    macro_rules! word {
        ($atomic:ty) => {{
            // SAFETY: `T` has the word's size and no padding, so its bytes are an integer.
            let word = unsafe { std::mem::transmute_copy(&value) };
            // SAFETY: `dest` is valid for a write by contract, and aligned by the test below.
            unsafe { <$atomic>::from_ptr(dest.cast()) }.store(word, Relaxed);
        }};
    }

    match size_of::<T>() {
        1 => word!(AtomicU8),
        2 if dest.addr().is_multiple_of(2) => word!(AtomicU16),
        4 if dest.addr().is_multiple_of(4) => word!(AtomicU32),
        8 if dest.addr().is_multiple_of(8) => word!(AtomicU64),
        nbytes if is_of_words::<T>(dest.addr()) => {
            for i in 0..nbytes / size_of::<u64>() {
                // SAFETY: `i` is below the number of words of `value`, which has no padding.
                let bits = unsafe {
                    (&raw const value)
                        .cast::<u64>()
                        .wrapping_add(i)
                        .read_unaligned()
                };
                // SAFETY: the same word at `dest` is valid for a write by contract, and aligned by
                // the test above.
                let word = unsafe { AtomicU64::from_ptr(dest.cast::<u64>().wrapping_add(i)) };
                word.store(bits, Relaxed);
            }
        }
        // SAFETY: `value` has that many bytes, and `dest` is valid for writes of them by contract.
        nbytes => unsafe { foreign_copy(dest.cast(), (&raw const value).cast(), nbytes) },
    }
}

/// Reads one element, by one instruction even if it is not aligned, where there is
/// [`ANY_ALIGNMENT`]. Other elements are read by volatile loads, since the memory may be read-only.
///
/// # Safety
/// `source` is valid for reads of a `T`; a peer may have written it.
#[inline(always)]
pub(super) unsafe fn load_opaque<T: Element>(source: *const T) -> T {
    macro_rules! word {
        ($word:ty) => {{
            // SAFETY: `source` is valid for reads of an element by contract, and need not be
            // aligned, since there is `ANY_ALIGNMENT`.
            let word = unsafe { <$word>::load_opaque(source.cast()) };
            // SAFETY: `T` has the word's size, and the bits there are a `T` by contract.
            unsafe { std::mem::transmute_copy(&word) }
        }};
    }

    match size_of::<T>() {
        1 if ANY_ALIGNMENT => word!(u8),
        2 if ANY_ALIGNMENT => word!(u16),
        4 if ANY_ALIGNMENT => word!(u32),
        8 if ANY_ALIGNMENT => word!(u64),
        // SAFETY: `source` is valid for reads by contract.
        _ => unsafe { load_by::<VolatileLoads, T>(source) },
    }
}

/// Writes one element, by one instruction even if it is not aligned, where there is
/// [`ANY_ALIGNMENT`]. Other elements are written as by [`store`].
///
/// # Safety
/// As [`store`].
#[inline(always)]
pub(super) unsafe fn store_opaque<T: Element>(dest: *mut T, value: T) {
    macro_rules! word {
        ($word:ty) => {{
            // SAFETY: `T` has the word's size and no padding, so its bytes are an integer.
            let word = unsafe { std::mem::transmute_copy(&value) };
            // SAFETY: `dest` is valid for writes of an element by contract, and need not be
            // aligned, since there is `ANY_ALIGNMENT`.
            unsafe { <$word>::store_opaque(dest.cast(), word) }
        }};
    }

    match size_of::<T>() {
        1 if ANY_ALIGNMENT => word!(u8),
        2 if ANY_ALIGNMENT => word!(u16),
        4 if ANY_ALIGNMENT => word!(u32),
        8 if ANY_ALIGNMENT => word!(u64),
        // SAFETY: `dest` is valid for writes, by contract.
        _ => unsafe { store(dest, value) },
    }
}
