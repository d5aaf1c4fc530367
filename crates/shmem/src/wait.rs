//! Waiting for and testing elements of this PE that other PEs change (OpenSHMEM 1.6, §9.11).
#![allow(unsafe_code)]

use crate::context::{Context, ContextKind};
use crate::element::{Atomic, AtomicValue, Comparable, Element};
use crate::symmetric::view::AsElement;
use crate::thread_level::ThreadLevel;
use core::ffi::c_int;
use rushmem_runtime::constants::{
    SHMEM_CMP_EQ, SHMEM_CMP_GE, SHMEM_CMP_GT, SHMEM_CMP_LE, SHMEM_CMP_LT, SHMEM_CMP_NE,
};
use rushmem_runtime::wait;

/// The comparison of an element with a value (the constants `SHMEM_CMP_`, §9.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Cmp {
    #[inline(always)]
    pub(crate) fn constant(self) -> c_int {
        match self {
            Cmp::Eq => SHMEM_CMP_EQ,
            Cmp::Ne => SHMEM_CMP_NE,
            Cmp::Gt => SHMEM_CMP_GT,
            Cmp::Ge => SHMEM_CMP_GE,
            Cmp::Lt => SHMEM_CMP_LT,
            Cmp::Le => SHMEM_CMP_LE,
        }
    }

    pub(crate) fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Cmp::Eq => left == right,
            Cmp::Ne => left != right,
            Cmp::Gt => left > right,
            Cmp::Ge => left >= right,
            Cmp::Lt => left < right,
            Cmp::Le => left <= right,
        }
    }
}

/// An element that a PE can wait for (§9.11): an integer, or an [`Atomic`] one.
pub trait Awaited: Element + sealed::Sealed {
    /// The value with which it is compared.
    type Value: Comparable;
}

mod sealed {
    pub trait Sealed {}
}

impl<T: Comparable> sealed::Sealed for T {}
impl<T: Comparable> Awaited for T {
    type Value = T;
}
impl<T: Comparable + AtomicValue> sealed::Sealed for Atomic<T> {}
impl<T: Comparable + AtomicValue> Awaited for Atomic<T> {
    type Value = T;
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Waits until this PE's element satisfies the comparison (`shmem_wait_until`, §9.11.1). Writes
    /// that the writer of the element has ordered before it are then visible.
    #[doc(alias = "shmem_wait_until")]
    pub fn wait_until<'a, T: Awaited>(
        &self,
        element: impl AsElement<'a, T>,
        cmp: Cmp,
        value: T::Value,
    ) {
        let at = element.into().as_ptr().cast::<T::Value>();
        // SAFETY: an aligned element of a symmetric object.
        unsafe { wait::wait_until(call!("wait_until"), at, cmp.constant(), value) }
    }

    /// Returns true if this PE's element satisfies the comparison now (`shmem_test`, §9.11.8).
    #[doc(alias = "shmem_test")]
    pub fn test<'a, T: Awaited>(
        &self,
        element: impl AsElement<'a, T>,
        cmp: Cmp,
        value: T::Value,
    ) -> bool {
        let at = element.into().as_ptr().cast::<T::Value>();
        // SAFETY: an aligned element of a symmetric object.
        unsafe { wait::test(call!("test"), at, cmp.constant(), value) != 0 }
    }
}
