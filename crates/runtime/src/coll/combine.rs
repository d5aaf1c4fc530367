//! The operators of reductions and scans: what they do to two arrays of elements.
//!
//! Collectives move bytes and know no types, so an operator reaches them as a [`Combine`]: an
//! element size and one function over whole arrays, whose call costs nothing beside the array. The function is
//! one of C, because `long double` arithmetic has to be written in C.
//!
//! The result of a reduction must not depend on the shape of its tree, or PEs would disagree. All
//! operators here are commutative, and all but floating-point SUM and PROD are associative to the
//! last bit: integer arithmetic wraps, MAX and MIN of floating-point numbers order -0.0 before +0.0
//! and yield the quiet NaN as soon as one operand is a NaN.
//!
//! This file must never know of PEs, teams or addresses on other PEs.
#![allow(unsafe_code)]

use crate::memory::range::SymmetricRange;
use core::ffi::c_void;

/// Stores `left[i] op right[i]` in `dest[i]` for every i below `nelems`.
///
/// # Safety
/// `left` and `right` are readable and `dest` is writable for `nelems` elements, and nobody else writes them meanwhile. `dest`
/// equals `left` or `right` or is disjoint from them.
pub type Function = unsafe extern "C" fn(
    dest: *mut c_void,
    left: *const c_void,
    right: *const c_void,
    nelems: usize,
);

/// An operator of a reduction or scan for one element type (OpenSHMEM 1.6, 9.10.9 and 9.10.10).
#[derive(Clone, Copy, Debug)]
pub struct Combine {
    /// Size of an element in bytes.
    elem_bytes: usize,
    f: Function,
}

impl Combine {
    /// An operator whose function is another language's.
    ///
    /// # Safety
    /// `f` accesses elements of `elem_bytes` bytes and nothing else, asks for no alignment, and every bit pattern is an element.
    pub const unsafe fn new(elem_bytes: usize, f: Function) -> Combine {
        Combine { elem_bytes, f }
    }

    /// Bytes of an element.
    pub(crate) fn elem_bytes(&self) -> usize {
        self.elem_bytes
    }

    /// Bitwise AND.
    pub const fn and<T: Bits>() -> Self {
        Self::with::<T, And>()
    }

    /// Bitwise OR.
    pub const fn or<T: Bits>() -> Self {
        Self::with::<T, Or>()
    }

    /// Bitwise exclusive OR.
    pub const fn xor<T: Bits>() -> Self {
        Self::with::<T, Xor>()
    }

    /// The greater of two; for floating-point types see [`Ordered::max`].
    pub const fn max<T: Ordered>() -> Self {
        Self::with::<T, Max>()
    }

    /// The lesser of two; for floating-point types see [`Ordered::min`].
    pub const fn min<T: Ordered>() -> Self {
        Self::with::<T, Min>()
    }

    /// Addition; integers wrap.
    pub const fn sum<T: Arithmetic>() -> Self {
        Self::with::<T, Sum>()
    }

    /// Multiplication; integers wrap.
    pub const fn prod<T: Arithmetic>() -> Self {
        Self::with::<T, Prod>()
    }

    const fn with<T: Copy, O: Operator<T>>() -> Self {
        Self { elem_bytes: size_of::<T>(), f: combine::<T, O> }
    }

    /// Combine `left` and `right` element by element into `dest`; it may be one of them.
    ///
    /// # Panics
    /// When an operand is shorter than `dest`.
    pub(crate) fn apply(&self, dest: SymmetricRange, left: SymmetricRange, right: SymmetricRange) {
        let nbytes = dest.nbytes();
        assert!(left.nbytes() >= nbytes && right.nbytes() >= nbytes, "operands too short");
        let (to, left, right) = (dest.start().cast(), left.start().cast(), right.start().cast());
        // SAFETY: symmetric memory of this PE, that many elements each; aligned as the type of the
        // user's arrays, landings to a cache line.
        unsafe { (self.f)(to, left, right, nbytes / self.elem_bytes) }
    }
}

/// Says which types have no bit pattern that is no value; only this file does.
pub trait Sealed {}

/// Element types of AND, OR and XOR: the integers. Every bit pattern is a value.
pub trait Bits: Copy + Sealed {
    /// `self & other`
    fn and(self, other: Self) -> Self;
    /// `self | other`
    fn or(self, other: Self) -> Self;
    /// `self ^ other`
    fn xor(self, other: Self) -> Self;
}

/// Element types of MAX and MIN: integers and real numbers, and complex numbers, for which an old manual
/// lists MAX without saying what it is. Every bit pattern is a value.
///
/// Complex numbers are ordered by their real parts and, where these are equal, by their imaginary parts;
/// -0.0 comes before +0.0, and a NaN in either makes both parts of the result NaN.
pub trait Ordered: Copy + Sealed {
    /// The greater one. Floating point: NaN when either is NaN, and +0.0 is greater than -0.0.
    fn max(self, other: Self) -> Self;
    /// The lesser one. Floating point: NaN when either is NaN, and -0.0 is less than +0.0.
    fn min(self, other: Self) -> Self;
}

/// Element types of SUM and PROD. Every bit pattern is a value.
pub trait Arithmetic: Copy + Sealed {
    /// `self + other`; integers wrap.
    fn add(self, other: Self) -> Self;
    /// `self * other`; integers wrap.
    fn mul(self, other: Self) -> Self;
}

/// A complex number laid out as C's `float _Complex` and `double _Complex`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Complex<T> {
    /// Real part.
    pub re: T,
    /// Imaginary part.
    pub im: T,
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Sealed for $int {}
        impl Bits for $int {
            fn and(self, other: Self) -> Self { self & other }
            fn or(self, other: Self) -> Self { self | other }
            fn xor(self, other: Self) -> Self { self ^ other }
        }
        impl Ordered for $int {
            fn max(self, other: Self) -> Self { Ord::max(self, other) }
            fn min(self, other: Self) -> Self { Ord::min(self, other) }
        }
        impl Arithmetic for $int {
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
    )*};
}
integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! floats {
    ($($float:ident)*) => {$(
        impl Sealed for $float {}
        impl Sealed for Complex<$float> {}
        // Each step is a choice between two values at hand, so that loops over it can be
        // vectorised.
        impl Ordered for $float {
            fn max(self, other: Self) -> Self {
                let greater = if self > other { self } else { other };
                // Equal numbers differ in the sign of zero at most, and + is the clear bit.
                let both = $float::from_bits(self.to_bits() & other.to_bits());
                let greater = if self == other { both } else { greater };
                if self.is_nan() | other.is_nan() { $float::NAN } else { greater }
            }
            fn min(self, other: Self) -> Self {
                let lesser = if self < other { self } else { other };
                let either = $float::from_bits(self.to_bits() | other.to_bits());
                let lesser = if self == other { either } else { lesser };
                if self.is_nan() | other.is_nan() { $float::NAN } else { lesser }
            }
        }
        impl Arithmetic for $float {
            fn add(self, other: Self) -> Self { self + other }
            fn mul(self, other: Self) -> Self { self * other }
        }
        impl Complex<$float> {
            const NAN: Self = Self { re: $float::NAN, im: $float::NAN };
            fn is_nan(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }
            fn is_less_than(self, other: Self) -> bool {
                self.re.total_cmp(&other.re).then(self.im.total_cmp(&other.im)).is_lt()
            }
        }
        impl Ordered for Complex<$float> {
            fn max(self, other: Self) -> Self {
                match self.is_nan() || other.is_nan() {
                    true => Self::NAN,
                    false if self.is_less_than(other) => other,
                    false => self,
                }
            }
            fn min(self, other: Self) -> Self {
                match self.is_nan() || other.is_nan() {
                    true => Self::NAN,
                    false if self.is_less_than(other) => self,
                    false => other,
                }
            }
        }
        impl Arithmetic for Complex<$float> {
            fn add(self, other: Self) -> Self {
                Self { re: self.re + other.re, im: self.im + other.im }
            }
            /// The textbook product: no rescue of infinities as in C's Annex G.
            fn mul(self, other: Self) -> Self {
                Self {
                    re: self.re * other.re - self.im * other.im,
                    im: self.re * other.im + self.im * other.re,
                }
            }
        }
    )*};
}
floats!(f32 f64);

/// An operator on two elements.
trait Operator<T> {
    fn apply(left: T, right: T) -> T;
}

macro_rules! operators {
    ($($operator:ident $kind:ident $method:ident;)*) => {$(
        struct $operator;
        impl<T: $kind> Operator<T> for $operator {
            #[inline(always)]
            fn apply(left: T, right: T) -> T { left.$method(right) }
        }
    )*};
}
operators! {
    And Bits and;
    Or Bits or;
    Xor Bits xor;
    Max Ordered max;
    Min Ordered min;
    Sum Arithmetic add;
    Prod Arithmetic mul;
}

/// The function of a [`Combine`], whose type [`Function`] states what it asks of its caller.
unsafe extern "C" fn combine<T: Copy, O: Operator<T>>(
    dest: *mut c_void,
    left: *const c_void,
    right: *const c_void,
    nelems: usize,
) {
    let (dest, left, right) = (dest.cast::<T>(), left.cast::<T>(), right.cast::<T>());
    // A loop that knows which of its pointers are one and the same can be vectorised.
    if left == dest {
        // SAFETY: the caller's promise.
        unsafe { each::<T, O>(dest, dest, right, nelems) }
    } else if right == dest {
        // SAFETY: the caller's promise.
        unsafe { each::<T, O>(dest, left, dest, nelems) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { each::<T, O>(dest, left, right, nelems) }
    }
}

/// # Safety
/// As [`Function`].
#[inline(always)]
unsafe fn each<T: Copy, O: Operator<T>>(
    dest: *mut T,
    left: *const T,
    right: *const T,
    nelems: usize,
) {
    for i in 0..nelems {
        // SAFETY: element i < nelems of an array that the caller says is readable.
        let l = unsafe { left.wrapping_add(i).read_unaligned() };
        // SAFETY: as above.
        let r = unsafe { right.wrapping_add(i).read_unaligned() };
        // SAFETY: element i < nelems of an array that the caller says is writable.
        unsafe { dest.wrapping_add(i).write_unaligned(O::apply(l, r)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result in a third array, after checking that both in-place forms give the same bytes.
    fn run<T: Copy + PartialEq + core::fmt::Debug>(op: Combine, left: &[T], right: &[T]) -> Vec<T> {
        assert_eq!(op.elem_bytes, size_of::<T>());
        assert_eq!(left.len(), right.len());
        let n = left.len();
        let (l, r) = (left.as_ptr().cast(), right.as_ptr().cast());

        let mut apart = left.to_vec();
        // SAFETY: three arrays of n elements, the first of them our own.
        unsafe { (op.f)(apart.as_mut_ptr().cast(), l, r, n) };

        let mut on_left = left.to_vec();
        let dest = on_left.as_mut_ptr().cast();
        // SAFETY: two arrays of n elements, dest is left.
        unsafe { (op.f)(dest, dest, r, n) };

        let mut on_right = right.to_vec();
        let dest = on_right.as_mut_ptr().cast();
        // SAFETY: two arrays of n elements, dest is right.
        unsafe { (op.f)(dest, l, dest, n) };

        let bytes = |v: &[T]| -> Vec<u8> {
            // SAFETY: the elements are numbers without padding.
            unsafe { core::slice::from_raw_parts(v.as_ptr().cast::<u8>(), size_of_val(v)) }.to_vec()
        };
        assert_eq!(bytes(&apart), bytes(&on_left));
        assert_eq!(bytes(&apart), bytes(&on_right));
        apart
    }

    #[test]
    fn bits() {
        assert_eq!(run::<u8>(Combine::and::<u8>(), &[0b1100], &[0b1010]), [0b1000]);
        assert_eq!(run::<u8>(Combine::or::<u8>(), &[0b1100], &[0b1010]), [0b1110]);
        assert_eq!(run::<u8>(Combine::xor::<u8>(), &[0b1100], &[0b1010]), [0b0110]);
        assert_eq!(run::<i64>(Combine::and::<i64>(), &[-1], &[i64::MIN]), [i64::MIN]);
    }

    #[test]
    fn the_type_decides_the_order() {
        assert_eq!(run::<i8>(Combine::max::<i8>(), &[-1], &[1]), [1]);
        assert_eq!(run::<i8>(Combine::min::<i8>(), &[-1], &[1]), [-1]);
        assert_eq!(run::<u8>(Combine::max::<u8>(), &[0xff], &[1]), [0xff]);
        assert_eq!(run::<u64>(Combine::min::<u64>(), &[u64::MAX], &[1]), [1]);
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(run::<i32>(Combine::sum::<i32>(), &[i32::MAX], &[1]), [i32::MIN]);
        assert_eq!(run::<i16>(Combine::prod::<i16>(), &[i16::MIN], &[-1]), [i16::MIN]);
        assert_eq!(run::<usize>(Combine::sum::<usize>(), &[usize::MAX], &[2]), [1]);
    }

    #[test]
    fn every_element_of_an_odd_number_is_combined() {
        let left: Vec<i32> = (0..37).collect();
        let right: Vec<i32> = (0..37).map(|i| 100 * i).collect();
        let expected: Vec<i32> = (0..37).map(|i| 101 * i).collect();
        assert_eq!(run::<i32>(Combine::sum::<i32>(), &left, &right), expected);
        assert!(run::<i32>(Combine::sum::<i32>(), &[], &[]).is_empty());
    }

    #[test]
    fn no_alignment_is_needed() {
        let mut dest = [0u8; 9];
        let mut left = [0u8; 9];
        let mut right = [0u8; 9];
        left[1..].copy_from_slice(&5u64.to_ne_bytes());
        right[1..].copy_from_slice(&7u64.to_ne_bytes());
        let op = Combine::prod::<u64>();
        let (d, l, r) = (&mut dest[1..], &left[1..], &right[1..]);
        // SAFETY: 8 bytes behind each pointer.
        unsafe { (op.f)(d.as_mut_ptr().cast(), l.as_ptr().cast(), r.as_ptr().cast(), 1) };
        assert_eq!(dest[1..], 35u64.to_ne_bytes());
    }

    /// Compared by bits: NaN is unequal to itself, and -0.0 equal to 0.0.
    #[test]
    fn max_and_min_of_floats_depend_on_no_order() {
        let odd = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0];
        for of in [<f64 as Ordered>::max, <f64 as Ordered>::min] {
            for a in odd {
                for b in odd {
                    assert_eq!(of(a, b).to_bits(), of(b, a).to_bits());
                    for c in odd {
                        assert_eq!(of(of(a, b), c).to_bits(), of(a, of(b, c)).to_bits());
                    }
                }
            }
        }
    }

    #[test]
    fn max_and_min_of_floats() {
        let max =
            |a: f64, b: f64| run::<u64>(Combine::max::<f64>(), &[a.to_bits()], &[b.to_bits()]);
        let min =
            |a: f64, b: f64| run::<u64>(Combine::min::<f64>(), &[a.to_bits()], &[b.to_bits()]);
        assert_eq!(max(0.0, -0.0), [0.0f64.to_bits()]);
        assert_eq!(min(0.0, -0.0), [(-0.0f64).to_bits()]);
        assert_eq!(max(f64::NAN, 1.0), [f64::NAN.to_bits()]);
        assert_eq!(min(1.0, -f64::NAN), [f64::NAN.to_bits()]);
        assert_eq!(max(f64::INFINITY, 1.0), [f64::INFINITY.to_bits()]);
        assert_eq!(run::<f32>(Combine::max::<f32>(), &[2.0, -3.0], &[1.0, -2.0]), [2.0, -2.0]);
        assert_eq!(run::<f32>(Combine::min::<f32>(), &[2.0, -3.0], &[1.0, -2.0]), [1.0, -3.0]);
    }

    #[test]
    fn complex_numbers_are_ordered_by_real_then_imaginary_part() {
        type C = Complex<f64>;
        let c = |re: f64, im: f64| Complex { re, im };
        let larger = [c(2.0, 0.0), c(1.0, 3.0), c(0.0, -9.0), c(1.0, 0.0)];
        let lesser = [c(1.0, 9.0), c(1.0, -3.0), c(-0.0, 9.0), c(1.0, -0.0)];
        assert_eq!(run::<C>(Combine::max::<C>(), &larger, &lesser), larger);
        assert_eq!(run::<C>(Combine::max::<C>(), &lesser, &larger), larger);
        assert_eq!(run::<C>(Combine::min::<C>(), &larger, &lesser), lesser);
        let nan = <C as Ordered>::max(c(5.0, f64::NAN), c(9.0, 9.0));
        assert!(nan.re.is_nan() && nan.im.is_nan());
    }

    #[test]
    fn complex_numbers() {
        let (a, b) = (Complex { re: 1.0, im: 2.0 }, Complex { re: 3.0, im: -4.0 });
        assert_eq!(
            run::<Complex<f64>>(Combine::sum::<Complex<f64>>(), &[a], &[b]),
            [Complex { re: 4.0, im: -2.0 }]
        );
        assert_eq!(
            run::<Complex<f64>>(Combine::prod::<Complex<f64>>(), &[a], &[b]),
            [Complex { re: 11.0, im: 2.0 }]
        );
        let (a, b) = (Complex { re: 0.5f32, im: 1.0 }, Complex { re: 2.0f32, im: 4.0 });
        assert_eq!(
            run::<Complex<f32>>(Combine::prod::<Complex<f32>>(), &[a], &[b]),
            [Complex { re: -3.0, im: 4.0 }]
        );
        assert_eq!(Combine::sum::<Complex<f32>>().elem_bytes, 8);
    }
}
