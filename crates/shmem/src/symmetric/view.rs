//! Symmetric memory as a program sees it: references to cells.
//!
//! A reference names the same elements on every PE. Its methods access this PE's elements;
//! [`on`](SymSlice::on) accesses those of other PEs. An element that other PEs change meanwhile has
//! a value that some PE has written; one whose size is not 1, 2, 4 or 8 bytes, or that is not
//! aligned to its size, may have bytes of several such values.
//!
//! Why a reference is sound though other processes and the network write to the memory: a `&Sym<T>`
//! is a reference to an `UnsafeCell`, of which the compiler assumes nothing but its address, as it
//! does of a `&AtomicU64`. `Sym` hides its cell and has no constructor, so no program comes to a
//! reference to the element itself; its values are read and written by the runtime's local
//! functions alone, which are atomic, or copies that are opaque to the compiler; and any bytes are
//! a value of it.
#![allow(unsafe_code)]

use crate::element::{Element, Plain, PlainData};
use crate::panics::mistake;
use rushmem_runtime::local;
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{
    Bound, Index, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo,
    RangeToInclusive,
};
use std::panic::RefUnwindSafe;
use std::slice;

/// One element of symmetric memory (§4), which all PEs may change at any time: to symmetric memory
/// what a [`Cell`](std::cell::Cell) is to a thread's.
///
/// There are only references to it: a [`SymBox`](crate::SymBox) and a
/// [`SymStatic`](crate::SymStatic) lend one, and indexing a [`SymSlice`].
#[repr(transparent)]
pub struct Sym<T: Element>(UnsafeCell<T>);

// SAFETY: all accesses by a shared reference are atomic, or copies of plain data that are opaque to
// the compiler. Any thread may do that at any time.
unsafe impl<T: Element> Sync for Sym<T> {}
// A program must expect any value in an element anyway: another PE may have changed it.
impl<T: Element> RefUnwindSafe for Sym<T> {}

/// Elements of symmetric memory (§4): to a [`SymArray`](crate::SymArray) what `[T]` is to a
/// `Vec<T>`.
///
/// ```
/// let shmem = shmem::init();
/// let numbers = shmem.array::<u64>(8);
/// numbers[3].store(17);
/// numbers[4..].fill(4);
/// assert_eq!(numbers[2..6].to_vec(), [0, 17, 4, 4]);
/// assert_eq!(numbers.iter().map(|x| x.load()).sum::<u64>(), 33);
/// ```
#[repr(transparent)]
pub struct SymSlice<T: Element>([Sym<T>]);

impl<T: Element> SymSlice<T> {
    /// # Safety
    /// `len` elements from `start` are an aligned part of a symmetric object, which is neither
    /// freed nor in an epoch during `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new<'a>(start: *mut T, len: usize) -> &'a SymSlice<T> {
        // SAFETY: a `Sym` is laid out as its element, of which all bytes are values. The caller
        // promises that `len` aligned elements exist from `start` on. Others may write to them,
        // since a `Sym` is an `UnsafeCell`.
        Self::of(unsafe { slice::from_raw_parts(start.cast::<Sym<T>>(), len) })
    }

    #[inline(always)]
    pub(super) fn of(cells: &[Sym<T>]) -> &SymSlice<T> {
        let cells = std::ptr::from_ref(cells) as *const SymSlice<T>;
        // SAFETY: the pointer is a reference to a slice, and a `SymSlice` is laid out as that.
        unsafe { &*cells }
    }

    /// Returns the number of elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// assert_eq!(numbers[2..].len(), 6);
    /// ```
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// assert!(numbers[8..].is_empty());
    /// ```
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the element at an index, or the elements of a range, if they exist. `&x[index]`
    /// panics if they do not.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// assert_eq!(numbers.get(7).map(|x| x.load()), Some(0));
    /// assert_eq!(numbers.get(6..).map(|part| part.len()), Some(2));
    /// assert!(numbers.get(8).is_none() && numbers.get(6..9).is_none());
    /// ```
    #[inline]
    pub fn get<I: SymIndex<T>>(&self, index: I) -> Option<&I::Output> {
        index.elements_of(self)
    }

    /// Returns the first element.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// numbers[0].store(17);
    /// assert_eq!(numbers.first().map(|x| x.load()), Some(17));
    /// ```
    #[inline]
    pub fn first(&self) -> Option<&Sym<T>> {
        self.0.first()
    }

    /// Returns the last element.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// numbers[7].store(17);
    /// assert_eq!(numbers.last().map(|x| x.load()), Some(17));
    /// ```
    #[inline]
    pub fn last(&self) -> Option<&Sym<T>> {
        self.0.last()
    }

    /// Returns the elements before an index, and those from it on.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// let (first, rest) = numbers.split_at(3);
    /// rest.fill(17);
    /// assert_eq!((first.to_vec(), rest.len()), (vec![0; 3], 5));
    /// ```
    ///
    /// # Panics
    /// If the index is larger than the number of elements.
    #[inline]
    #[track_caller]
    pub fn split_at(&self, index: usize) -> (&SymSlice<T>, &SymSlice<T>) {
        (&self[..index], &self[index..])
    }

    /// Returns the elements one after the other. [`to_vec`](Self::to_vec) copies their values
    /// instead.
    ///
    /// The elements are those of this PE. To read elements of another PE one by one is slow: copy
    /// them at once, by [`get`](crate::Remote::get).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// numbers.iter().zip(0..).for_each(|(x, index)| x.store(index));
    /// assert_eq!(numbers.iter().map(|x| x.load()).sum::<u64>(), 28);
    /// ```
    #[inline]
    pub fn iter(&self) -> slice::Iter<'_, Sym<T>> {
        self.0.iter()
    }

    #[inline(always)]
    pub(super) fn cells(&self) -> &[Sym<T>] {
        &self.0
    }

    /// Returns the address of this PE's elements, for unsafe code. Peers may access them at any
    /// time.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// assert_eq!(numbers.as_ptr().wrapping_add(3), numbers[3].as_ptr());
    /// ```
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut T {
        self.0.as_ptr().cast_mut().cast()
    }

    /// Copies this PE's elements to `dest`, which must have the same number.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(4);
    /// numbers.fill(17);
    /// let mut copy = [0; 4];
    /// numbers.copy_to_slice(&mut copy);
    /// assert_eq!(copy, [17; 4]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    #[track_caller]
    pub fn copy_to_slice(&self, dest: &mut [T])
    where
        T: PlainData,
    {
        if dest.len() != self.len() {
            differ(self.len(), dest.len());
        }

        // SAFETY: `self` and `dest` have `self.len()` aligned elements, as just checked, of a
        // symmetric object and of a slice that is borrowed exclusively. Any bytes are a value of a
        // `PlainData`.
        unsafe {
            local::copy_elements::<local::AtomicLoads, Plain<T>>(
                dest.as_mut_ptr().cast(),
                self.as_ptr().cast(),
                self.len(),
            )
        }
    }

    /// Copies `source`, which must have the same number of elements, to this PE's elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(4);
    /// numbers[1..3].copy_from_slice(&[5, 7]);
    /// assert_eq!(numbers.to_vec(), [0, 5, 7, 0]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    #[track_caller]
    pub fn copy_from_slice(&self, source: &[T])
    where
        T: PlainData,
    {
        if source.len() != self.len() {
            differ(self.len(), source.len());
        }

        // The source is private, so nothing changes it during the copy, and its loads need not be
        // atomic.
        // SAFETY: `self` and `source` have `self.len()` aligned elements, as just checked, of a
        // symmetric object and of a slice that is borrowed.
        unsafe {
            local::copy_elements::<local::VolatileLoads, Plain<T>>(
                self.as_ptr().cast(),
                source.as_ptr().cast(),
                self.len(),
            )
        }
    }

    /// Writes `value` to each of this PE's elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(4);
    /// numbers[2..].fill(17);
    /// assert_eq!(numbers.to_vec(), [0, 0, 17, 17]);
    /// ```
    pub fn fill(&self, value: T)
    where
        T: PlainData,
    {
        for element in self {
            element.store(value);
        }
    }
}

// Blocks of their own, since those of atomic elements have methods of these names.
impl<T: PlainData> SymSlice<T> {
    /// Returns the values of this PE's elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(4);
    /// numbers[3].store(17);
    /// assert_eq!(numbers[2..].to_vec(), [0, 17]);
    /// ```
    pub fn to_vec(&self) -> Vec<T> {
        let mut elements = vec![T::zeroed(); self.len()];
        self.copy_to_slice(&mut elements);
        elements
    }
}

/// Returns the start and the end of a range of indices into `len` elements. Neither is checked: the
/// range may exceed the elements, and its end may be before its start.
#[inline]
pub(crate) fn bounds(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&first) => first,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    start..end
}

impl<T: Element, I: SymIndex<T>> Index<I> for SymSlice<T> {
    type Output = I::Output;

    #[inline]
    #[track_caller]
    fn index(&self, index: I) -> &I::Output {
        match index.clone().elements_of(self) {
            Some(elements) => elements,
            None => out_of_bounds(&index.shown(self.len()), self.len()),
        }
    }
}

impl<'a, T: Element> IntoIterator for &'a SymSlice<T> {
    type Item = &'a Sym<T>;
    type IntoIter = slice::Iter<'a, Sym<T>>;

    #[inline]
    fn into_iter(self) -> slice::Iter<'a, Sym<T>> {
        self.iter()
    }
}

impl<T: Element> Sym<T> {
    /// # Safety
    /// `element` is an aligned element of a symmetric object, which is neither freed nor in an
    /// epoch during `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new<'a>(element: *mut T) -> &'a Sym<T> {
        // SAFETY: a `Sym` is laid out as its element, and `element` is aligned and exists during
        // `'a`, as the caller promises. Others may write to it, since a `Sym` is an `UnsafeCell`.
        unsafe { &*element.cast::<Sym<T>>() }
    }

    /// Returns the element as a slice of one.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.boxed(0u64);
    /// inbox.as_slice().on(shmem.next()).put(&[17]);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.load(), 17);
    /// ```
    #[inline(always)]
    pub fn as_slice(&self) -> &SymSlice<T> {
        SymSlice::of(slice::from_ref(self))
    }

    /// Returns the address of this PE's element, for unsafe code. Peers may access it at any time.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(8);
    /// assert_eq!(numbers[0].as_ptr(), numbers.as_ptr());
    /// ```
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut T {
        self.0.get()
    }

    /// Writes to this PE's element.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(0);
    /// mine.store(17);
    /// assert_eq!(mine.load(), 17);
    /// ```
    #[inline(always)]
    pub fn store(&self, value: T)
    where
        T: PlainData,
    {
        // SAFETY: `self` is an aligned element of a symmetric object.
        unsafe { local::store(self.as_ptr().cast(), Plain(value)) }
    }
}

impl<T: PlainData> Sym<T> {
    /// Writes what `f` returns for this PE's value of the element, as
    /// [`Cell::update`](std::cell::Cell::update). What another PE writes meanwhile is lost, so one
    /// that several PEs change is an [`Atomic`](crate::Atomic).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let steps = shmem.boxed(17);
    /// steps.update(|n| n + 1);
    /// assert_eq!(steps.load(), 18);
    /// ```
    #[inline]
    pub fn update(&self, f: impl FnOnce(T) -> T) {
        self.store(f(self.load()));
    }

    /// Exchanges this PE's values of two elements, as [`Cell::swap`](std::cell::Cell::swap).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array_from(&[1, 2, 3]);
    /// numbers[0].swap(&numbers[2]);
    /// assert_eq!(numbers.to_vec(), [3, 2, 1]);
    /// ```
    #[inline]
    pub fn swap(&self, other: &Sym<T>) {
        let value = self.load();
        self.store(other.load());
        other.store(value);
    }

    /// Returns this PE's value of the element.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(17);
    /// assert_eq!(mine.load(), 17);
    /// ```
    #[inline(always)]
    pub fn load(&self) -> T {
        // SAFETY: `self` is an aligned element of a symmetric object, whose bits are a value,
        // whatever wrote them.
        unsafe { local::load(self.as_ptr().cast::<Plain<T>>()) }.0
    }
}

mod sealed {
    use super::{Element, SymSlice};

    pub trait IndexesElements<T: Element>: Clone {
        /// What has this index: an element or several.
        type Output: ?Sized;

        /// Returns what has this index, or `None` if it is out of bounds.
        fn elements_of(self, elements: &SymSlice<T>) -> Option<&Self::Output>;

        /// Returns the words for this index of `len` elements in a message.
        fn shown(self, len: usize) -> String;
    }

    pub trait IsSymmetric<T: Element> {
        /// Returns all elements.
        fn as_sym_slice(&self) -> &SymSlice<T>;
    }
}
use sealed::IndexesElements;
pub(crate) use sealed::IsSymmetric;

/// What indexes a [`SymSlice`]: a `usize`, or a range of them.
#[diagnostic::on_unimplemented(
    message = "symmetric elements are not indexed by `{Self}`",
    label = "neither a `usize` nor a range of `usize`"
)]
pub trait SymIndex<T: Element>: IndexesElements<T> {}

#[diagnostic::do_not_recommend]
impl<T: Element, I: IndexesElements<T>> SymIndex<T> for I {}

impl<T: Element> IndexesElements<T> for usize {
    type Output = Sym<T>;

    #[inline]
    fn elements_of(self, elements: &SymSlice<T>) -> Option<&Sym<T>> {
        elements.0.get(self)
    }

    fn shown(self, _: usize) -> String {
        format!("index {self}")
    }
}

macro_rules! ranges {
    ($($range:ty)*) => {$(
        impl<T: Element> IndexesElements<T> for $range {
            type Output = SymSlice<T>;

            #[inline]
            fn elements_of(self, elements: &SymSlice<T>) -> Option<&SymSlice<T>> {
                let range = bounds(self, elements.len());
                elements.0.get(range).map(SymSlice::of)
            }

            fn shown(self, len: usize) -> String {
                format!("range {:?}", bounds(self, len))
            }
        }
    )*};
}
ranges! {
    Range<usize> RangeFrom<usize> RangeTo<usize> RangeFull RangeInclusive<usize>
    RangeToInclusive<usize> (Bound<usize>, Bound<usize>)
}

/// The symmetric memory that a collective takes (§9.10): a [`SymSlice`], or a [`Sym`],
/// [`SymArray`](crate::SymArray) or [`SymBox`](crate::SymBox).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not symmetric memory with elements of type `{T}`",
    label = "not symmetric elements of type `{T}`",
    note = "these collectives copy plain data between parts of symmetric memory, such as `&array` and `&array[..n]`",
    note = "slices and values of this PE alone are combined by `all_reduce` and `all_reduce_in_place`, \
            gathered by `all_gather`, and copied by `broadcast_in_place`"
)]
pub trait AsSymSlice<T: Element>: IsSymmetric<T> {}

#[diagnostic::do_not_recommend]
impl<T: Element, M: IsSymmetric<T> + ?Sized> AsSymSlice<T> for M {}

impl<T: Element> IsSymmetric<T> for SymSlice<T> {
    #[inline(always)]
    fn as_sym_slice(&self) -> &SymSlice<T> {
        self
    }
}

impl<T: Element> IsSymmetric<T> for Sym<T> {
    #[inline(always)]
    fn as_sym_slice(&self) -> &SymSlice<T> {
        self.as_slice()
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn out_of_bounds(index: &str, len: usize) -> ! {
    mistake!(
        call!("SymSlice"),
        "{index} is out of bounds of {len} elements"
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

impl<T: Element> fmt::Debug for SymSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymSlice({:p}; {})", self.as_ptr(), self.len())
    }
}

impl<T: Element> fmt::Debug for Sym<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sym({:p})", self.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `body` with a view of private memory, which the methods of views can access, too.
    fn on_view<T: PlainData>(elements: &mut [T], body: impl FnOnce(&SymSlice<T>)) {
        let start = elements.as_mut_ptr();
        let len = elements.len();
        // SAFETY: `elements` are `len` aligned elements, which are borrowed exclusively, so nothing
        // else accesses or frees them meanwhile.
        body(unsafe { SymSlice::new(start, len) });
    }

    #[test]
    fn ranges_of_ranges_are_where_they_are_in_slices() {
        let mut elements: Vec<u64> = (0..10).collect();
        on_view(&mut elements, |view| {
            let part = &view[2..=7][1..];
            assert_eq!(part.len(), 5);
            assert_eq!(part.to_vec(), [3, 4, 5, 6, 7]);
            assert_eq!(part[4].load(), 7);
            assert!(part[5..].is_empty());
            assert!(view[..0].is_empty());
            let inner = (Bound::Excluded(1), Bound::Excluded(4));
            assert_eq!(part[inner].to_vec(), [5, 6]);

            part[0].store(33);
            part[1].as_slice().fill(44);
            part[3..].fill(66);

            // Miri checks here that the source, a shared reference, is only read.
            let borrowed: &[u64] = &[1, 2];
            view[..2].copy_from_slice(borrowed);
        });
        assert_eq!(elements, [1, 2, 2, 33, 44, 5, 66, 66, 8, 9]);
    }

    #[test]
    fn parts_are_those_of_slices() {
        let mut elements: Vec<u16> = (0..7).collect();
        on_view(&mut elements, |view| {
            let parts: Vec<Vec<u16>> = view.chunks(3).map(SymSlice::<u16>::to_vec).collect();
            assert_eq!(parts, [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
            let mut parts = view.chunks(3);
            assert_eq!(parts.len(), 3);
            assert_eq!(
                parts.next_back().map(SymSlice::<u16>::to_vec),
                Some(vec![6])
            );
            assert_eq!(
                parts.clone().nth(1).map(SymSlice::<u16>::to_vec),
                Some(vec![3, 4, 5])
            );
            assert_eq!(format!("{parts:?}"), "Chunks(2)");

            let mut parts = view.chunks_exact(3);
            assert_eq!(parts.len(), 2);
            assert_eq!(parts.remainder().to_vec(), [6]);
            assert_eq!(
                parts.next_back().map(SymSlice::<u16>::to_vec),
                Some(vec![3, 4, 5])
            );
            let sums = view.windows(3).map(|part| part.to_vec().iter().sum());
            assert_eq!(sums.collect::<Vec<u16>>(), [3, 6, 9, 12, 15]);
            assert_eq!(view.windows(8).len(), 0);

            let (first, rest) = view.split_at(5);
            assert_eq!(first.len(), 5);
            assert_eq!(rest.to_vec(), [5, 6]);

            assert_eq!(view.first().map(Sym::<u16>::load), Some(0));
            assert_eq!(view.last().map(Sym::<u16>::load), Some(6));
            assert_eq!(view.get(7).map(Sym::<u16>::load), None);
            assert_eq!(
                view.get(5..=6).map(SymSlice::<u16>::to_vec),
                Some(vec![5, 6])
            );
            assert!(view.get(5..8).is_none());
            assert!(view.get((Bound::Excluded(5), Bound::Excluded(4))).is_none());
            assert_eq!(view.iter().rev().map(Sym::<u16>::load).max(), Some(6));
        });
    }

    #[test]
    fn elements_of_any_size_are_copied() {
        let mut elements = [[1u8, 2, 3], [4, 5, 6], [7, 8, 9]];
        on_view(&mut elements, |view| {
            view[1].store([0; 3]);
            assert_eq!(view[2].load(), [7, 8, 9]);
        });
        assert_eq!(elements, [[1, 2, 3], [0; 3], [7, 8, 9]]);

        let mut nothing = [(); 4];
        on_view(&mut nothing, |view| assert_eq!(view[1..].to_vec(), [(); 3]));

        let mut long = vec![5u16; 1000];
        on_view(&mut long, |view| view[500..].fill(6));
        assert_eq!((long[499], long[500], long[999]), (5, 6, 6));
    }
}
