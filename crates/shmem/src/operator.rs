//! The operators of reductions (OpenSHMEM 1.6, table 11), as types: a pair of an operator and an
//! element type that does not exist does not compile.

use crate::complex::Complex;
use crate::reduced::{At, Truth};
use bytemuck::Pod;
use rushmem_runtime::Combine;
use rushmem_runtime::combine::{self, Arithmetic, Bits, Ordered};

mod sealed {
    pub trait Combines<T> {
        /// The operator, in the runtime's form.
        const COMBINE: &'static rushmem_runtime::Combine;
    }
}
pub(crate) use sealed::Combines;

/// An operator that combines elements of type `T` (§9.10.9, table 11).
///
/// The bitwise ones exist for integers, [`Max`] and [`Min`] for integers and floating-point
/// numbers, [`Sum`] and [`Prod`] for these and [`Complex`](crate::Complex). Integers wrap. [`Max`]
/// and [`Min`] are NaN if an operand is, and order -0.0 before 0.0. So the order in which PEs are
/// combined does not change the result, except for sums and products of floating-point numbers.
///
/// [`And`], [`Or`] and [`Xor`] also combine `bool`, and [`MaxLoc`] and [`MinLoc`] pairs of a number
/// and its place. Any other operator is a function: [`Team::all_reduce_with`].
///
/// [`Team::all_reduce_with`]: crate::Team::all_reduce_with
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine elements of type `{T}`",
    note = "And, Or and Xor combine integers and bool, Max and Min integers and floating-point numbers, Sum and Prod also Complex; \
            MaxLoc and MinLoc combine pairs of a number and its place, a usize; all_reduce_with takes a function"
)]
pub trait Operator<T>: Combines<T> + Copy {}

#[diagnostic::do_not_recommend]
impl<T, O: Combines<T> + Copy> Operator<T> for O {}

/// A number that sums and products combine.
trait Number {
    /// The same number in the runtime's type.
    type OfRuntime: Arithmetic;
}

impl<T: Arithmetic> Number for T {
    type OfRuntime = T;
}

impl Number for Complex<f32> {
    type OfRuntime = combine::Complex<f32>;
}

impl Number for Complex<f64> {
    type OfRuntime = combine::Complex<f64>;
}

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident = $of:ident: $($bound:ident)+ => $element:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<T: Pod $(+ $bound)+> Combines<T> for $name {
            const COMBINE: &'static Combine = &Combine::$of::<$element>();
        }
    )*};
}

operators! {
    /// Bitwise and.
    And = and: Bits => T;
    /// Bitwise or.
    Or = or: Bits => T;
    /// Bitwise exclusive or.
    Xor = xor: Bits => T;
    /// The maximum.
    Max = max: Ordered PartialOrd => T;
    /// The minimum.
    Min = min: Ordered PartialOrd => T;
    /// The sum.
    Sum = sum: Number => T::OfRuntime;
    /// The product.
    Prod = prod: Number => T::OfRuntime;
}

/// Makes operators of integers those of `bool`.
macro_rules! logical {
    ($($name:ident = $of:ident;)*) => {$(
        impl Combines<Truth> for $name {
            const COMBINE: &'static Combine = &Combine::$of::<u8>();
        }
    )*};
}
logical! { And = and; Or = or; Xor = xor; }

macro_rules! locating {
    ($($(#[$doc:meta])* $name:ident = $of:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<T> Combines<At<T>> for $name {
            const COMBINE: &'static Combine = &Combine::$of::<combine::Located>();
        }
    )*};
}

locating! {
    /// The maximum of numbers, and its place: combines pairs `(value, place)`, as `MPI_MAXLOC`. Of
    /// equal values it is the lowest place. Floating-point numbers are ordered by
    /// [`total_cmp`](f64::total_cmp), so a NaN is above all numbers.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let me = shmem.my_pe();
    /// let (most, pe) = shmem.world().all_reduce((0.5 * me as f64, me), shmem::MaxLoc);
    /// assert_eq!((most, pe), (0.5 * pe as f64, shmem.n_pes() - 1));
    /// ```
    MaxLoc = max;
    /// The minimum of numbers, and its place: combines pairs `(value, place)`, as `MPI_MINLOC`. Of
    /// equal values it is the lowest place. Floating-point numbers are ordered by
    /// [`total_cmp`](f64::total_cmp).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let least = shmem.world().all_reduce((17, shmem.my_pe()), shmem::MinLoc);
    /// assert_eq!(least, (17, 0));
    /// ```
    MinLoc = min;
}
