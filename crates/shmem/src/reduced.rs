//! What reductions and scans of private values combine, and how the runtime sees it.

use crate::complex::Complex;
use bytemuck::{Pod, bytes_of_mut, cast_slice_mut};
use std::fmt;
use std::marker::PhantomData;

mod sealed {
    pub trait Values: Sized {
        /// The values as the runtime combines them.
        type Combined;

        fn into_combined(self) -> Self::Combined;
        fn bytes(combined: &mut Self::Combined) -> &mut [u8];
        fn of_combined(combined: Self::Combined) -> Self;
    }

    /// A number that has a place: it is ordered as its key.
    pub trait Key: Copy {
        fn key(self) -> u64;
        fn of_key(key: u64) -> Self;
    }
}
use sealed::{Key, Values};

/// What a reduction or scan of private values (§9.10.9, §9.10.10) combines: a number, a `bool`, an
/// array or a vector of elements, or a pair of a number and its place. Arrays and vectors are
/// combined element by element, and all members pass the same number of elements.
///
/// ```
/// # let shmem = shmem::init();
/// let (me, world) = (shmem.my_pe(), shmem.world());
/// assert!(world.all_reduce(me < shmem.n_pes(), shmem::And));
/// assert_eq!(world.all_reduce([1, me], shmem::Sum)[0], shmem.n_pes());
/// assert_eq!(world.all_reduce((5, me), shmem::MaxLoc), (5, 0));
/// ```
#[diagnostic::on_unimplemented(
    message = "reductions and scans do not take values of type `{Self}`",
    label = "not a number, a bool, an array or a vector",
    note = "a slice is combined by `all_reduce_in_place`, symmetric memory by `all_reduce_into`, and a value of a type \
            of the program by `all_reduce_with`"
)]
pub trait ReducedValues: Values {
    /// The type that the operator combines.
    type Element;
}

/// Makes what the runtime combines as it is `ReducedValues`.
macro_rules! plain {
    ($(for [$($parameters:tt)*] $values:ty: $element:ty, $bytes:path;)*) => {$(
        impl<$($parameters)*> Values for $values {
            type Combined = Self;

            fn into_combined(self) -> Self {
                self
            }

            fn bytes(combined: &mut Self) -> &mut [u8] {
                $bytes(combined)
            }

            fn of_combined(combined: Self) -> Self {
                combined
            }
        }

        impl<$($parameters)*> ReducedValues for $values {
            type Element = $element;
        }
    )*};
}

plain! {
    for [T: Pod, const N: usize] [T; N]: T, cast_slice_mut;
    for [T: Pod] Vec<T>: T, cast_slice_mut;
}

macro_rules! numbers {
    ($($number:ty)*) => {
        plain! { $(for [] $number: $number, bytes_of_mut;)* }
    };
}
numbers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64> }

/// The element of a reduction of `bool`: a byte that is 0 for false, and has bits for true.
pub struct Truth(());

impl Values for bool {
    type Combined = u8;

    fn into_combined(self) -> u8 {
        u8::from(self)
    }

    fn bytes(combined: &mut u8) -> &mut [u8] {
        bytes_of_mut(combined)
    }

    fn of_combined(combined: u8) -> bool {
        combined != 0
    }
}

impl ReducedValues for bool {
    type Element = Truth;
}

/// The element of a reduction of pairs of a number and its place.
pub struct At<T>(PhantomData<T>);

impl<T: Key> Values for (T, usize) {
    /// The words of the runtime's `Located`.
    type Combined = [u64; 2];

    fn into_combined(self) -> [u64; 2] {
        [self.0.key(), self.1 as u64]
    }

    fn bytes(combined: &mut [u64; 2]) -> &mut [u8] {
        bytes_of_mut(combined)
    }

    fn of_combined([key, place]: [u64; 2]) -> Self {
        (T::of_key(key), place as usize)
    }
}

impl<T: Key> ReducedValues for (T, usize) {
    type Element = At<T>;
}

const SIGN: u64 = 1 << 63;

macro_rules! unsigned {
    ($($number:ty)*) => {$(
        impl Key for $number {
            fn key(self) -> u64 {
                self as u64
            }

            fn of_key(key: u64) -> Self {
                key as Self
            }
        }
    )*};
}
unsigned! { u8 u16 u32 u64 usize }

macro_rules! signed {
    ($($number:ty)*) => {$(
        impl Key for $number {
            fn key(self) -> u64 {
                self as i64 as u64 ^ SIGN
            }

            fn of_key(key: u64) -> Self {
                (key ^ SIGN) as Self
            }
        }
    )*};
}
signed! { i8 i16 i32 i64 isize }

// The order of `total_cmp`: the bits of positive numbers are ordered as integers, those of negative
// ones in reverse.
macro_rules! floats {
    ($($number:ty: $bits:ty, $integer:ty;)*) => {$(
        impl Key for $number {
            fn key(self) -> u64 {
                let bits = self.to_bits() as $integer;
                let flips = (bits >> (<$integer>::BITS - 1)) as $bits >> 1;
                (bits ^ flips as $integer).key()
            }

            fn of_key(key: u64) -> Self {
                let ordered = <$integer>::of_key(key);
                let flips = (ordered >> (<$integer>::BITS - 1)) as $bits >> 1;
                Self::from_bits((ordered ^ flips as $integer) as $bits)
            }
        }
    )*};
}
floats! { f32: u32, i32; f64: u64, i64; }

impl fmt::Debug for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Truth")
    }
}

impl<T> fmt::Debug for At<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("At")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    /// Checks that keys are in the order of the values, and give these back.
    fn are_in_order<T: Key + Debug>(values: &[T]) {
        let keys: Vec<u64> = values.iter().map(|value| value.key()).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "{values:?}");
        let back: Vec<T> = keys.into_iter().map(T::of_key).collect();
        assert_eq!(format!("{back:?}"), format!("{values:?}"));
    }

    #[test]
    fn keys_have_the_order_of_numbers() {
        are_in_order(&[0u8, 1, 127, 128, 255]);
        are_in_order(&[0, 1, usize::MAX]);
        are_in_order(&[i8::MIN, -1, 0, 1, i8::MAX]);
        are_in_order(&[i64::MIN, -1, 0, 1, i64::MAX]);
        are_in_order(&[
            f32::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            1e-40,
            2.0,
            f32::INFINITY,
        ]);
        are_in_order(&[f64::NEG_INFINITY, -2.0, -0.0, 0.0, 5e-324, 3.0, f64::MAX]);
        are_in_order(&[f64::INFINITY, f64::NAN]);
        are_in_order(&[-f64::NAN, f64::NEG_INFINITY]);
    }
}
