//! The elements of symmetric memory: plain data, and cells that only atomic operations or signals
//! change.
#![allow(unsafe_code)]

use bytemuck::Pod;
use rushmem_runtime::rma;
use std::fmt;

/// Names for the runtime's traits of words that no program can use, so that no program implements
/// the public traits below.
mod sealed {
    use rushmem_runtime::amo::{AddAmo, Amo, ArithmeticAmo, BitwiseAmo};

    pub trait IsElement {}

    pub trait Value: Amo {}
    impl<T: Amo> Value for T {}

    pub trait Number: AddAmo {
        /// Returns the number whose addition subtracts this one; that of an integer wraps.
        fn negative(self) -> Self;
    }

    pub trait Integer: ArithmeticAmo + BitwiseAmo {}
    impl<T: ArithmeticAmo + BitwiseAmo> Integer for T {}

    macro_rules! numbers {
        ($($number:ty: $negative:path;)*) => {$(
            impl Number for $number {
                #[inline(always)]
                fn negative(self) -> Self {
                    $negative(self)
                }
            }
        )*};
    }
    numbers! {
        i32: i32::wrapping_neg;
        u32: u32::wrapping_neg;
        i64: i64::wrapping_neg;
        u64: u64::wrapping_neg;
        isize: isize::wrapping_neg;
        usize: usize::wrapping_neg;
        f32: std::ops::Neg::neg;
        f64: std::ops::Neg::neg;
    }
}
pub(crate) use sealed::IsElement;

/// An element of symmetric memory (§4): every [`Pod`] type, [`Atomic`], [`Signal`] and
/// [`Lock`](crate::Lock).
///
/// A structure of plain data becomes one by a derive macro, which implements
/// [`Zeroable`](bytemuck::Zeroable) and [`Pod`]:
///
/// ```
/// #[derive(Clone, Copy, shmem::Element)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     mass: f64,
/// }
///
/// let shmem = shmem::init();
/// let particles = shmem.array::<Particle>(100);
/// particles[0].store(Particle { position: [1.0, 2.0, 3.0], mass: 4.0 });
/// assert_eq!(particles[0].load().mass, 4.0);
/// ```
///
/// The macro refuses padding, whose bytes have no value; references and types such as `bool`, of
/// which not all bits are values; enums and structures with parameters.
///
/// Where the crate has another name than `shmem`, or another crate exports it, an attribute of the
/// structure names the path: `#[shmem(crate = "other::shmem")]`.
///
/// # Safety
/// All bit patterns are values, zero is one of them, and no byte is padding.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of elements of symmetric memory",
    label = "not plain data",
    note = "elements are plain data without padding, references and types with invalid bit patterns; for a structure of such fields: \
            #[derive(Clone, Copy, shmem::Element)] #[repr(C)]"
)]
pub unsafe trait Element: IsElement + Copy + 'static {}

impl<T: Pod> IsElement for T {}

// SAFETY: a type is `Pod` only if all bit patterns, zero included, are values of it, and none of
// its bytes is padding.
unsafe impl<T: Pod> Element for T {}

/// Elements that a PE loads and stores itself: every [`Pod`] type, so neither [`Atomic`] nor
/// [`Signal`].
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` are not loaded, stored or lent as plain data",
    label = "not plain data",
    note = "an `Atomic` has `store`, `fetch_add` and others of `x.on(peer)`, also for that of this PE, `x.on(shmem.me())`; \
            a `Signal` has `set` and `add` there, and is read by `shmem.signal(&x)`"
)]
pub trait PlainData: Element + Pod {}

#[diagnostic::do_not_recommend]
impl<T: Pod> PlainData for T {}

/// A field of a structure that derives [`Element`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` cannot be in an element of symmetric memory",
    label = "not plain data",
    note = "fields are numbers, arrays of numbers, and structures that derive `shmem::Element`: any bits are a value of them"
)]
pub trait PlainField: Pod {}

#[diagnostic::do_not_recommend]
impl<T: Pod> PlainField for T {}

/// An integer, or a floating-point number, that only atomic operations access (OpenSHMEM 1.6,
/// §9.7), since the standard leaves the result undefined if puts and atomic operations access an
/// element at the same time. There are no values of this type outside of symmetric memory.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Atomic<T: AtomicValue>(T);

impl<T: AtomicValue> IsElement for Atomic<T> {}

// SAFETY: an `Atomic` is laid out as its `T`, which is `Pod`, and adds no rule for its values.
unsafe impl<T: AtomicValue> Element for Atomic<T> {}

/// A word that signal operations update (OpenSHMEM 1.6, §9.8). There are no values of this type
/// outside of symmetric memory.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Signal(u64);

impl IsElement for Signal {}

// SAFETY: a `Signal` is laid out as a `u64`, which is `Pod`, and adds no rule for its values.
unsafe impl Element for Signal {}

/// The types of load, store and swap: integers and floating-point numbers of 4 and 8 bytes (§9.7,
/// table 7).
pub trait AtomicValue: Pod + sealed::Value {}

impl<T: Pod + sealed::Value> AtomicValue for T {}

/// The types of atomic sums: those of [`AtomicValue`]. The standard has no sums of floating-point
/// numbers.
pub trait AtomicNumber: AtomicValue + sealed::Number {}

impl<T: AtomicValue + sealed::Number> AtomicNumber for T {}

/// The types of all atomic operations: integers of 4 and 8 bytes (§9.7, tables 6 and 8, whose
/// `int32_t` and `int64_t` include the signed ones).
#[diagnostic::on_unimplemented(
    message = "this atomic operation does not exist on elements of type `{Self}`",
    label = "not an integer of 4 or 8 bytes",
    note = "floating-point numbers have load, store, swap, add and fetch_add alone"
)]
pub trait AtomicInteger: AtomicNumber + Ord + sealed::Integer {}

impl<T: AtomicNumber + Ord + sealed::Integer> AtomicInteger for T {}

/// An element as the runtime's type of elements. It exists since a trait of the runtime cannot be
/// implemented here for every [`Element`] itself.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Plain<T>(pub(crate) T);

// SAFETY: a `Plain` is laid out as its `T`, and no byte of an `Element` is padding.
unsafe impl<T: Element> rma::Element for Plain<T> {}

// Formats the types only: the values are in symmetric memory, where operations read them.

impl<T: AtomicValue> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Atomic(..)")
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signal(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Lock;

    #[test]
    fn cells_are_shown_by_their_types() {
        // SAFETY: zero is a value of every element.
        let lock: Lock = unsafe { std::mem::zeroed() };
        let cells = (Atomic(17u32), Signal(3), lock);
        assert_eq!(format!("{cells:?}"), "(Atomic(..), Signal(..), Lock(..))");
    }
}
