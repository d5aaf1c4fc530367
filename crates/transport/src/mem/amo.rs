//! Atomic updates by this CPU, and loads for waits.
//!
//! The standard asks for atomicity alone. Updates are acquire-release, fetches acquire and sets
//! release nevertheless: it costs nothing on x86-64 and one bit of the instruction on AArch64, and
//! programs that poll with `shmem_atomic_fetch` then see the data behind a flag. A compare-and-swap
//! that fails is a fetch.
#![allow(unsafe_code)]

use super::element::Element;
use crate::amo::{AmoOp, AmoWidth};
use sealed::Sealed;
use std::sync::atomic::{
    AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};

mod sealed {
    /// Only the types of this file are words: unsafe code relies on the promises of the traits.
    pub trait Sealed {}
}

/// A word that a PE can wait on (OpenSHMEM 1.6, point-to-point synchronization).
#[diagnostic::on_unimplemented(
    message = "a PE cannot wait for elements of type `{Self}`",
    label = "not an integer of 2, 4 or 8 bytes"
)]
pub trait WaitWord: Sealed + Copy + PartialOrd + 'static {
    /// True if the type is signed.
    const SIGNED: bool;
    /// Returns the bits of the value, zero-extended.
    fn word_bits(self) -> u64;
    /// Reads the word. Data that the word's writer ordered before its write are visible afterwards.
    ///
    /// # Safety
    /// `source` is valid for reads and writes, as the pointer of every atomic, and aligned to the
    /// word's size.
    unsafe fn load_acquire(source: *const Self) -> Self;
}

/// A type of the extended AMO types: fetch, set and swap.
#[diagnostic::on_unimplemented(
    message = "there are no atomic operations on elements of type `{Self}`",
    label = "not an integer or floating-point number of 4 or 8 bytes"
)]
pub trait Amo: Sealed + Element + 'static {
    /// The width of the type.
    const WIDTH: AmoWidth;
    /// True if the type is a floating-point number.
    const IS_FLOAT: bool;
    /// Returns the bits of the value, zero-extended, as messages contain them.
    fn to_bits(self) -> u64;
    /// Returns the value of such bits.
    fn from_bits(bits: u64) -> Self;
    /// Reads atomically.
    ///
    /// # Safety
    /// `source` is valid for reads and writes and aligned to the type's size.
    unsafe fn fetch(source: *const Self) -> Self;
    /// Writes atomically.
    ///
    /// # Safety
    /// `dest` is valid for reads and writes and aligned to the type's size.
    unsafe fn set(dest: *mut Self, value: Self);
    /// Writes atomically and returns the old value.
    ///
    /// # Safety
    /// As `set`.
    unsafe fn swap(dest: *mut Self, value: Self) -> Self;
}

/// A type to which values are added: the standard AMO types and, as an extension, floating-point
/// numbers.
pub trait AddAmo: Amo {
    /// The operation that adds values of this type.
    const ADD: AmoOp;
    /// Adds, wrapping if the type is an integer, and returns the old value.
    ///
    /// # Safety
    /// As [`Amo::set`].
    unsafe fn fetch_add(dest: *mut Self, value: Self) -> Self;
}

/// A type of the standard AMO types, which also have increments and compare-and-swap.
pub trait ArithmeticAmo: AddAmo {
    /// One, the value that increments add.
    const ONE: Self;
    /// Writes `value` if the word equals `cond`; returns the old value either way.
    ///
    /// # Safety
    /// As [`Amo::set`].
    unsafe fn compare_swap(dest: *mut Self, cond: Self, value: Self) -> Self;
}

/// A type of the bitwise AMO types.
pub trait BitwiseAmo: Amo {
    /// Combines the word with `value` by a bitwise and. Returns the old value.
    ///
    /// # Safety
    /// As [`Amo::set`].
    unsafe fn fetch_and(dest: *mut Self, value: Self) -> Self;
    /// Combines the word with `value` by a bitwise or. Returns the old value.
    ///
    /// # Safety
    /// As [`Amo::set`].
    unsafe fn fetch_or(dest: *mut Self, value: Self) -> Self;
    /// Combines the word with `value` by a bitwise exclusive or. Returns the old value.
    ///
    /// # Safety
    /// As [`Amo::set`].
    unsafe fn fetch_xor(dest: *mut Self, value: Self) -> Self;
}

macro_rules! word {
    ($($t:ty, $atomic:ty;)*) => {$(
        impl Sealed for $t {}
        impl WaitWord for $t {
            const SIGNED: bool = <$t>::MIN != 0;
            fn word_bits(self) -> u64 {
                self as u64 & u64::MAX >> (u64::BITS - <$t>::BITS)
            }
            #[inline(always)]
            unsafe fn load_acquire(source: *const Self) -> Self {
                // SAFETY: `source` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(source.cast_mut()) }.load(Acquire)
            }
        }
    )*};
}

word! {
    i16, AtomicI16;
    u16, AtomicU16;
    i32, AtomicI32;
    u32, AtomicU32;
    i64, AtomicI64;
    u64, AtomicU64;
    isize, AtomicIsize;
    usize, AtomicUsize;
}

macro_rules! integer {
    ($($t:ty, $unsigned:ty, $atomic:ty, $width:ident;)*) => {$(
        impl Amo for $t {
            const WIDTH: AmoWidth = AmoWidth::$width;
            const IS_FLOAT: bool = false;
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }
            #[inline(always)]
            unsafe fn fetch(source: *const Self) -> Self {
                // SAFETY: `source` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(source.cast_mut()) }.load(Acquire)
            }
            #[inline(always)]
            unsafe fn set(dest: *mut Self, value: Self) {
                // SAFETY: `dest` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(dest) }.store(value, Release)
            }
            #[inline(always)]
            unsafe fn swap(dest: *mut Self, value: Self) -> Self {
                // SAFETY: `dest` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(dest) }.swap(value, AcqRel)
            }
        }
        impl AddAmo for $t {
            const ADD: AmoOp = AmoOp::Add;
            #[inline(always)]
            unsafe fn fetch_add(dest: *mut Self, value: Self) -> Self {
                // SAFETY: `dest` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(dest) }.fetch_add(value, AcqRel)
            }
        }
        impl ArithmeticAmo for $t {
            const ONE: Self = 1;
            #[inline(always)]
            unsafe fn compare_swap(dest: *mut Self, cond: Self, value: Self) -> Self {
                // SAFETY: `dest` is valid for reads and writes and aligned, by contract.
                let word = unsafe { <$atomic>::from_ptr(dest) };
                word.compare_exchange(cond, value, AcqRel, Acquire).unwrap_or_else(|old| old)
            }
        }
        impl BitwiseAmo for $t {
            #[inline(always)]
            unsafe fn fetch_and(dest: *mut Self, value: Self) -> Self {
                // SAFETY: `dest` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(dest) }.fetch_and(value, AcqRel)
            }
            #[inline(always)]
            unsafe fn fetch_or(dest: *mut Self, value: Self) -> Self {
                // SAFETY: `dest` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(dest) }.fetch_or(value, AcqRel)
            }
            #[inline(always)]
            unsafe fn fetch_xor(dest: *mut Self, value: Self) -> Self {
                // SAFETY: `dest` is valid for reads and writes and aligned, by contract.
                unsafe { <$atomic>::from_ptr(dest) }.fetch_xor(value, AcqRel)
            }
        }
    )*};
}

integer! {
    i32, u32, AtomicI32, Four;
    u32, u32, AtomicU32, Four;
    i64, u64, AtomicI64, Eight;
    u64, u64, AtomicU64, Eight;
    isize, u64, AtomicIsize, Eight;
    usize, u64, AtomicUsize, Eight;
}

macro_rules! float {
    ($($t:ty, $bits:ty, $atomic:ty;)*) => {$(
        impl Sealed for $t {}
        impl Amo for $t {
            const WIDTH: AmoWidth = <$bits as Amo>::WIDTH;
            const IS_FLOAT: bool = true;
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(<$t>::to_bits(self))
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$t>::from_bits(bits as $bits)
            }
            #[inline(always)]
            unsafe fn fetch(source: *const Self) -> Self {
                // SAFETY: `source` is a valid word of its bits, which have the same size and
                // alignment.
                <$t>::from_bits(unsafe { <$bits as Amo>::fetch(source.cast()) })
            }
            #[inline(always)]
            unsafe fn set(dest: *mut Self, value: Self) {
                // SAFETY: `dest` is a valid word of its bits, which have the same size and
                // alignment.
                unsafe { <$bits as Amo>::set(dest.cast(), value.to_bits()) }
            }
            #[inline(always)]
            unsafe fn swap(dest: *mut Self, value: Self) -> Self {
                // SAFETY: `dest` is a valid word of its bits, which have the same size and
                // alignment.
                <$t>::from_bits(unsafe { <$bits as Amo>::swap(dest.cast(), value.to_bits()) })
            }
        }
        impl AddAmo for $t {
            const ADD: AmoOp = AmoOp::AddFloat;
            #[inline(always)]
            unsafe fn fetch_add(dest: *mut Self, value: Self) -> Self {
                // SAFETY: `dest` is a valid word of its bits, which have the same size and
                // alignment.
                let word = unsafe { <$atomic>::from_ptr(dest.cast()) };
                // There is no atomic floating-point number. The update never fails.
                let old = word.fetch_update(AcqRel, Acquire, |old| {
                    Some((<$t>::from_bits(old) + value).to_bits())
                });
                <$t>::from_bits(old.unwrap_or_else(|old| old))
            }
        }
    )*};
}

float! {
    f32, u32, AtomicU32;
    f64, u64, AtomicU64;
}

#[cfg(test)]
#[expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof serves them all"
)]
mod tests {
    use super::*;

    fn arithmetic<T: ArithmeticAmo + PartialEq + std::fmt::Debug>(five: T, six: T, nine: T) {
        let mut word = five;
        let dest = &raw mut word;
        // SAFETY: `dest` points to a live local, aligned as its type.
        unsafe {
            assert_eq!(T::fetch_add(dest, T::ONE), five);
            assert_eq!(T::fetch(dest), six);
            assert_eq!(T::compare_swap(dest, five, nine), six);
            assert_eq!(T::compare_swap(dest, six, nine), six);
            assert_eq!(T::swap(dest, five), nine);
            T::set(dest, six);
            assert_eq!(T::fetch(dest), six);
        }
    }

    fn bitwise<T: BitwiseAmo + PartialEq + std::fmt::Debug + From<u8>>() {
        let mut word = T::from(0b1100);
        let dest = &raw mut word;
        // SAFETY: `dest` points to a live local, aligned as its type.
        unsafe {
            assert_eq!(T::fetch_and(dest, T::from(0b0110)), T::from(0b1100));
            assert_eq!(T::fetch_or(dest, T::from(0b0001)), T::from(0b0100));
            assert_eq!(T::fetch_xor(dest, T::from(0b1111)), T::from(0b0101));
            assert_eq!(T::fetch(dest), T::from(0b1010));
        }
    }

    #[test]
    fn every_operation_on_every_type() {
        arithmetic(5i32, 6, 9);
        arithmetic(5u32, 6, 9);
        arithmetic(5i64, 6, 9);
        arithmetic(5u64, 6, 9);
        bitwise::<u32>();
        bitwise::<u64>();
        let mut float = 1.5f32;
        // SAFETY: a live local.
        assert_eq!(unsafe { f32::swap(&raw mut float, -0.0) }, 1.5);
        assert!(float.is_sign_negative());
        let mut double = 0.5f64;
        // SAFETY: a live local.
        assert_eq!(unsafe { f64::fetch_add(&raw mut double, -2.0) }, 0.5);
        assert_eq!(double, -1.5);
    }

    #[test]
    fn additions_wrap() {
        let mut word = i32::MAX;
        // SAFETY: a live local.
        unsafe { i32::fetch_add(&raw mut word, 1) };
        assert_eq!(word, i32::MIN);
    }
}
