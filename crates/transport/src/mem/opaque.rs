//! Accesses that are opaque to the compiler: inline assembly, and a copy by a foreign function.
//!
//! # Data races
//!
//! Other processes and the threads of this one, its service thread included, may write the same
//! symmetric bytes at the same time, and safe Rust programs can cause that. If Rust's plain
//! accesses met there, it would be a data race and undefined behavior. So `mem` has none:
//!
//! - Up to 64 bytes are accessed by relaxed atomic loads and stores, each of a whole word if that
//!   is aligned. Copies use inline assembly for them, because their source may be borrowed memory,
//!   in which Rust permits no atomic, and because words then need no alignment.
//! - Longer runs are copied by `memmove` of the C library, which is called through a pointer whose
//!   value the compiler does not know.
//!
//! To the compiler, inline assembly and a foreign function may access the bytes in any way that
//! Rust code could. Here both are defined to carry out relaxed atomic loads and stores, those of
//! the foreign function of unspecified width. The machine code keeps this promise, because every
//! load and store instruction of the processors that Rushmem runs on is at least that.
//!
//! A direct call would not do, because the compiler knows `memmove` by its name and takes it for
//! plain accesses. A loop of atomic accesses would not do either, because the compiler does not
//! vectorize it: by words it takes up to three times as long, by bytes twenty times.
//!
//! The memory model of Rust has no meaning yet for atomic accesses of different widths to the same
//! bytes at the same time. Those that meet here are by different threads and processes, of which no
//! compiler sees both; the processors define them.
//!
//! # Race detectors
//!
//! Miri and ThreadSanitizer do not see what inline assembly accesses, so there is none for them
//! (`build.rs`). They see words as atomics, since programs may synchronize by words, except that
//! words of a source that may be borrowed are read by volatile loads. ThreadSanitizer sees other
//! bytes as plain accesses, by its own `memmove`. Miri, which cannot call a foreign function, sees
//! volatile loads and atomic stores of them.
#![allow(unsafe_code)]

#[cfg(miri)]
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// True if one instruction also accesses a word that is not aligned.
pub(super) const ANY_ALIGNMENT: bool = cfg!(opaque);

/// A word that is accessed by one instruction, which is opaque to the compiler. Where there is no
/// inline assembly, it is accessed by a volatile load or store.
pub(super) trait Opaque: Sized {
    /// # Safety
    /// `source` is valid for a read, and aligned to the size of the word unless there is
    /// [`ANY_ALIGNMENT`].
    unsafe fn load_opaque(source: *const Self) -> Self;
    /// # Safety
    /// `dest` is valid for a write, and aligned to the size of the word unless there is
    /// [`ANY_ALIGNMENT`].
    unsafe fn store_opaque(dest: *mut Self, word: Self);

    /// Copies two words, whose starts are `dst` bytes apart at `dest` and `sst` bytes at `source`.
    ///
    /// # Safety
    /// Both are valid for a read at `source` and for a write at `dest`, and aligned as above.
    #[inline(always)]
    unsafe fn copy_pair_opaque(dest: *mut Self, source: *const Self, dst: isize, sst: isize) {
        for i in [0, 1] {
            // SAFETY: both words at `source` are valid for a read by contract, and aligned as it
            // says.
            let word = unsafe { Self::load_opaque(source.wrapping_byte_offset(i * sst)) };
            // SAFETY: both words at `dest` are valid for a write by contract, and aligned as it
            // says.
            unsafe { Self::store_opaque(dest.wrapping_byte_offset(i * dst), word) }
        }
    }
}

/// Implements [`Opaque`] for words. Each instruction is given as its assembly text before and after
/// the address; `$plus` separates the parts of an address; `$register` is the integer type as which
/// `asm!` takes the word.
#[cfg(opaque)]
macro_rules! opaque {
    (
        sum $plus:literal;
        $(
            $word:ty as $register:ty,
            load $load:literal $to:literal,
            store $store:literal $from:literal;
        )*
    ) => {$(
        impl Opaque for $word {
            #[inline(always)]
            unsafe fn load_opaque(source: *const $word) -> $word {
                let word: $register;
                // SAFETY: `source` is valid for a read by contract. The instruction loads one word,
                // which need not be aligned, and changes the output register alone, as the options
                // say.
                unsafe {
                    std::arch::asm!(
                        concat!($load, "{1}", $to),
                        out(reg) word,
                        in(reg) source,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                word as $word
            }

            #[inline(always)]
            unsafe fn store_opaque(dest: *mut $word, word: $word) {
                // SAFETY: `dest` is valid for a write by contract. The instruction stores one word,
                // which need not be aligned, and changes no register, as the options say.
                unsafe {
                    std::arch::asm!(
                        concat!($store, "{1}", $from),
                        in(reg) <$register>::from(word),
                        in(reg) dest,
                        options(nostack, preserves_flags),
                    );
                }
            }

            // The instructions add the strides to the addresses themselves. This takes half as long
            // as computing an address for each word.
            #[inline(always)]
            unsafe fn copy_pair_opaque(
                dest: *mut $word,
                source: *const $word,
                dst: isize,
                sst: isize,
            ) {
                // SAFETY: both words at `source` are valid for reads and those at `dest` for
                // writes, by contract. The instructions load and store these four words, which need
                // not be aligned, and change the output register alone, as the options say.
                unsafe {
                    std::arch::asm!(
                        concat!($load, "{source}", $to),
                        concat!($store, "{dest}", $from),
                        concat!($load, "{source}", $plus, "{sst}", $to),
                        concat!($store, "{dest}", $plus, "{dst}", $from),
                        out(reg) _,
                        source = in(reg) source,
                        sst = in(reg) sst,
                        dest = in(reg) dest,
                        dst = in(reg) dst,
                        options(nostack, preserves_flags),
                    );
                }
            }
        }
    )*};
}

#[cfg(all(opaque, target_arch = "x86_64"))]
opaque! {
    sum " + ";
    u8 as u32, load "movzx {0:e}, byte ptr [" "]", store "mov [" "], {0:l}";
    u16 as u16, load "movzx {0:e}, word ptr [" "]", store "mov [" "], {0:x}";
    u32 as u32, load "mov {0:e}, [" "]", store "mov [" "], {0:e}";
    u64 as u64, load "mov {0}, [" "]", store "mov [" "], {0}";
}

#[cfg(all(opaque, target_arch = "aarch64"))]
opaque! {
    sum ", ";
    u8 as u8, load "ldrb {0:w}, [" "]", store "strb {0:w}, [" "]";
    u16 as u16, load "ldrh {0:w}, [" "]", store "strh {0:w}, [" "]";
    u32 as u32, load "ldr {0:w}, [" "]", store "str {0:w}, [" "]";
    u64 as u64, load "ldr {0:x}, [" "]", store "str {0:x}, [" "]";
}

#[cfg(not(opaque))]
macro_rules! volatile {
    ($($word:ty)*) => {$(
        impl Opaque for $word {
            unsafe fn load_opaque(source: *const $word) -> $word {
                // SAFETY: `source` is valid for a read by contract, and aligned, since there is no
                // `ANY_ALIGNMENT`.
                unsafe { source.read_volatile() }
            }

            unsafe fn store_opaque(dest: *mut $word, word: $word) {
                // SAFETY: `dest` is valid for a write by contract, and aligned, since there is no
                // `ANY_ALIGNMENT`.
                unsafe { dest.write_volatile(word) }
            }
        }
    )*};
}

#[cfg(not(opaque))]
volatile! { u8 u16 u32 u64 }

/// Copies bytes, which may overlap, by a function that is opaque to the compiler.
///
/// # Safety
/// `source` is valid for reads and `dest` for writes of `nbytes` bytes.
#[cfg(not(miri))]
#[inline(always)]
pub(super) unsafe fn foreign_copy(dest: *mut u8, source: *const u8, nbytes: usize) {
    type CopyFunction = unsafe extern "C" fn(
        *mut libc::c_void,
        *const libc::c_void,
        libc::size_t,
    ) -> *mut libc::c_void;
    static MEMMOVE: CopyFunction = libc::memmove;
    // A volatile read may yield anything, as far as the compiler knows.
    // SAFETY: `MEMMOVE` is a static variable, which nothing writes.
    let copy = unsafe { (&raw const MEMMOVE).read_volatile() };
    // SAFETY: `copy` is memmove, whose ranges may overlap. Both are valid for `nbytes` bytes, by
    // contract.
    unsafe { copy(dest.cast(), source.cast(), nbytes) };
}

/// Copies `nbytes` bytes under Miri, which has private memory alone.
///
/// # Safety
/// `source` is valid for reads and `dest` for writes of `nbytes` bytes.
#[cfg(miri)]
pub(super) unsafe fn foreign_copy(dest: *mut u8, source: *const u8, nbytes: usize) {
    // All bytes are read before the first one is written, since the ranges may overlap.
    let mut bytes = Vec::with_capacity(nbytes);
    for i in 0..nbytes {
        // SAFETY: byte `i` at `source` is one of `nbytes` that are valid for reads by contract.
        bytes.push(unsafe { source.wrapping_add(i).read_volatile() });
    }
    for (i, byte) in bytes.into_iter().enumerate() {
        // SAFETY: byte `i` at `dest` is one of `nbytes` that are valid for writes by contract.
        unsafe { AtomicU8::from_ptr(dest.wrapping_add(i)) }.store(byte, Relaxed);
    }
}
