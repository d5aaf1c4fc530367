//! Waiting for and testing several elements of this PE at once (OpenSHMEM 1.6, §9.11.2 to
//! §9.11.14).
#![allow(unsafe_code)]

use crate::element::Element;
use crate::job::Shmem;
use crate::panics::mistake;
use crate::symmetric::view::SymSlice;
use crate::threads::Threads;
use crate::wait::{Awaited, Cmp, TimedOut};
use core::ffi::c_int;
use rushmem_runtime::{limits, wait};
use std::time::Duration;

/// The values with which elements are compared (§9.11.2 to §9.11.14): one for all, or a slice with
/// one for each.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Values<'v, T> {
    /// All elements are compared with this value.
    Same(T),
    /// Each element is compared with the value at its index (the vector forms of C).
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

/// A comparison of each of several elements of this PE with a value (§9.11.2 to §9.11.14), such as
/// `xs.each(Cmp::Ge, 3)`, for [`Shmem::wait_all`], [`Shmem::test_any`] and the like.
#[must_use = "`shmem.wait_all(conditions)` waits for conditions"]
#[derive(Debug)]
pub struct Conditions<'a, T: Awaited> {
    elements: &'a SymSlice<T>,
    cmp: Cmp,
    values: Values<'a, T::Value>,
    /// Is not 0 for an element that is excluded. Empty if none is.
    status: Vec<c_int>,
}

impl<T: Element> SymSlice<T> {
    /// Returns the conditions that each element satisfies the comparison `cmp` with its value
    /// (§9.11). `values` is one value for all, or a slice of as many as there are elements.
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(shmem.n_pes());
    /// shmem.peers().for_each(|peer| flags[shmem.my_pe()].on(peer).write(1));
    /// shmem.wait_all(flags.each(Cmp::Ne, 0));
    /// assert_eq!(shmem.test_any(flags.each(Cmp::Eq, 0)), None);
    /// ```
    ///
    /// # Panics
    /// If a slice of values has another length.
    #[track_caller]
    pub fn each<'a>(
        &'a self,
        cmp: Cmp,
        values: impl Into<Values<'a, T::Value>>,
    ) -> Conditions<'a, T>
    where
        T: Awaited,
    {
        let values = values.into();
        if let Values::Each(values) = values
            && values.len() != self.len()
        {
            other_length("values", values.len(), self.len());
        }
        Conditions {
            elements: self,
            cmp,
            values,
            status: Vec::new(),
        }
    }
}

impl<'a, T: Awaited> Conditions<'a, T> {
    /// Excludes the elements whose entry is true (the argument `status` of C, §9.11.2).
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(2);
    /// flags[0].on(shmem.next()).write(1);
    /// shmem.wait_all(flags.each(Cmp::Ne, 0).except(&[false, true]));
    /// assert_eq!(flags.to_vec(), [1, 0]);
    /// ```
    ///
    /// # Panics
    /// If `excluded` has not an entry for each element.
    #[track_caller]
    pub fn except(mut self, excluded: &[bool]) -> Conditions<'a, T> {
        if excluded.len() != self.elements.len() {
            other_length("excluded", excluded.len(), self.elements.len());
        }
        self.status = excluded.iter().copied().map(c_int::from).collect();
        self
    }

    /// Returns the conditions in the runtime's form, whose pointers are valid as long as this
    /// exists.
    fn arguments(&self) -> Arguments<T::Value> {
        let status = if self.status.is_empty() {
            std::ptr::null()
        } else {
            self.status.as_ptr()
        };

        let values = match self.values {
            Values::Same(value) => wait::Values::Same(value),
            Values::Each(values) => wait::Values::Each(values.as_ptr()),
        };

        Arguments {
            elements: self.elements.as_ptr().cast_const().cast(),
            nelems: self.elements.len(),
            status,
            cmp: self.cmp.constant(),
            values,
        }
    }
}

/// Conditions in the runtime's form.
struct Arguments<W> {
    elements: *const W,
    nelems: usize,
    /// An entry for each element, not 0 if the element is excluded; null if none is.
    status: *const c_int,
    cmp: c_int,
    values: wait::Values<W>,
}

#[cold]
#[track_caller]
fn other_length(argument: &str, len: usize, nelems: usize) -> ! {
    mistake!(
        call!("conditions"),
        "argument {argument} has {len} entries for {nelems} elements; give each one its own"
    )
}

/// Calls a routine of the runtime for conditions. `indices`, if it is there, is the list that the
/// routine fills, with room for each element; `limit` is that of a wait with one. A macro, since
/// the routines are unsafe and generic.
macro_rules! carry_out {
    ($routine:ident, $call:expr, $conditions:ident $(, $indices:ident)? $(; $limit:ident)?) => {{
        let Arguments { elements, nelems, status, cmp, values } = $conditions.arguments();
        // SAFETY: `elements` are `nelems` elements of a symmetric object, which the conditions
        // borrow. The arrays of `status` and `values` have as many entries, or are not used, as
        // `each` and `except` have checked. So has the list of indices.
        unsafe {
            wait::$routine(
                $call, elements, nelems, $($indices.as_mut_ptr(),)? status, cmp, values,
                $(limits::of_duration($limit),)?
            )
        }
    }};
}

impl<C: Threads> Shmem<C> {
    /// Waits until all conditions hold (`shmem_wait_until_all`, §9.11.2 and §9.11.5). Returns at
    /// once if there are no elements or all are excluded.
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(2);
    /// flags.on(shmem.next()).put(&[3, 5]);
    /// shmem.wait_all(flags.each(Cmp::Eq, &[3, 5]));
    /// assert_eq!(flags.to_vec(), [3, 5]);
    /// ```
    #[doc(alias = "shmem_wait_until_all")]
    #[doc(alias = "shmem_wait_until_all_vector")]
    pub fn wait_all<T: Awaited>(&self, conditions: Conditions<'_, T>) {
        carry_out!(wait_until_all, call!("wait_all"), conditions);
    }

    /// Waits as [`wait_all`](Shmem::wait_all) does, but for `limit` at the longest
    /// (`shmemx_wait_until_all_timed`, an extension). Limits are as those of
    /// [`wait_for`](Shmem::wait_for).
    ///
    /// ```
    /// # use shmem::{Cmp, TimedOut};
    /// # use std::time::Duration;
    /// # let shmem = shmem::init();
    /// let (flags, limit) = (shmem.array::<u64>(2), Duration::from_millis(1));
    /// flags[0].store(1);
    /// assert_eq!(shmem.wait_all_for(flags.each(Cmp::Ne, 0), limit), Err(TimedOut));
    /// flags[1].store(1);
    /// assert_eq!(shmem.wait_all_for(flags.each(Cmp::Ne, 0), limit), Ok(()));
    /// ```
    ///
    /// # Errors
    /// When the limit has passed. Nothing has changed then, and the wait may be repeated.
    #[doc(alias = "shmemx_wait_until_all_timed")]
    #[doc(alias = "shmemx_wait_until_all_vector_timed")]
    pub fn wait_all_for<T: Awaited>(
        &self,
        conditions: Conditions<'_, T>,
        limit: Duration,
    ) -> Result<(), TimedOut> {
        carry_out!(wait_until_all_within, call!("wait_all_for"), conditions; limit)
    }

    /// Waits until a condition holds. Returns its index, or `None` at once if there are no elements
    /// or all are excluded (`shmem_wait_until_any`, §9.11.3 and §9.11.6).
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(4);
    /// flags[2].on(shmem.next()).write(1);
    /// assert_eq!(shmem.wait_any(flags.each(Cmp::Ne, 0)), Some(2));
    /// ```
    #[doc(alias = "shmem_wait_until_any")]
    #[doc(alias = "shmem_wait_until_any_vector")]
    pub fn wait_any<T: Awaited>(&self, conditions: Conditions<'_, T>) -> Option<usize> {
        let index = carry_out!(wait_until_any, call!("wait_any"), conditions);
        some_index(index)
    }

    /// Waits as [`wait_any`](Shmem::wait_any) does, but for `limit` at the longest
    /// (`shmemx_wait_until_any_timed`, an extension). Limits are as those of
    /// [`wait_for`](Shmem::wait_for).
    ///
    /// ```
    /// # use shmem::{Cmp, TimedOut};
    /// # use std::time::Duration;
    /// # let shmem = shmem::init();
    /// let (flags, limit) = (shmem.array::<u64>(4), Duration::from_millis(1));
    /// assert_eq!(shmem.wait_any_for(flags.each(Cmp::Ne, 0), limit), Err(TimedOut));
    /// flags[2].store(1);
    /// assert_eq!(shmem.wait_any_for(flags.each(Cmp::Ne, 0), limit), Ok(Some(2)));
    /// ```
    ///
    /// # Errors
    /// When the limit has passed. Nothing has changed then, and the wait may be repeated.
    #[doc(alias = "shmemx_wait_until_any_timed")]
    #[doc(alias = "shmemx_wait_until_any_vector_timed")]
    pub fn wait_any_for<T: Awaited>(
        &self,
        conditions: Conditions<'_, T>,
        limit: Duration,
    ) -> Result<Option<usize>, TimedOut> {
        carry_out!(wait_until_any_within, call!("wait_any_for"), conditions; limit).map(some_index)
    }

    /// Waits until at least one condition holds, and returns the indices of those that do. Returns
    /// none at once if there are no elements or all are excluded (`shmem_wait_until_some`, §9.11.4
    /// and §9.11.7).
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(4);
    /// flags[2].on(shmem.next()).write(1);
    /// assert_eq!(shmem.wait_some(flags.each(Cmp::Ne, 0)), [2]);
    /// ```
    #[doc(alias = "shmem_wait_until_some")]
    #[doc(alias = "shmem_wait_until_some_vector")]
    pub fn wait_some<T: Awaited>(&self, conditions: Conditions<'_, T>) -> Vec<usize> {
        let mut indices = vec![0; conditions.elements.len()];
        let found = carry_out!(wait_until_some, call!("wait_some"), conditions, indices);
        indices.truncate(found);
        indices
    }

    /// Waits as [`wait_some`](Shmem::wait_some) does, but for `limit` at the longest
    /// (`shmemx_wait_until_some_timed`, an extension). Limits are as those of
    /// [`wait_for`](Shmem::wait_for).
    ///
    /// ```
    /// # use shmem::{Cmp, TimedOut};
    /// # use std::time::Duration;
    /// # let shmem = shmem::init();
    /// let (flags, limit) = (shmem.array::<u64>(4), Duration::from_millis(1));
    /// assert_eq!(shmem.wait_some_for(flags.each(Cmp::Ne, 0), limit), Err(TimedOut));
    /// flags[1..3].fill(1);
    /// assert_eq!(shmem.wait_some_for(flags.each(Cmp::Ne, 0), limit), Ok(vec![1, 2]));
    /// ```
    ///
    /// # Errors
    /// When the limit has passed. Nothing has changed then, and the wait may be repeated.
    #[doc(alias = "shmemx_wait_until_some_timed")]
    #[doc(alias = "shmemx_wait_until_some_vector_timed")]
    pub fn wait_some_for<T: Awaited>(
        &self,
        conditions: Conditions<'_, T>,
        limit: Duration,
    ) -> Result<Vec<usize>, TimedOut> {
        let mut indices = vec![0; conditions.elements.len()];
        let call = call!("wait_some_for");
        let found = carry_out!(wait_until_some_within, call, conditions, indices; limit)?;
        indices.truncate(found);
        Ok(indices)
    }

    /// Returns true if all conditions hold now (`shmem_test_all`, §9.11.9 and §9.11.12), also if
    /// there are no elements or all are excluded.
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(2);
    /// assert!(!shmem.test_all(flags.each(Cmp::Ne, 0)));
    /// flags.fill(1);
    /// assert!(shmem.test_all(flags.each(Cmp::Ne, 0)));
    /// ```
    #[doc(alias = "shmem_test_all")]
    #[doc(alias = "shmem_test_all_vector")]
    pub fn test_all<T: Awaited>(&self, conditions: Conditions<'_, T>) -> bool {
        carry_out!(test_all, call!("test_all"), conditions) != 0
    }

    /// Returns the index of a condition that holds now, if there is one (`shmem_test_any`, §9.11.10
    /// and §9.11.13).
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(4);
    /// assert_eq!(shmem.test_any(flags.each(Cmp::Ne, 0)), None);
    /// flags[2].store(1);
    /// assert_eq!(shmem.test_any(flags.each(Cmp::Ne, 0)), Some(2));
    /// ```
    #[doc(alias = "shmem_test_any")]
    #[doc(alias = "shmem_test_any_vector")]
    pub fn test_any<T: Awaited>(&self, conditions: Conditions<'_, T>) -> Option<usize> {
        let index = carry_out!(test_any, call!("test_any"), conditions);
        some_index(index)
    }

    /// Returns the indices of the conditions that hold now (`shmem_test_some`, §9.11.11 and
    /// §9.11.14).
    ///
    /// ```
    /// # use shmem::Cmp;
    /// # let shmem = shmem::init();
    /// let flags = shmem.array::<u64>(4);
    /// flags[1..3].fill(1);
    /// assert_eq!(shmem.test_some(flags.each(Cmp::Ne, 0)), [1, 2]);
    /// ```
    #[doc(alias = "shmem_test_some")]
    #[doc(alias = "shmem_test_some_vector")]
    pub fn test_some<T: Awaited>(&self, conditions: Conditions<'_, T>) -> Vec<usize> {
        let mut indices = vec![0; conditions.elements.len()];
        let found = carry_out!(test_some, call!("test_some"), conditions, indices);
        indices.truncate(found);
        indices
    }
}

/// Returns an index of the standard, whose maximum means that there is none (§9.11.3).
fn some_index(index: usize) -> Option<usize> {
    if index == usize::MAX {
        None
    } else {
        Some(index)
    }
}
