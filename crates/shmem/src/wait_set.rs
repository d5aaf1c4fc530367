//! Waiting for and testing several elements of this PE at once (OpenSHMEM 1.6, §9.11.2 to
//! §9.11.14).
//!
//! An element is excluded if its entry in `status` is not 0; an empty `status` excludes none. All
//! elements are compared with one value, or each with its own.
#![allow(unsafe_code)]

use crate::context::{Context, ContextKind};
use crate::panics::mistake;
use crate::symmetric::view::{AsElements, SymSlice};
use crate::thread_level::ThreadLevel;
use crate::wait::{Awaited, Cmp};
use core::ffi::c_int;
use rushmem_runtime::{Call, wait};

/// The values with which elements are compared (§9.11.2 to §9.11.14).
#[derive(Clone, Copy, Debug)]
pub enum Values<'v, T> {
    /// All with the same value.
    Same(T),
    /// Each with the value at its index (the vector forms).
    Each(&'v [T]),
}

impl<T> From<T> for Values<'_, T> {
    fn from(value: T) -> Self {
        Values::Same(value)
    }
}

impl<'v, T> From<&'v [T]> for Values<'v, T> {
    fn from(values: &'v [T]) -> Self {
        Values::Each(values)
    }
}

impl<'v, T> From<&'v Vec<T>> for Values<'v, T> {
    fn from(values: &'v Vec<T>) -> Self {
        Values::Each(values)
    }
}

impl<'v, T, const N: usize> From<&'v [T; N]> for Values<'v, T> {
    fn from(values: &'v [T; N]) -> Self {
        Values::Each(values)
    }
}

/// The arguments in the runtime's form. Their lengths were checked.
struct WaitSet<T> {
    ivars: *const T,
    nelems: usize,
    status: *const c_int,
    values: wait::Values<T>,
}

impl<T> WaitSet<T> {
    #[track_caller]
    fn new<E: Awaited<Value = T>>(
        call: Call,
        ivars: SymSlice<'_, E>,
        status: &[i32],
        values: Values<'_, T>,
    ) -> WaitSet<T> {
        let nelems = ivars.len();
        if !status.is_empty() && status.len() != nelems {
            other_length(call, "status", status.len(), nelems);
        }
        let values = match values {
            Values::Same(value) => wait::Values::Same(value),
            Values::Each(values) if values.len() == nelems => wait::Values::Each(values.as_ptr()),
            Values::Each(values) => other_length(call, "values", values.len(), nelems),
        };
        let status = if status.is_empty() {
            std::ptr::null()
        } else {
            status.as_ptr()
        };
        WaitSet {
            ivars: ivars.as_ptr().cast(),
            nelems,
            status,
            values,
        }
    }
}

#[cold]
#[track_caller]
fn other_length(call: Call, argument: &str, len: usize, nelems: usize) -> ! {
    mistake!(
        call,
        "argument {argument} has {len} entries for {nelems} elements; give each one its own"
    )
}

/// Defines the routines that have no list of indices.
macro_rules! sets {
    ($($(#[$doc:meta])* $name:ident -> $result:ty = |$raw:ident| $convert:expr;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<'a, 'v, T: Awaited>(
            &self,
            ivars: impl AsElements<'a, T>,
            status: &[i32],
            cmp: Cmp,
            values: impl Into<Values<'v, T::Value>>,
        ) -> $result
        where
            T::Value: 'v,
        {
            let WaitSet { ivars, nelems, status, values } =
                WaitSet::new(call!(stringify!($name)), ivars.into(), status, values.into());
            let (call, cmp) = (call!(stringify!($name)), cmp.constant());
            // SAFETY: `nelems` elements of a symmetric object, and the other arrays have as many
            // entries or are not used.
            let $raw = unsafe { wait::$name(call, ivars, nelems, status, cmp, values) };
            $convert
        }
    )*};
}

/// Defines the routines that have a list of indices.
macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<'a, 'v, 'i, T: Awaited>(
            &self,
            ivars: impl AsElements<'a, T>,
            indices: &'i mut [usize],
            status: &[i32],
            cmp: Cmp,
            values: impl Into<Values<'v, T::Value>>,
        ) -> &'i [usize]
        where
            T::Value: 'v,
        {
            let WaitSet { ivars, nelems, status, values } =
                WaitSet::new(call!(stringify!($name)), ivars.into(), status, values.into());
            if indices.len() < nelems {
                other_length(call!(stringify!($name)), "indices", indices.len(), nelems);
            }
            let (call, cmp, found) = (call!(stringify!($name)), cmp.constant(), indices.as_mut_ptr());
            // SAFETY: `nelems` elements of a symmetric object, and the other arrays have at least
            // as many entries or are not used.
            let count = unsafe { wait::$name(call, ivars, nelems, found, status, cmp, values) };
            &indices[..count]
        }
    )*};
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    sets! {
        /// Waits until all elements satisfy the comparison (`shmem_wait_until_all`, §9.11.2 and
        /// §9.11.5).
        wait_until_all -> () = |done| done;
        /// Waits until an element satisfies the comparison. Returns its index, or `None` at once if
        /// there are no elements or all are excluded (`shmem_wait_until_any`, §9.11.3 and §9.11.6).
        wait_until_any -> Option<usize> = |index| (index != usize::MAX).then_some(index);
        /// Returns true if all elements satisfy the comparison now (`shmem_test_all`, §9.11.9 and
        /// §9.11.12).
        test_all -> bool = |holds| holds != 0;
        /// Returns the index of an element that satisfies the comparison now (`shmem_test_any`,
        /// §9.11.10 and §9.11.13).
        test_any -> Option<usize> = |index| (index != usize::MAX).then_some(index);
    }

    lists! {
        /// Waits until at least one element satisfies the comparison. Writes the indices of those
        /// that do to `indices`, which must have room for all elements, and returns them. Returns
        /// none at once if there are no elements or all are excluded (`shmem_wait_until_some`,
        /// §9.11.4 and §9.11.7).
        wait_until_some;
        /// Writes the indices of the elements that satisfy the comparison now to `indices`, which
        /// must have room for all elements, and returns them (`shmem_test_some`, §9.11.11 and
        /// §9.11.14).
        test_some;
    }
}
