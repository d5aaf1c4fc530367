//! Static variables as symmetric objects.
//!
//! Only a static variable is sure to exist on every PE at the corresponding address: a value inside
//! another one, such as a `OnceLock`, need not exist on other PEs. So only the macro
//! [`symmetric!`](crate::symmetric!) makes values, since it makes static variables.
#![allow(unsafe_code)]

use crate::element::Element;
use crate::job::Shmem;
use crate::panics::mistake;
use crate::symmetric::view::{SymRef, SymSlice};
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;
use rushmem_runtime::setup;
use std::cell::UnsafeCell;
use std::fmt;

/// A static variable of the program, which every PE has (OpenSHMEM 1.6, §4). It is declared by
/// [`symmetric!`](crate::symmetric!), and a handle of the library is needed to access it.
///
/// Variables of shared libraries are not symmetric: the first access of one panics.
#[repr(transparent)]
pub struct SymStatic<T>(UnsafeCell<T>);

// SAFETY: the constructors make only variables of symmetric elements and of arrays of these.
// Programs access them only by copies of plain data and by atomic operations, as any thread may at
// any time.
unsafe impl<T> Sync for SymStatic<T> {}

/// Declares static variables that are symmetric. A variable without a value is zero at first.
/// [`Atomic`](crate::Atomic) elements, [`Signal`](crate::Signal)s and [`Lock`](crate::Lock)s are
/// always declared without a value.
///
/// ```standalone_crate
/// use shmem::Atomic;
/// shmem::symmetric! {
///     static NUMBERS: [u64; 8] = [17; 8];
///     static COUNTERS: [Atomic<u64>; 8];
/// }
///
/// let shmem = shmem::init();
/// shmem.put(NUMBERS.elements(&shmem), &[1; 8], 0);
/// shmem.inc(COUNTERS.elements(&shmem).at(3), 0);
/// ```
#[macro_export]
macro_rules! symmetric {
    () => {};
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $len:expr]; $($rest:tt)*) => {
        $(#[$attribute])*
        // SAFETY: it is a static variable.
        $visibility static $name: $crate::SymStatic<[$element; $len]> = unsafe { $crate::SymStatic::zeros() };
        $crate::symmetric! { $($rest)* }
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty; $($rest:tt)*) => {
        $(#[$attribute])*
        // SAFETY: it is a static variable.
        $visibility static $name: $crate::SymStatic<$type> = unsafe { $crate::SymStatic::zeroed() };
        $crate::symmetric! { $($rest)* }
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $(#[$attribute])*
        $visibility static $name: $crate::SymStatic<$type> = {
            // Evaluated outside of the unsafe block, which would let it call unsafe functions.
            const VALUE: $type = $value;
            // SAFETY: it is a static variable.
            unsafe { $crate::SymStatic::new(VALUE) }
        };
        $crate::symmetric! { $($rest)* }
    };
}

impl<T: Pod> SymStatic<T> {
    /// # Safety
    /// It is the value of a static variable.
    #[doc(hidden)]
    pub const unsafe fn new(value: T) -> SymStatic<T> {
        SymStatic(UnsafeCell::new(value))
    }
}

impl<T: Element> SymStatic<T> {
    /// # Safety
    /// It is the value of a static variable.
    #[doc(hidden)]
    pub const unsafe fn zeroed() -> SymStatic<T> {
        // SAFETY: zero is a value of every `Element`.
        SymStatic(UnsafeCell::new(unsafe { std::mem::zeroed() }))
    }

    /// Returns the variable as one element (§4). Panics if it is not symmetric.
    #[inline]
    #[track_caller]
    pub fn element<'s, L: ThreadLevel>(&'static self, shmem: &'s Shmem<L>) -> SymRef<'s, T> {
        self.check(shmem);
        // SAFETY: a static variable, which was just checked to be symmetric. It is never freed, and
        // has no epochs.
        unsafe { SymRef::new(self.0.get()) }
    }
}

impl<T> SymStatic<T> {
    #[track_caller]
    fn check<L: ThreadLevel>(&'static self, shmem: &Shmem<L>) {
        let at = self.0.get();
        if setup::addr_accessible(call!("SymStatic"), at.cast(), shmem.my_pe() as i32) == 0 {
            mistake!(
                call!("SymStatic"),
                "the variable is not symmetric: it is not a static variable of the program itself"
            );
        }
    }
}

impl<T: Element, const N: usize> SymStatic<[T; N]> {
    /// # Safety
    /// It is the value of a static variable.
    #[doc(hidden)]
    pub const unsafe fn zeros() -> SymStatic<[T; N]> {
        // SAFETY: zero is a value of every `Element`.
        SymStatic(UnsafeCell::new(unsafe { std::mem::zeroed() }))
    }

    /// Returns the elements of an array (§4). Panics if it is not symmetric.
    #[inline]
    #[track_caller]
    pub fn elements<'s, L: ThreadLevel>(&'static self, shmem: &'s Shmem<L>) -> SymSlice<'s, T> {
        self.check(shmem);
        // SAFETY: `N` elements of a static variable, which was just checked to be symmetric. It is
        // never freed, and has no epochs.
        unsafe { SymSlice::new(self.0.get().cast(), N) }
    }
}

impl<T> fmt::Debug for SymStatic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymStatic({:p})", self.0.get())
    }
}
