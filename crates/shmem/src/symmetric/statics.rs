//! Static variables as symmetric objects.
#![allow(unsafe_code)]

use crate::element::{Symmetric, fail};
use crate::job::Shmem;
use crate::symmetric::view::{SymRef, SymSlice};
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;
use rushmem_runtime::setup;
use std::cell::UnsafeCell;
use std::fmt;

/// A static variable of the program, which every PE has (OpenSHMEM 1.6, §4). A handle of the library is needed to
/// access it.
///
/// ```standalone_crate
/// use shmem::SymStatic;
/// static COUNTS: SymStatic<[u64; 8]> = SymStatic::new([0; 8]);
///
/// let shmem = shmem::init();
/// shmem.put(COUNTS.elements(&shmem), &[1; 8], 0);
/// ```
///
/// Variables of shared libraries are not symmetric, nor is a leaked box: the first access of one ends the job with a message.
#[repr(transparent)]
pub struct SymStatic<T>(UnsafeCell<T>);

// SAFETY: there are only those of symmetric elements and of arrays of them. They are accessed by copies of plain data alone, which any
// thread may make at any time.
unsafe impl<T> Sync for SymStatic<T> {}

impl<T: Pod> SymStatic<T> {
    /// A variable with this value on each PE.
    pub const fn new(value: T) -> SymStatic<T> {
        SymStatic(UnsafeCell::new(value))
    }
}

impl<T: Symmetric> SymStatic<T> {
    /// A variable that is zero on each PE, such as an [`Atomic`](crate::Atomic) or a [`Signal`](crate::Signal).
    pub const fn zeroed() -> SymStatic<T> {
        // SAFETY: zero is a value of every `Symmetric`.
        SymStatic(UnsafeCell::new(unsafe { std::mem::zeroed() }))
    }

    /// The variable as one element.
    #[inline]
    pub fn element<'s, L: ThreadLevel>(&'static self, shmem: &'s Shmem<L>) -> SymRef<'s, T> {
        self.check(shmem);
        // SAFETY: a static variable, which is symmetric, as was just checked, and never in an epoch.
        unsafe { SymRef::new(self.0.get()) }
    }
}

impl<T> SymStatic<T> {
    /// Where this PE's copy is.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.get()
    }

    fn check<L: ThreadLevel>(&'static self, shmem: &Shmem<L>) {
        let at = self.0.get();
        if setup::addr_accessible(
            rushmem_runtime::Call(&"SymStatic"),
            at.cast(),
            shmem.my_pe() as i32,
        ) == 0
        {
            fail!(
                rushmem_runtime::Call(&"SymStatic"),
                "the variable at {at:p} is not symmetric: it is not a static variable of the program itself"
            );
        }
    }
}

impl<T: Symmetric, const N: usize> SymStatic<[T; N]> {
    /// An array whose elements are zero on each PE, such as [`Atomic`](crate::Atomic) ones.
    ///
    /// ```standalone_crate
    /// use shmem::{Atomic, SymStatic};
    /// static COUNTERS: SymStatic<[Atomic<u64>; 8]> = SymStatic::zeros();
    ///
    /// let shmem = shmem::init();
    /// shmem.inc(COUNTERS.elements(&shmem).at(3), 0);
    /// ```
    pub const fn zeros() -> SymStatic<[T; N]> {
        // SAFETY: zero is a value of every `Symmetric`.
        SymStatic(UnsafeCell::new(unsafe { std::mem::zeroed() }))
    }

    /// The elements of an array.
    #[inline]
    pub fn elements<'s, L: ThreadLevel>(&'static self, shmem: &'s Shmem<L>) -> SymSlice<'s, T> {
        self.check(shmem);
        // SAFETY: as above, `N` elements.
        unsafe { SymSlice::new(self.0.get().cast(), N) }
    }
}

impl<T> fmt::Debug for SymStatic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymStatic({:p})", self.0.get())
    }
}
