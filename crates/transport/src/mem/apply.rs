//! Atomic operations by this CPU whose kind and width are known only at run time.
//!
//! The engine calls [`apply`] for operations that peers request, and for those of a PE on itself.
//! The runtime's own calls know their types and use the traits.
#![allow(unsafe_code)]

use super::amo::{AddAmo, ArithmeticAmo, BitwiseAmo};
use super::element::store;
use crate::amo::{AmoOp, AmoWidth};

/// Carries out `op` on the word at `dest` and returns its old value, zero-extended. Operand and
/// condition are truncated to the word's width; an operation that needs none ignores them.
///
/// # Safety
/// `dest` is valid for reads and writes of a word of this width and aligned to it.
pub unsafe fn apply(
    op: AmoOp,
    width: AmoWidth,
    dest: *mut u8,
    operand: u64,
    condition: u64,
) -> u64 {
    match width {
        AmoWidth::Four => {
            // SAFETY: `dest` is an aligned word of 4 bytes, valid for reads and writes, by
            // contract.
            let old =
                unsafe { word::<u32, f32>(op, dest.cast(), operand as u32, condition as u32) };
            u64::from(old)
        }
        // SAFETY: `dest` is an aligned word of 8 bytes, valid for reads and writes, by contract.
        AmoWidth::Eight => unsafe { word::<u64, f64>(op, dest.cast(), operand, condition) },
    }
}

impl AmoWidth {
    /// Writes a word's old value, zero-extended as an endpoint returns it, to a local word that
    /// need not be aligned.
    ///
    /// # Safety
    /// `to` is valid for writes of a word of this width.
    #[inline]
    pub unsafe fn write(self, to: *mut u8, value: u64) {
        match self {
            // SAFETY: `to` is valid for writes of 4 bytes by contract.
            AmoWidth::Four => unsafe { store(to.cast::<u32>(), value as u32) },
            // SAFETY: `to` is valid for writes of 8 bytes by contract.
            AmoWidth::Eight => unsafe { store(to.cast::<u64>(), value) },
        }
    }
}

/// Carries out `op` on a word of type `T`, or of type `F` if it adds floating-point numbers.
///
/// # Safety
/// As [`Amo::set`](super::amo::Amo::set), for both types, which have the same size.
unsafe fn word<T: ArithmeticAmo + BitwiseAmo, F: AddAmo>(
    op: AmoOp,
    dest: *mut T,
    operand: T,
    condition: T,
) -> T {
    match op {
        // SAFETY: `dest` is a valid and aligned word, by contract.
        AmoOp::Fetch => unsafe { T::fetch(dest) },
        // A set that returns the old value is a swap.
        // SAFETY: `dest` is a valid and aligned word, by contract.
        AmoOp::Set | AmoOp::Swap => unsafe { T::swap(dest, operand) },
        // SAFETY: `dest` is a valid and aligned word, by contract.
        AmoOp::CompareSwap => unsafe { T::compare_swap(dest, condition, operand) },
        // SAFETY: `dest` is a valid and aligned word, by contract.
        AmoOp::Add => unsafe { T::fetch_add(dest, operand) },
        // SAFETY: `dest` is a valid and aligned word, by contract.
        AmoOp::And => unsafe { T::fetch_and(dest, operand) },
        // SAFETY: `dest` is a valid and aligned word, by contract.
        AmoOp::Or => unsafe { T::fetch_or(dest, operand) },
        // SAFETY: `dest` is a valid and aligned word, by contract.
        AmoOp::Xor => unsafe { T::fetch_xor(dest, operand) },
        AmoOp::AddFloat => {
            let value = F::from_bits(operand.to_bits());
            // SAFETY: `dest` is a valid and aligned word, also of the type `F`, by contract.
            T::from_bits(unsafe { F::fetch_add(dest.cast(), value) }.to_bits())
        }
    }
}

#[cfg(test)]
mod tests;
