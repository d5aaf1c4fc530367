//! The operators of reductions (OpenSHMEM 1.6, table 11), as types: a pair of an operator and an
//! element type that does not exist does not compile.

use crate::complex::Complex;
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine elements of type `{T}`",
    note = "And, Or and Xor combine integers, Max and Min also floating-point numbers, Sum and Prod also Complex"
)]
pub trait Operator<T: Pod>: Combines<T> + Copy {}

#[diagnostic::do_not_recommend]
impl<T: Pod, O: Combines<T> + Copy> Operator<T> for O {}

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
