//! Views of symmetric memory: the address of elements that are borrowed from an object.
//!
//! A view names the same elements on every PE. Its methods access this PE's elements; operations of
//! a context access those of other PEs. An element that other PEs change meanwhile has a value that
//! some PE has written; one whose size is not 1, 2, 4 or 8 bytes, or that is not aligned to its
//! size, may have bytes of several such values.
#![allow(unsafe_code)]

use crate::context::no_such_pe;
use crate::element::{Element, Plain, PlainData};
use crate::job::c_number;
use crate::panics::mistake;
use rushmem_runtime::{Context as _, ContextHandle, DefaultContext, PeNumber as _, local, setup};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// Element elements (§4), borrowed from a [`SymArray`](crate::SymArray), a
/// [`SymBox`](crate::SymBox) or a [`SymStatic`](crate::SymStatic).
pub struct SymSlice<'a, T> {
    start: *mut T,
    len: usize,
    object: PhantomData<&'a T>,
}

/// One symmetric element (§4), borrowed.
pub struct SymRef<'a, T> {
    at: *mut T,
    object: PhantomData<&'a T>,
}

/// One element as the argument of an operation: a [`SymRef`], or a reference to a
/// [`SymBox`](crate::SymBox).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a symmetric element of type `{E}`",
    label = "not an element of type `{E}`",
    note = "atomic operations change elements of type `Atomic<T>`, as `shmem.atomic(value)` and `shmem.array::<Atomic<T>>(n)` \
            allocate them; signals are of type `Signal`, locks of type `Lock`, and all other operations copy plain data; \
            `array.at(i)` is one element of an array"
)]
pub trait AsElement<'a, E: 'a>: Into<SymRef<'a, E>> {}

#[diagnostic::do_not_recommend]
impl<'a, E: 'a, V: Into<SymRef<'a, E>>> AsElement<'a, E> for V {}

/// Several elements as the argument of an operation: a [`SymSlice`], or a reference to a
/// [`SymArray`](crate::SymArray) or to a [`SymBox`](crate::SymBox).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a view of symmetric elements of type `{E}`",
    label = "not elements of type `{E}`",
    note = "puts, gets and collectives copy plain data between views of symmetric memory, such as `&array` and `array.slice(..n)`; \
            `fetch_all`, `set_all` and `set_each` access elements of type `Atomic<T>`",
    note = "slices and values of this PE alone are combined by `all_reduce` and `all_reduce_in_place`, \
            and copied by `broadcast_in_place`"
)]
pub trait AsElements<'a, E: 'a>: Into<SymSlice<'a, E>> {}

#[diagnostic::do_not_recommend]
impl<'a, E: 'a, V: Into<SymSlice<'a, E>>> AsElements<'a, E> for V {}

// SAFETY: its methods copy plain data, which any thread may do at any time.
unsafe impl<T: Element> Send for SymSlice<'_, T> {}
// SAFETY: its methods copy plain data, which any thread may do at any time.
unsafe impl<T: Element> Sync for SymSlice<'_, T> {}
// SAFETY: its methods copy plain data, which any thread may do at any time.
unsafe impl<T: Element> Send for SymRef<'_, T> {}
// SAFETY: its methods copy plain data, which any thread may do at any time.
unsafe impl<T: Element> Sync for SymRef<'_, T> {}

impl<T> Clone for SymSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SymSlice<'_, T> {}

impl<T> Clone for SymRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SymRef<'_, T> {}

impl<'a, T: Element> SymSlice<'a, T> {
    /// # Safety
    /// `len` elements from `start` are an aligned part of a symmetric object, which is neither
    /// freed nor in an epoch during `'a`.
    pub(crate) unsafe fn new(start: *mut T, len: usize) -> SymSlice<'a, T> {
        SymSlice {
            start,
            len,
            object: PhantomData,
        }
    }

    /// Returns the number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns true if there are no elements.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns a view of the elements in a range of indices. Panics if the range is
    /// out of bounds.
    #[inline]
    #[track_caller]
    pub fn slice(self, range: impl RangeBounds<usize>) -> SymSlice<'a, T> {
        let first = match range.start_bound() {
            Bound::Included(&first) => first,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        if first > end || end > self.len {
            out_of_bounds(format_args!("range {first}..{end}"), self.len);
        }
        SymSlice {
            start: self.start.wrapping_add(first),
            len: end - first,
            object: PhantomData,
        }
    }

    /// Returns a view of the element at an index. Panics if the index is out of bounds.
    #[inline]
    #[track_caller]
    pub fn at(self, index: usize) -> SymRef<'a, T> {
        if index >= self.len {
            out_of_bounds(format_args!("index {index}"), self.len);
        }
        SymRef {
            at: self.start.wrapping_add(index),
            object: PhantomData,
        }
    }

    /// Returns a view of each element, one after the other. [`to_vec`](Self::to_vec) copies their
    /// values instead.
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let mut squares = shmem.array::<u64>(5);
    /// squares.epoch(|own| own.iter_mut().zip(0..).for_each(|(x, i)| *x = i * i));
    /// assert_eq!(squares.slice(2..).iter().map(|x| x.load()).sum::<u64>(), 4 + 9 + 16);
    /// ```
    pub fn iter(self) -> impl DoubleEndedIterator<Item = SymRef<'a, T>> + ExactSizeIterator {
        (0..self.len).map(move |index| self.at(index))
    }

    /// Returns the address of this PE's elements, for unsafe code. Peers may access them at any
    /// time.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        self.start
    }

    /// Returns true if operations can access the elements of `pe` (`shmem_addr_accessible`,
    /// §9.1.8), which is so for all PEs of the job.
    #[doc(alias = "shmem_addr_accessible")]
    #[track_caller]
    pub fn is_accessible(self, pe: usize) -> bool {
        let call = call!("SymSlice::is_accessible");
        setup::addr_accessible(call, self.start.cast(), c_number(pe)) != 0
    }

    /// Returns the address in this process of the elements of `pe`, for unsafe code (`shmem_ptr`,
    /// §9.1.9); `None` if this PE cannot load and store them. `pe` and other PEs may access them at
    /// any time. The address is valid as long as the object exists. Panics if `pe` does not
    /// exist.
    #[doc(alias = "shmem_ptr")]
    #[track_caller]
    pub fn on(self, pe: usize) -> Option<*mut T> {
        address_on(self.start, pe)
    }
}

impl<T: Element> SymSlice<'_, T> {
    /// Returns this PE's value of the element at an index.
    #[inline]
    #[track_caller]
    pub fn load(self, index: usize) -> T
    where
        T: PlainData,
    {
        self.at(index).load()
    }

    /// Writes to this PE's element at an index.
    #[inline]
    #[track_caller]
    pub fn store(self, index: usize, value: T)
    where
        T: PlainData,
    {
        self.at(index).store(value);
    }

    /// Copies this PE's elements to `dest`. Panics if `dest` has another length.
    #[inline]
    #[track_caller]
    pub fn copy_to_slice(self, dest: &mut [T])
    where
        T: PlainData,
    {
        if dest.len() != self.len {
            differ(self.len, dest.len());
        }
        // SAFETY: equal numbers of elements, of a symmetric object and of a slice of the caller's.
        unsafe {
            local::copy_elements::<local::AtomicLoads, Plain<T>>(
                dest.as_mut_ptr().cast(),
                self.start.cast(),
                self.len,
            )
        }
    }

    /// Copies `source` to this PE's elements. Panics if `source` has another length.
    #[inline]
    #[track_caller]
    pub fn copy_from_slice(self, source: &[T])
    where
        T: PlainData,
    {
        if source.len() != self.len {
            differ(self.len, source.len());
        }
        // SAFETY: equal numbers of elements, of a symmetric object and of a slice of the caller's.
        unsafe {
            local::copy_elements::<local::VolatileLoads, Plain<T>>(
                self.start.cast(),
                source.as_ptr().cast(),
                self.len,
            )
        }
    }

    /// Writes `value` to each of this PE's elements.
    pub fn fill(self, value: T)
    where
        T: PlainData,
    {
        (0..self.len).for_each(|index| self.store(index, value));
    }

    /// Returns the values of this PE's elements.
    pub fn to_vec(self) -> Vec<T>
    where
        T: PlainData,
    {
        let mut elements = vec![T::zeroed(); self.len];
        self.copy_to_slice(&mut elements);
        elements
    }
}

impl<'a, T: Element> SymRef<'a, T> {
    /// # Safety
    /// As [`SymSlice::new`], for one element.
    pub(crate) unsafe fn new(at: *mut T) -> SymRef<'a, T> {
        SymRef {
            at,
            object: PhantomData,
        }
    }

    /// Returns the address of this PE's element, for unsafe code. Peers may access it at any time.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        self.at
    }

    /// Works as [`SymSlice::on`], for one element.
    #[track_caller]
    pub fn on(self, pe: usize) -> Option<*mut T> {
        address_on(self.at, pe)
    }
}

impl<T: Element> SymRef<'_, T> {
    /// Returns this PE's value of the element.
    #[inline(always)]
    pub fn load(self) -> T
    where
        T: PlainData,
    {
        // SAFETY: an aligned element of a symmetric object, whose bits are a value, whatever wrote
        // them.
        unsafe { local::load(self.at.cast::<Plain<T>>()) }.0
    }

    /// Writes to this PE's element.
    #[inline(always)]
    pub fn store(self, value: T)
    where
        T: PlainData,
    {
        // SAFETY: an aligned element of a symmetric object.
        unsafe { local::store(self.at.cast(), Plain(value)) }
    }
}

impl<'a, T: Element> From<SymRef<'a, T>> for SymSlice<'a, T> {
    #[inline(always)]
    fn from(element: SymRef<'a, T>) -> SymSlice<'a, T> {
        SymSlice {
            start: element.at,
            len: 1,
            object: PhantomData,
        }
    }
}

#[track_caller]
fn address_on<T>(own: *mut T, pe: usize) -> Option<*mut T> {
    let call = call!("SymSlice::on");
    let Some(pe) = DefaultContext.existing_pe(call, pe) else {
        no_such_pe(call, ContextHandle::DEFAULT, pe)
    };
    let there = setup::ptr(call, own.cast_const().cast(), pe.number());
    (!there.is_null()).then_some(there.cast())
}

#[cold]
#[inline(never)]
#[track_caller]
fn out_of_bounds(what: fmt::Arguments<'_>, len: usize) -> ! {
    mistake!(
        call!("SymSlice"),
        "{what} is out of bounds of {len} elements"
    )
}

#[cold]
#[inline(never)]
#[track_caller]
fn differ(here: usize, there: usize) -> ! {
    mistake!(
        call!("SymSlice"),
        "{here} symmetric elements cannot be copied from or to {there} elements; slice the longer one"
    )
}

impl<T> fmt::Debug for SymSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymSlice({:p}; {})", self.start, self.len)
    }
}

impl<T> fmt::Debug for SymRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymRef({:p})", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `body` with a view of private memory, which the methods of views can access, too.
    fn on_view<T: PlainData>(elements: &mut [T], body: impl FnOnce(SymSlice<'_, T>)) {
        let (start, len) = (elements.as_mut_ptr(), elements.len());
        // SAFETY: aligned elements that nothing else accesses meanwhile.
        body(unsafe { SymSlice::new(start, len) });
    }

    #[test]
    fn ranges_of_ranges_are_where_they_are_in_slices() {
        let mut elements: Vec<u64> = (0..10).collect();
        on_view(&mut elements, |view| {
            let part = view.slice(2..=7).slice(1..);
            assert_eq!((part.len(), part.to_vec()), (5, vec![3, 4, 5, 6, 7]));
            assert_eq!(
                part.slice((Bound::Excluded(1), Bound::Excluded(4)))
                    .to_vec(),
                [5, 6]
            );
            assert_eq!(part.at(4).load(), 7);
            assert!(part.slice(5..).is_empty() && view.slice(..0).is_empty());
            part.at(0).store(33);
            SymSlice::from(part.at(1)).fill(44);
            part.slice(3..).fill(66);
            // Miri checks here that the source, a shared reference, is only read.
            let borrowed: &[u64] = &[1, 2];
            view.slice(..2).copy_from_slice(borrowed);
        });
        assert_eq!(elements, [1, 2, 2, 33, 44, 5, 66, 66, 8, 9]);
    }

    #[test]
    fn elements_of_any_size_are_copied() {
        let mut elements = [[1u8, 2, 3], [4, 5, 6], [7, 8, 9]];
        on_view(&mut elements, |view| {
            view.store(1, [0; 3]);
            assert_eq!(view.load(2), [7, 8, 9]);
        });
        assert_eq!(elements, [[1, 2, 3], [0; 3], [7, 8, 9]]);
        let mut nothing = [(); 4];
        on_view(&mut nothing, |view| {
            assert_eq!(view.slice(1..).to_vec(), [(); 3])
        });
        let mut long = vec![5u16; 1000];
        on_view(&mut long, |view| view.slice(500..).fill(6));
        assert_eq!((long[499], long[500], long[999]), (5, 6, 6));
    }
}
