//! Complex numbers, as sums and products combine them (OpenSHMEM 1.6, table 11).
#![allow(unsafe_code)]

use bytemuck::{Pod, Zeroable};

/// A complex number, as sums and products combine it (§9.10.9, table 11). It is laid out as C's
/// `float _Complex` and `double _Complex`, and as `num_complex::Complex`, into which the parts go.
///
/// ```
/// use shmem::Complex;
///
/// let shmem = shmem::init();
/// let i = Complex { re: 0.0, im: 1.0 };
/// let sum = shmem.world().all_reduce(i, shmem::Sum);
/// assert_eq!(sum, Complex { re: 0.0, im: shmem.n_pes() as f64 });
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

// SAFETY: zero is a value of `T`, so it is one of both parts.
unsafe impl<T: Zeroable> Zeroable for Complex<T> {}
// SAFETY: a `Complex` is two plain numbers of the same type, laid out as in C, so no byte is
// padding, and any bits are a value.
unsafe impl<T: Pod> Pod for Complex<T> {}
