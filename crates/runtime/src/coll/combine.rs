//! The operators of reductions and scans, which combine two arrays element by element.
//!
//! Collectives transfer bytes and know no types, so they are given an operator as a [`Combine`]:
//! the size of an element, and a function over whole arrays, so that the call costs little. The
//! function has the C calling convention, because `long double` arithmetic has to be written in C.
//!
//! All PEs must get the same result of a reduction, although they may combine the operands in
//! different orders. So all operators are commutative, and all but floating-point SUM and PROD are
//! associative to the last bit: integer arithmetic wraps; MAX and MIN of floating-point numbers
//! order -0.0 before +0.0 and return a quiet NaN if one operand is a NaN.
#![allow(unsafe_code)]

mod float16;

pub use float16::{BFloat16, Float16};

use bytemuck::{Pod, Zeroable};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::mem::{Baseline, Element, Lanes, OneLane};

/// Stores `left[i] op right[i]` in `dest[i]` for every i below `nelems`.
///
/// # Safety
/// `left` and `right` are readable and `dest` is writable for `nelems` elements. `dest`
/// equals `left` or `right` or is disjoint from them.
pub type CombineFunction = unsafe extern "C" fn(
    dest: *mut c_void,
    left: *const c_void,
    right: *const c_void,
    nelems: usize,
);

/// An operator of a reduction or scan for one element type (OpenSHMEM 1.6, 9.10.9 and 9.10.10).
#[derive(Clone, Copy, Debug)]
pub struct Combine {
    elem_bytes: usize,
    f: CombineFunction,
    /// The bytes of the element that changes no other one, which the first member of an exclusive
    /// scan gets.
    identity: [u8; LARGEST],
}

/// The size of the largest element, a `long double _Complex`.
const LARGEST: usize = 32;

impl Combine {
    /// Creates an operator whose function is written in another language. Its identity has no bytes
    /// but zeros.
    ///
    /// # Safety
    /// `f` accesses only the given elements, of `elem_bytes` bytes each, at any alignment, and
    /// accepts every bit pattern as an element.
    pub const unsafe fn new(elem_bytes: usize, f: CombineFunction) -> Combine {
        Combine {
            elem_bytes,
            f,
            identity: [0; LARGEST],
        }
    }

    /// Returns the operator with the identity that has these bytes.
    pub const fn with_identity<const N: usize>(mut self, bytes: [u8; N]) -> Combine {
        const { assert!(N <= LARGEST) };
        self.identity.split_at_mut(N).0.copy_from_slice(&bytes);
        self
    }

    /// Returns the size of an element in bytes.
    pub(crate) fn elem_bytes(&self) -> usize {
        self.elem_bytes
    }

    /// Returns the operator of the bitwise AND.
    pub const fn and<T: Bits>() -> Self {
        Self::with::<T, And>()
    }

    /// Returns the operator of the bitwise OR.
    pub const fn or<T: Bits>() -> Self {
        Self::with::<T, Or>()
    }

    /// Returns the operator of the bitwise exclusive OR.
    pub const fn xor<T: Bits>() -> Self {
        Self::with::<T, Xor>()
    }

    /// Returns the operator of the maximum; for floating-point types see [`Ordered::max`].
    pub const fn max<T: Ordered>() -> Self {
        Self::with::<T, Max>()
    }

    /// Returns the operator of the minimum; for floating-point types see [`Ordered::min`].
    pub const fn min<T: Ordered>() -> Self {
        Self::with::<T, Min>()
    }

    /// Returns the operator of the addition; integers wrap.
    pub const fn sum<T: Arithmetic>() -> Self {
        Self::with::<T, Sum>()
    }

    /// Returns the operator of the multiplication; integers wrap.
    pub const fn prod<T: Arithmetic>() -> Self {
        Self::with::<T, Prod>()
    }

    const fn with<T: Element, O: Operator<T>>() -> Self {
        const { assert!(size_of::<T>() <= LARGEST) };
        let mut identity = [0; LARGEST];
        // SAFETY: the array has room for an element, as asserted, which has no padding.
        unsafe { (&raw mut identity).cast::<T>().write_unaligned(O::IDENTITY) };
        Self {
            elem_bytes: size_of::<T>(),
            f: combine::<T, O>,
            identity,
        }
    }

    /// Stores the element that changes no other one in each element of `dest`.
    pub(crate) fn fill_with_identity(&self, dest: SymmetricRange) {
        let mut identity = self.identity.map(MaybeUninit::new);
        let element = SymmetricRange::of_private(&mut identity).part(0, self.elem_bytes);
        for offset in (0..dest.nbytes()).step_by(self.elem_bytes) {
            element.copy_here(dest.part(offset, self.elem_bytes));
        }
    }

    /// Combines `left` and `right` element by element into `dest`, which may be one of them.
    ///
    /// # Panics
    /// When an operand is shorter than `dest`.
    pub(crate) fn apply(&self, dest: SymmetricRange, left: SymmetricRange, right: SymmetricRange) {
        let nbytes = dest.nbytes();
        assert!(
            left.nbytes() >= nbytes && right.nbytes() >= nbytes,
            "operands too short"
        );
        let nelems = nbytes / self.elem_bytes;
        let dest = dest.start().cast();
        let left = left.start().cast();
        let right = right.start().cast();
        // SAFETY: the assertion shows that each range has that many elements; `dest` is one of the
        // operands or does not overlap them, as the callers ensure.
        unsafe { (self.f)(dest, left, right, nelems) }
    }
}

/// Implemented in this file alone, for types of which every bit pattern is a value.
pub trait Sealed {}

/// Element types of AND, OR and XOR: the integers. Every bit pattern is a value.
#[diagnostic::on_unimplemented(
    message = "the operators `And`, `Or` and `Xor` do not combine elements of type `{Self}`",
    label = "not an integer",
    note = "they combine integers of 1, 2, 4 and 8 bytes"
)]
pub trait Bits: Element + Sealed {
    /// No bit is set.
    const NONE: Self;
    /// All bits are set.
    const ALL: Self;
    /// `self & other`
    fn and(self, other: Self) -> Self;
    /// `self | other`
    fn or(self, other: Self) -> Self;
    /// `self ^ other`
    fn xor(self, other: Self) -> Self;
}

/// Element types of MAX and MIN: integers, real numbers and complex numbers. Every bit pattern is a
/// value.
///
/// An old manual lists MAX of complex numbers without a definition. Here they are ordered by their
/// real parts and, where these are equal, by their imaginary parts; -0.0 is less than +0.0, and a
/// NaN in either part makes both parts of the result NaN.
#[diagnostic::on_unimplemented(
    message = "the operators `Max` and `Min` do not combine elements of type `{Self}`",
    label = "not a number with an order",
    note = "they combine integers of 1, 2, 4 and 8 bytes, `f32` and `f64`"
)]
pub trait Ordered: Element + Sealed {
    /// The least value.
    const LEAST: Self;
    /// The greatest value.
    const GREATEST: Self;
    /// Returns the greater value. Floating point: NaN if either is NaN; +0.0 is greater than -0.0.
    fn max(self, other: Self) -> Self;
    /// Returns the lesser value. Floating point: NaN if either is NaN; -0.0 is less than +0.0.
    fn min(self, other: Self) -> Self;
}

/// Element types of SUM and PROD. Every bit pattern is a value.
#[diagnostic::on_unimplemented(
    message = "the operators `Sum` and `Prod`, and scans, do not combine elements of type `{Self}`",
    label = "not a number",
    note = "they combine integers of 1, 2, 4 and 8 bytes, `f32`, `f64` and `Complex` of these"
)]
pub trait Arithmetic: Element + Sealed {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
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

/// A value and the place where it is, as MAXLOC and MINLOC of MPI combine them: of equal values the
/// lowest place.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Located {
    /// A number in the order of the values.
    pub key: u64,
    /// The place.
    pub place: u64,
}

// SAFETY: two words of the same size have no padding between them.
unsafe impl Element for Located {}
impl Sealed for Located {}

impl Ordered for Located {
    const LEAST: Self = Self {
        key: u64::MIN,
        place: u64::MAX,
    };
    const GREATEST: Self = Self {
        key: u64::MAX,
        place: u64::MAX,
    };

    fn max(self, other: Self) -> Self {
        let is_first = (self.key, other.place) >= (other.key, self.place);
        if is_first { self } else { other }
    }

    fn min(self, other: Self) -> Self {
        let is_first = (self.key, self.place) <= (other.key, other.place);
        if is_first { self } else { other }
    }
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Sealed for $int {}
        impl Bits for $int {
            const NONE: Self = 0;
            const ALL: Self = !0;
            fn and(self, other: Self) -> Self { self & other }
            fn or(self, other: Self) -> Self { self | other }
            fn xor(self, other: Self) -> Self { self ^ other }
        }
        impl Ordered for $int {
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
            fn max(self, other: Self) -> Self { Ord::max(self, other) }
            fn min(self, other: Self) -> Self { Ord::min(self, other) }
        }
        impl Arithmetic for $int {
            const ZERO: Self = 0;
            const ONE: Self = 1;
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
        // Without branches, so that loops are vectorized.
        impl Ordered for $float {
            const LEAST: Self = Self::NEG_INFINITY;
            const GREATEST: Self = Self::INFINITY;
            fn max(self, other: Self) -> Self {
                // If no operand is a NaN, the two values differ only if the operands are zeros of
                // different signs; the AND clears the sign bit.
                let greater = if self > other { self } else { other };
                let or_equal = if other > self { other } else { self };
                let greater = $float::from_bits(greater.to_bits() & or_equal.to_bits());
                if self.is_nan() | other.is_nan() { $float::NAN } else { greater }
            }
            fn min(self, other: Self) -> Self {
                let lesser = if self < other { self } else { other };
                let or_equal = if other < self { other } else { self };
                let lesser = $float::from_bits(lesser.to_bits() | or_equal.to_bits());
                if self.is_nan() | other.is_nan() { $float::NAN } else { lesser }
            }
        }
        impl Arithmetic for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn add(self, other: Self) -> Self { self + other }
            fn mul(self, other: Self) -> Self { self * other }
        }
        impl Complex<$float> {
            const NAN: Self = Self { re: $float::NAN, im: $float::NAN };
            fn is_nan(self) -> bool {
                self.re.is_nan() | self.im.is_nan()
            }
            /// Returns true if `self` is less than `other`; neither is NaN.
            fn is_less_than(self, other: Self) -> bool {
                // For numbers of 8 bytes a branch is faster than a vector of two of them; loops
                // over smaller numbers are vectorized.
                if size_of::<$float>() == 8 && self.re != other.re {
                    return self.re < other.re;
                }
                self.re.total_cmp(&other.re).then(self.im.total_cmp(&other.im)).is_lt()
            }
        }
        impl Ordered for Complex<$float> {
            const LEAST: Self = Self { re: $float::NEG_INFINITY, im: $float::NEG_INFINITY };
            const GREATEST: Self = Self { re: $float::INFINITY, im: $float::INFINITY };
            fn max(self, other: Self) -> Self {
                if self.is_nan() | other.is_nan() {
                    Self::NAN
                } else if self.is_less_than(other) {
                    other
                } else {
                    self
                }
            }
            fn min(self, other: Self) -> Self {
                if self.is_nan() | other.is_nan() {
                    Self::NAN
                } else if self.is_less_than(other) {
                    self
                } else {
                    other
                }
            }
        }
        impl Arithmetic for Complex<$float> {
            const ZERO: Self = Self { re: 0.0, im: 0.0 };
            const ONE: Self = Self { re: 1.0, im: 0.0 };
            fn add(self, other: Self) -> Self {
                Self { re: self.re + other.re, im: self.im + other.im }
            }
            /// Returns the textbook product, without the recovery of infinities of C's Annex G.
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

// SAFETY: two numbers of the same type have no padding between them.
unsafe impl<T: Element> Element for Complex<T> {
    const PADDED: bool = T::PADDED;
}
// SAFETY: zero is a number in both parts.
unsafe impl<T: Zeroable> Zeroable for Complex<T> {}
// SAFETY: two plain numbers of the same type, laid out as in C, so no byte is padding.
unsafe impl<T: Pod> Pod for Complex<T> {}

/// An operator on two elements.
trait Operator<T> {
    /// The element that changes no other one.
    const IDENTITY: T;
    fn apply(left: T, right: T) -> T;
}

macro_rules! operators {
    ($($operator:ident $kind:ident $method:ident $identity:ident;)*) => {$(
        struct $operator;
        impl<T: $kind> Operator<T> for $operator {
            const IDENTITY: T = T::$identity;
            #[inline(always)]
            fn apply(left: T, right: T) -> T { left.$method(right) }
        }
    )*};
}
operators! {
    And Bits and ALL;
    Or Bits or NONE;
    Xor Bits xor NONE;
    Max Ordered max LEAST;
    Min Ordered min GREATEST;
    Sum Arithmetic add ZERO;
    Prod Arithmetic mul ONE;
}

/// The function of a [`Combine`].
///
/// # Safety
/// As [`CombineFunction`].
unsafe extern "C" fn combine<T: Element, O: Operator<T>>(
    dest: *mut c_void,
    left: *const c_void,
    right: *const c_void,
    nelems: usize,
) {
    let dest = dest.cast::<T>();
    let left = left.cast::<T>();
    let right = right.cast::<T>();
    if nelems < const { MANY / size_of::<T>() } {
        // SAFETY: the caller keeps the contract of `CombineFunction`.
        return unsafe { combine_few::<T, O>(dest, left, right, nelems) };
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: this CPU has AVX2, and the caller keeps the contract of `CombineFunction`.
        return unsafe { combine_avx2::<T, O>(dest, left, right, nelems) };
    }
    // SAFETY: the caller keeps the contract of `CombineFunction`, and every processor has these
    // vectors.
    unsafe { combine_many::<T, O, Baseline>(dest, left, right, nelems) }
}

/// The number of bytes from which it is faster to combine several vectors at a time, and wider ones
/// if this CPU has AVX2. SSE2, which every x86-64 has, cannot compare integers of 8 bytes.
const MANY: usize = 128;

/// Combines vectors with AVX2 instructions.
///
/// # Safety
/// As [`CombineFunction`], and the CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn combine_avx2<T: Element, O: Operator<T>>(
    dest: *mut T,
    left: *const T,
    right: *const T,
    nelems: usize,
) {
    // SAFETY: the caller keeps the contract of `CombineFunction`, and promises AVX2.
    unsafe { combine_many::<T, O, std::arch::x86_64::__m256d>(dest, left, right, nelems) }
}

/// Combines four vectors at a time, then one at a time, then the remaining elements.
///
/// # Safety
/// As [`CombineFunction`], and the processor has the vectors.
#[inline(always)]
unsafe fn combine_many<T: Element, O: Operator<T>, V: Lanes>(
    dest: *mut T,
    left: *const T,
    right: *const T,
    nelems: usize,
) where
    [V; 4]: Lanes,
{
    // SAFETY: the caller's contract is the callee's; a processor that has a vector has four.
    let done = unsafe { combine_by::<T, O, [V; 4]>(dest, left, right, 0, nelems) };
    // SAFETY: the caller's contract is the callee's, and `done` is not above `nelems`.
    let done = unsafe { combine_by::<T, O, V>(dest, left, right, done, nelems) };

    if done < nelems {
        let dest = dest.wrapping_add(done);
        let left = left.wrapping_add(done);
        let right = right.wrapping_add(done);
        // SAFETY: the pointers lead to the last `nelems - done` elements of arrays for which the
        // caller keeps the contract of `CombineFunction`.
        unsafe { combine_few::<T, O>(dest, left, right, nelems - done) }
    }
}

/// Combines one vector at a time, then single elements. Never inlined: its SSE instructions would
/// be mixed with those of AVX2, which makes both slow.
///
/// # Safety
/// As [`CombineFunction`].
#[inline(never)]
unsafe fn combine_few<T: Element, O: Operator<T>>(
    dest: *mut T,
    left: *const T,
    right: *const T,
    nelems: usize,
) {
    // SAFETY: the caller keeps the contract of `CombineFunction`, and every processor has these
    // vectors.
    let done = unsafe { combine_by::<T, O, Baseline>(dest, left, right, 0, nelems) };
    if const { size_of::<T>() < size_of::<Baseline>() } {
        // SAFETY: as above, and `done` is not above `nelems`.
        unsafe { combine_by::<T, O, OneLane<T>>(dest, left, right, done, nelems) };
    }
}

/// Combines the elements from `first` on as long as enough are left to fill a `V`. Returns the
/// index of the first element that is left. Threads and peers of an incorrect program may write to
/// the operands meanwhile, so they are loaded and stored as `transport::mem` describes.
///
/// # Safety
/// As [`CombineFunction`], `first` is at most `nelems`, and the processor has the vectors.
#[inline(always)]
unsafe fn combine_by<T: Element, O: Operator<T>, V: Lanes>(
    dest: *mut T,
    left: *const T,
    right: *const T,
    first: usize,
    nelems: usize,
) -> usize {
    let at_once = const { size_of::<V>() / size_of::<T>() };
    let end = first + (nelems - first) / at_once * at_once;
    for i in (first..end).step_by(at_once) {
        // SAFETY: the vector is the elements `i..i + at_once` of `left`, which are below `nelems`,
        // so the caller promises that they can be read.
        let mut result = unsafe { V::load(left.wrapping_add(i).cast()) };
        // SAFETY: the vector is the same elements of `right`, which the caller promises, too.
        let right = unsafe { V::load(right.wrapping_add(i).cast()) };

        let results = (&raw mut result).cast::<T>();
        let right = (&raw const right).cast::<T>();
        for lane in 0..at_once {
            // SAFETY: `lane` is below the number of elements in `result`, which is initialized, and
            // every bit pattern is a value of `T`.
            let l = unsafe { results.wrapping_add(lane).read_unaligned() };
            // SAFETY: as for `result`, since both are vectors of the same type.
            let r = unsafe { right.wrapping_add(lane).read_unaligned() };
            // SAFETY: the element of `result` that was read above, which this function owns.
            unsafe { results.wrapping_add(lane).write_unaligned(O::apply(l, r)) };
        }

        // SAFETY: the vector is the same elements of `dest`, which the caller promises can be
        // written.
        unsafe { result.store(dest.wrapping_add(i).cast()) };
    }
    end
}

#[cfg(test)]
mod tests;
