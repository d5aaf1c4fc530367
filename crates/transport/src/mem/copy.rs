//! Plain data: single words and runs.
//!
//! # Data races
//!
//! Threads of this process, its service thread among them, and other processes may write the same
//! symmetric bytes at the same time, and safe Rust programs can cause that. So no access to
//! symmetric memory in this file is a plain one of Rust's, for which this would be a data race and
//! undefined behavior:
//!
//! - Up to [`WORDWISE`] bytes are accessed by relaxed atomic loads and stores, of a whole word each
//!   where it is aligned. Words that are copied are moved by instructions that are written down
//!   here: their source may be borrowed memory, in which Rust permits no atomic, and they need no
//!   alignment.
//! - Longer runs are copied by `memmove` of the C library, which is called through a pointer whose
//!   value the compiler does not know.
//!
//! To the compiler, such an instruction or foreign function may access the bytes in any way that
//! Rust code could, and as such both are defined here: they carry out relaxed atomic loads and
//! stores, those of the copy of unspecified width. The machine code keeps this promise, because
//! every load and store instruction of the processors that Rushmem runs on is at least that.
//!
//! A direct call would not do, because the compiler knows `memmove` by its name and takes it for
//! plain accesses. A loop of atomic words would not do either, because the compiler does not
//! vectorize it: it takes up to three times as long, and per byte twenty times. Miri, which cannot
//! call a foreign function, gets loops of atomics.
//!
//! The memory model of Rust has no meaning yet for atomic accesses of different widths to the same
//! bytes at the same time. Those that meet here are by different threads and processes, of which no
//! compiler sees both; the processors define them.
//!
//! # Whole words
//!
//! No aligned word of 1, 2, 4 or 8 bytes is torn by a copy of a run, whatever the run's start and
//! length are. `memmove` stores with vector instructions that are placed relative to the start and
//! to the end of the run, so both must lie between words: what precedes the first and follows the
//! last aligned 8 bytes is copied in smaller words.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Up to this many bytes a run of words is copied word by word, each untorn; a longer one by
/// `memmove`, whose accesses are at least as wide as a word where it is aligned.
const WORDWISE: usize = 64;

/// The longest word, and its alignment.
const WORD: usize = size_of::<u64>();

/// A type of which symmetric arrays are made: plain bytes to whoever copies it.
///
/// # Safety
/// It has no padding, that is all of its bytes are initialized in every value, unless it says so.
pub unsafe trait Element: Copy {
    /// Whether some of its bytes may be padding. It is no word then.
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

/// How a copy reads the words of its source.
pub trait Loads {
    /// Whether by atomic loads.
    const ATOMIC: bool;
}

/// By atomic loads: the source is symmetric memory, which threads of this process may write
/// meanwhile. It is valid for writes, too, as the pointer of an atomic must be. Where source and
/// destination are aligned differently, the words of the source are the ones that are not torn.
pub enum Atomic {}

/// By loads that the compiler knows no more of than of volatile ones: the source may be a `&[T]`,
/// in which there can be no atomic, or symmetric memory. The words of the destination are not torn.
pub enum Volatile {}

impl Loads for Atomic {
    const ATOMIC: bool = true;
}
impl Loads for Volatile {
    const ATOMIC: bool = false;
}

/// Reads one element of symmetric memory; untorn when its size is 1, 2, 4 or 8 and it is aligned to
/// that.
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
/// `source` is valid for reads of a `T`, and what is there is one, whoever wrote it; what else it
/// is, `L` says.
#[inline(always)]
unsafe fn load_by<L: Loads, T: Element>(source: *const T) -> T {
    macro_rules! word {
        ($word:ty, $atomic:ty) => {{
            let word: $word = if L::ATOMIC {
                // SAFETY: valid for reads and writes, as `L` says, and aligned by the test below.
                unsafe { <$atomic>::from_ptr(source.cast_mut().cast()) }.load(Relaxed)
            } else {
                // SAFETY: valid for a read by contract, aligned by the test below.
                unsafe { <$word>::load_unseen(source.cast()) }
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
                    let at = source.cast::<u64>().wrapping_add(i);
                    let word = if L::ATOMIC {
                        // SAFETY: a word of the element, valid for reads and writes, as `L` says,
                        // and aligned by the test above.
                        unsafe { AtomicU64::from_ptr(at.cast_mut()) }.load(Relaxed)
                    } else {
                        // SAFETY: a word of the element, valid for a read by contract, and aligned
                        // by the test above.
                        unsafe { u64::load_unseen(at) }
                    };
                    // SAFETY: the same word of a value of the same size.
                    unsafe { to.cast::<u64>().wrapping_add(i).write_unaligned(word) };
                }
            } else {
                // SAFETY: valid for reads by contract, and a value of that many bytes.
                unsafe { foreign_copy(to.cast(), source.cast(), nbytes) };
            }
            // SAFETY: all of its bytes were written, and are a `T` by contract.
            unsafe { value.assume_init() }
        }
    }
}

/// Whether elements at addresses with these bits are accessed by words.
#[inline(always)]
fn is_by_words<T: Element>(addrs: usize) -> bool {
    match size_of::<T>() {
        nbytes @ (1 | 2 | 4 | 8) => ANY_ALIGNMENT || addrs.is_multiple_of(nbytes),
        _ => is_of_words::<T>(addrs),
    }
}

/// Whether an element that is no word is accessed word by word.
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
    const { assert!(!T::PADDED || !matches!(size_of::<T>(), 1 | 2 | 4 | 8), "not an integer") };
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
        nbytes if is_of_words::<T>(dest.addr()) => {
            for i in 0..nbytes / size_of::<u64>() {
                // SAFETY: a word of the value, which has no padding.
                let bits =
                    unsafe { (&raw const value).cast::<u64>().wrapping_add(i).read_unaligned() };
                // SAFETY: the same word of the element, valid for a write by contract, aligned by
                // the test above.
                let word = unsafe { AtomicU64::from_ptr(dest.cast::<u64>().wrapping_add(i)) };
                word.store(bits, Relaxed);
            }
        }
        // SAFETY: a value of that many bytes, and valid for writes by contract.
        nbytes => unsafe { foreign_copy(dest.cast(), (&raw const value).cast(), nbytes) },
    }
}

/// Whether words that are not aligned are accessed by one instruction, too: where one is written
/// down.
const ANY_ALIGNMENT: bool =
    cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)));

/// A word that is accessed by an instruction that the compiler does not know.
trait Unseen: Sized {
    /// # Safety
    /// `source` is valid for a read, and aligned to the size of the word unless there is
    /// [`ANY_ALIGNMENT`].
    unsafe fn load_unseen(source: *const Self) -> Self;
    /// # Safety
    /// `dest` is valid for a write, and aligned to the size of the word unless there is
    /// [`ANY_ALIGNMENT`].
    unsafe fn store_unseen(dest: *mut Self, word: Self);
}

macro_rules! unseen {
    ($($word:ty, $register:ident, $x86_64:literal, $aarch64:literal;)*) => {$(
        impl Unseen for $word {
            #[inline(always)]
            unsafe fn load_unseen(source: *const $word) -> $word {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                {
                    let word;
                    // SAFETY: valid for a read by contract.
                    unsafe {
                        std::arch::asm!(
                            concat!("mov ", $x86_64, ", [{1}]"),
                            out($register) word,
                            in(reg) source,
                            options(nostack, preserves_flags, readonly),
                        );
                    }
                    word
                }
                #[cfg(all(target_arch = "aarch64", not(miri)))]
                {
                    let word;
                    // SAFETY: valid for a read by contract.
                    unsafe {
                        std::arch::asm!(
                            concat!("ldr", $aarch64, ", [{1}]"),
                            out(reg) word,
                            in(reg) source,
                            options(nostack, preserves_flags, readonly),
                        );
                    }
                    word
                }
                #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
                // SAFETY: valid for a read by contract, and aligned.
                unsafe {
                    source.read_volatile()
                }
            }

            #[inline(always)]
            unsafe fn store_unseen(dest: *mut $word, word: $word) {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                // SAFETY: valid for a write by contract.
                unsafe {
                    std::arch::asm!(
                        concat!("mov [{1}], ", $x86_64),
                        in($register) word,
                        in(reg) dest,
                        options(nostack, preserves_flags),
                    );
                }
                #[cfg(all(target_arch = "aarch64", not(miri)))]
                // SAFETY: valid for a write by contract.
                unsafe {
                    std::arch::asm!(
                        concat!("str", $aarch64, ", [{1}]"),
                        in(reg) word,
                        in(reg) dest,
                        options(nostack, preserves_flags),
                    );
                }
                #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
                // SAFETY: valid for a write by contract, and aligned.
                unsafe {
                    dest.write_volatile(word)
                }
            }
        }
    )*};
}

unseen! {
    u8, reg_byte, "{0}", "b {0:w}";
    u16, reg, "{0:x}", "h {0:w}";
    u32, reg, "{0:e}", " {0:w}";
    u64, reg, "{0}", " {0:x}";
}

/// Reads one element as [`load`], but by one instruction for every alignment, where one is written
/// down.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub(super) unsafe fn load_unseen<T: Element>(source: *const T) -> T {
    macro_rules! word {
        ($word:ty) => {{
            // SAFETY: valid for reads by contract.
            let word = unsafe { <$word>::load_unseen(source.cast()) };
            // SAFETY: `T` has the word's size, and the bits there are a `T` by contract.
            unsafe { std::mem::transmute_copy(&word) }
        }};
    }
    match size_of::<T>() {
        1 if ANY_ALIGNMENT => word!(u8),
        2 if ANY_ALIGNMENT => word!(u16),
        4 if ANY_ALIGNMENT => word!(u32),
        8 if ANY_ALIGNMENT => word!(u64),
        // SAFETY: the same contract.
        _ => unsafe { load(source) },
    }
}

/// Writes one element as [`store`], but by one instruction for every alignment, where one is
/// written down.
///
/// # Safety
/// As [`store`].
#[inline(always)]
pub(super) unsafe fn store_unseen<T: Element>(dest: *mut T, value: T) {
    macro_rules! word {
        ($word:ty) => {{
            // SAFETY: `T` has the word's size and no padding, so its bytes are an integer.
            let word = unsafe { std::mem::transmute_copy(&value) };
            // SAFETY: valid for writes by contract.
            unsafe { <$word>::store_unseen(dest.cast(), word) }
        }};
    }
    match size_of::<T>() {
        1 if ANY_ALIGNMENT => word!(u8),
        2 if ANY_ALIGNMENT => word!(u16),
        4 if ANY_ALIGNMENT => word!(u32),
        8 if ANY_ALIGNMENT => word!(u64),
        // SAFETY: the same contract.
        _ => unsafe { store(dest, value) },
    }
}

/// Copies bytes, which may overlap, by a function that the compiler does not know; the head of this
/// file says why.
///
/// # Safety
/// `source` is valid for reads and `dest` for writes of `nbytes` bytes.
#[cfg(not(miri))]
#[inline(always)]
pub(super) unsafe fn foreign_copy(dest: *mut u8, source: *const u8, nbytes: usize) {
    type Copy = unsafe extern "C" fn(
        *mut libc::c_void,
        *const libc::c_void,
        libc::size_t,
    ) -> *mut libc::c_void;
    static MEMMOVE: Copy = libc::memmove;
    // SAFETY: a static variable. A volatile read may yield anything, as far as the compiler knows.
    let copy = unsafe { (&raw const MEMMOVE).read_volatile() };
    // SAFETY: the same contract.
    unsafe { copy(dest.cast(), source.cast(), nbytes) };
}

/// The same for Miri, which sees private memory alone.
///
/// # Safety
/// `source` is valid for reads and `dest` for writes of `nbytes` bytes.
#[cfg(miri)]
pub(super) unsafe fn foreign_copy(dest: *mut u8, source: *const u8, nbytes: usize) {
    // SAFETY: valid for reads by contract.
    let byte = |i| unsafe { source.add(i).read_volatile() };
    let bytes: Vec<u8> = (0..nbytes).map(byte).collect();
    for (i, byte) in bytes.into_iter().enumerate() {
        // SAFETY: valid for writes by contract.
        unsafe { AtomicU8::from_ptr(dest.add(i)) }.store(byte, Relaxed);
    }
}

/// Copies a word. One load and one store do it, except where a side that is not aligned needs a
/// function.
///
/// # Safety
/// `source` is valid for reads, as `L` says, `dest` for writes of a word.
#[inline(always)]
unsafe fn copy_word<L: Loads, W: Element + Unseen>(dest: *mut u8, source: *const u8) {
    if ANY_ALIGNMENT {
        // SAFETY: valid for reads by contract.
        let word = unsafe { W::load_unseen(source.cast()) };
        // SAFETY: valid for writes by contract.
        unsafe { W::store_unseen(dest.cast(), word) }
    } else {
        // SAFETY: valid for reads, as `L` says, by contract.
        let word = unsafe { load_by::<L, W>(source.cast()) };
        // SAFETY: valid for writes by contract.
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
    macro_rules! word {
        ($word:ty) => {
            // SAFETY: one element of this size, valid by contract.
            unsafe { copy_word::<L, $word>(dest.cast(), source.cast()) }
        };
    }
    match size_of::<T>() {
        1 if ANY_ALIGNMENT => word!(u8),
        2 if ANY_ALIGNMENT => word!(u16),
        4 if ANY_ALIGNMENT => word!(u32),
        8 if ANY_ALIGNMENT => word!(u64),
        _ => {
            // SAFETY: by contract.
            unsafe { std::hint::assert_unchecked(is_by_words::<T>(source.addr())) };
            // SAFETY: by contract.
            unsafe { std::hint::assert_unchecked(is_by_words::<T>(dest.addr())) };
            // SAFETY: valid for reads by contract.
            let value = unsafe { load_by::<L, T>(source) };
            // SAFETY: valid for writes by contract.
            unsafe { store(dest, value) }
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
        // SAFETY: the same contract.
        unsafe { copy_run::<L, T>(dest, source, nelems) }
    } else {
        // SAFETY: the same contract; the elements are so many bytes, all of them initialized.
        unsafe { copy_other_bytes::<L>(dest.cast(), source.cast(), nelems * size_of::<T>()) }
    }
}

/// The part of [`copy_elements`] that is worth a call, for elements that end where a word ends.
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
            // SAFETY: valid by contract; elements are as far aligned as the first one.
            unsafe { copy_by_words::<L, T>(to, from) }
        }
    } else {
        // SAFETY: valid by contract.
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
    if nbytes == WORD && is_by_words::<u64>(dest.addr() | source.addr()) {
        // SAFETY: both are valid for 8 bytes by contract, and accessed by words.
        unsafe { copy_by_words::<L, u64>(dest.cast(), source.cast()) }
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
    if (dest.addr() | source.addr() | nbytes).is_multiple_of(WORD) {
        // SAFETY: as many words as fill `nbytes`, valid by contract.
        unsafe { copy_run::<L, u64>(dest.cast(), source.cast(), nbytes / WORD) }
    } else {
        // SAFETY: the same contract.
        unsafe { copy_cut::<L>(dest, source, nbytes) }
    }
}

/// How a run at `addr` is cut so that no aligned word is: the bytes before its first and after its
/// last aligned 8 bytes. The bits of the first number are the sizes of the words that it begins
/// with, the smallest first; those of the second number are of the words that it ends with, the
/// largest first.
#[inline(always)]
fn cut(addr: usize, nbytes: usize) -> (usize, usize) {
    let mut before = addr.wrapping_neg() % WORD;
    // A run that ends before the next aligned 8 bytes has no word of the largest sizes.
    for smaller in [3, 1, 0] {
        if before > nbytes {
            before &= smaller;
        }
    }
    (before, (nbytes - before) % WORD)
}

/// Copies a run that begins or ends within aligned 8 bytes. Its long part is last, so that the call
/// of a function for it saves no registers.
///
/// # Safety
/// As [`copy_bytes`].
#[inline(never)]
unsafe fn copy_cut<L: Loads>(dest: *mut u8, source: *const u8, nbytes: usize) {
    let (before, after) = cut(if L::ATOMIC { source.addr() } else { dest.addr() }, nbytes);
    let mut at = 0;
    macro_rules! word_of {
        ($bytes:ident, $word:ty) => {
            if $bytes & size_of::<$word>() != 0 {
                // SAFETY: a word within the run, valid by contract.
                unsafe { copy_word::<L, $word>(dest.wrapping_add(at), source.wrapping_add(at)) };
                at += size_of::<$word>();
            }
        };
    }
    word_of!(before, u8);
    word_of!(before, u16);
    word_of!(before, u32);
    debug_assert_eq!(at, before, "the start of the long part");
    at = nbytes - after;
    word_of!(after, u32);
    word_of!(after, u16);
    word_of!(after, u8);
    debug_assert_eq!(at, nbytes, "the end of the run");
    let (to, from) = (dest.wrapping_add(before), source.wrapping_add(before));
    let nbytes = nbytes - before - after;
    if nbytes > WORDWISE {
        // SAFETY: within the run, valid by contract.
        unsafe { foreign_copy(to, from, nbytes) }
    } else {
        for at in (0..nbytes).step_by(WORD) {
            // SAFETY: a word within the run, valid by contract.
            unsafe { copy_word::<L, u64>(to.wrapping_add(at), from.wrapping_add(at)) }
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
    for block in 0..nblocks as isize {
        let to = dest.wrapping_offset(block * dst);
        let from = source.wrapping_offset(block * sst);
        // SAFETY: the block lies within what the caller vouches for.
        unsafe { copy_elements::<L, T>(to, from, bsize) }
    }
}

#[cfg(test)]
mod tests;
