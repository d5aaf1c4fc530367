//! Static variables as symmetric objects.
//!
//! Only a static variable is sure to exist on every PE at the corresponding address: a value inside
//! another one, such as a `OnceLock`, need not exist on other PEs. So only the macro
//! [`symmetric!`](crate::symmetric!) makes values, since it makes static variables.
#![allow(unsafe_code)]

use crate::element::Element;
use crate::job::Shmem;
use crate::panics::mistake;
use crate::symmetric::view::{Sym, SymSlice};
use crate::threads::Threads;
use bytemuck::Pod;
use core::ffi::c_void;
use rushmem_runtime::setup;
use std::cell::UnsafeCell;
use std::fmt;

/// A static variable of the program, which every PE has (OpenSHMEM 1.6, §4). It is declared by
/// [`symmetric!`](crate::symmetric!), and a handle of the library is needed to access it.
///
/// Variables of shared libraries are not symmetric: the first access of one panics.
#[repr(transparent)]
pub struct SymStatic<T>(UnsafeCell<T>);

// SAFETY: the constructors make only variables whose type is an `Element`, of which any bytes are a
// value. Programs access them only by copies of plain data and by atomic operations, as any thread
// may at any time.
unsafe impl<T> Sync for SymStatic<T> {}

/// A static array of the program, which every PE has (§4), as [`symmetric!`](crate::symmetric!)
/// declares it.
///
/// Variables of shared libraries are not symmetric: the first access of one panics.
#[repr(transparent)]
pub struct SymStaticArray<T, const N: usize>(UnsafeCell<[T; N]>);

// SAFETY: the same is true of its elements as of a `SymStatic`.
unsafe impl<T, const N: usize> Sync for SymStaticArray<T, N> {}

/// Declares static variables that are symmetric. A variable without a value is zero at first.
/// [`Atomic`](crate::Atomic) elements, [`Signal`](crate::Signal)s and [`Lock`](crate::Lock)s are
/// always declared without a value.
///
/// ```
/// use shmem::Atomic;
/// shmem::symmetric! {
///     static NUMBERS: [u64; 8] = [17; 8];
///     static COUNTERS: [Atomic<u64>; 8];
/// }
///
/// let shmem = shmem::init();
/// NUMBERS.get(&shmem).on(shmem.pe(0)).put(&[1; 8]);
/// COUNTERS.get(&shmem)[3].on(shmem.pe(0)).add(1);
/// ```
#[macro_export]
macro_rules! symmetric {
    () => {};
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $len:expr]; $($rest:tt)*) => {
        $(#[$attribute])*
        // SAFETY: the value initializes a static variable.
        $visibility static $name: $crate::SymStaticArray<$element, { $len }> =
            unsafe { $crate::SymStaticArray::zeroed() };
        $crate::symmetric! { $($rest)* }
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $len:expr] = $value:expr; $($rest:tt)*) => {
        $(#[$attribute])*
        $visibility static $name: $crate::SymStaticArray<$element, { $len }> = {
            // Evaluated outside of the unsafe block, which would let it call unsafe functions.
            const VALUES: [$element; $len] = $value;
            // SAFETY: the value initializes a static variable.
            unsafe { $crate::SymStaticArray::new(VALUES) }
        };
        $crate::symmetric! { $($rest)* }
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty; $($rest:tt)*) => {
        $(#[$attribute])*
        // SAFETY: the value initializes a static variable.
        $visibility static $name: $crate::SymStatic<$type> = unsafe { $crate::SymStatic::zeroed() };
        $crate::symmetric! { $($rest)* }
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $(#[$attribute])*
        $visibility static $name: $crate::SymStatic<$type> = {
            // Evaluated outside of the unsafe block, which would let it call unsafe functions.
            const VALUE: $type = $value;
            // SAFETY: the value initializes a static variable.
            unsafe { $crate::SymStatic::new(VALUE) }
        };
        $crate::symmetric! { $($rest)* }
    };
}

impl<T: Pod> SymStatic<T> {
    /// # Safety
    /// The value initializes a static variable.
    #[doc(hidden)]
    pub const unsafe fn new(value: T) -> SymStatic<T> {
        SymStatic(UnsafeCell::new(value))
    }
}

impl<T: Element> SymStatic<T> {
    /// # Safety
    /// The value initializes a static variable.
    #[doc(hidden)]
    pub const unsafe fn zeroed() -> SymStatic<T> {
        // SAFETY: zero is a value of every `Element`.
        SymStatic(UnsafeCell::new(unsafe { std::mem::zeroed() }))
    }

    /// Returns the element (§4).
    ///
    /// ```
    /// shmem::symmetric! { static INBOX: u64; }
    /// # let shmem = shmem::init();
    /// let inbox = INBOX.get(&shmem);
    /// inbox.on(shmem.next()).write(17);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.load(), 17);
    /// ```
    ///
    /// # Panics
    /// If the variable is not symmetric, since it is one of a shared library.
    #[inline]
    #[track_caller]
    pub fn get<'s, C: Threads>(&'static self, shmem: &'s Shmem<C>) -> &'s Sym<T> {
        require_symmetric(shmem, self.0.get().cast());
        // SAFETY: `self` is a static variable, as its constructors require, and was just checked to
        // be symmetric. It is never freed, and has no epochs.
        unsafe { Sym::new(self.0.get()) }
    }
}

impl<T: Pod, const N: usize> SymStaticArray<T, N> {
    /// # Safety
    /// The value initializes a static variable.
    #[doc(hidden)]
    pub const unsafe fn new(values: [T; N]) -> SymStaticArray<T, N> {
        SymStaticArray(UnsafeCell::new(values))
    }
}

impl<T: Element, const N: usize> SymStaticArray<T, N> {
    /// # Safety
    /// The value initializes a static variable.
    #[doc(hidden)]
    pub const unsafe fn zeroed() -> SymStaticArray<T, N> {
        // SAFETY: zero is a value of every `Element`.
        SymStaticArray(UnsafeCell::new(unsafe { std::mem::zeroed() }))
    }

    /// Returns the elements (§4).
    ///
    /// ```
    /// shmem::symmetric! { static NUMBERS: [u64; 3] = [3, 5, 7]; }
    /// # let shmem = shmem::init();
    /// let numbers = NUMBERS.get(&shmem);
    /// assert_eq!(numbers[1..].on(shmem.next()).to_vec(), [5, 7]);
    /// ```
    ///
    /// # Panics
    /// If the variable is not symmetric, since it is one of a shared library.
    #[inline]
    #[track_caller]
    pub fn get<'s, C: Threads>(&'static self, shmem: &'s Shmem<C>) -> &'s SymSlice<T> {
        require_symmetric(shmem, self.0.get().cast());
        // SAFETY: `self` is a static variable of `N` elements, as its constructors require, and was
        // just checked to be symmetric. It is never freed, and has no epochs.
        unsafe { SymSlice::new(self.0.get().cast(), N) }
    }
}

#[track_caller]
fn require_symmetric<C: Threads>(shmem: &Shmem<C>, variable: *const c_void) {
    if setup::addr_accessible(call!("SymStatic"), variable, shmem.my_pe() as i32) == 0 {
        mistake!(
            call!("SymStatic"),
            "the variable is not symmetric: it is not a static variable of the program itself"
        );
    }
}

impl<T> fmt::Debug for SymStatic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymStatic({:p})", self.0.get())
    }
}

impl<T, const N: usize> fmt::Debug for SymStaticArray<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymStaticArray({:p}; {N})", self.0.get())
    }
}
