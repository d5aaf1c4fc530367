//! Remote memory access (OpenSHMEM 1.6, §9.6).
#![allow(unsafe_code)]

use crate::element::{Element, Plain, PlainData};
use crate::panics::mistake;
use crate::peer::Peer;
use crate::remote::Remote;
use crate::symmetric::array::SymArray;
use crate::symmetric::boxed::SymBox;
use crate::symmetric::view::{IsSymmetric as _, Sym, SymSlice};
use crate::threads::Threads;
use rushmem_runtime::{Call, rma};
use std::ptr::{slice_from_raw_parts, slice_from_raw_parts_mut};

mod sealed {
    /// Elements in memory of this PE, private or symmetric, that are not moved as long as this
    /// exists.
    pub trait Memory<T> {
        /// Returns the elements. The address and the number are from one call of the program's
        /// `as_ref`, whose next result may be different.
        fn elements(&self) -> *const [T];
    }

    /// Memory that can be written.
    pub trait MemoryMut<T> {
        /// Returns the elements, from one call of the program's `as_mut`.
        fn elements(&mut self) -> *mut [T];
    }
}
pub(crate) use sealed::{Memory, MemoryMut};

/// The memory from which a put (§9.6) can copy: a slice, array or vector (anything that is
/// [`AsRef<[T]>`](AsRef)), or symmetric memory.
#[diagnostic::on_unimplemented(
    message = "elements of type `{T}` cannot be copied from `{Self}`",
    label = "not elements of type `{T}`",
    note = "the source is a reference to a slice, array or vector of the same type of elements, or to symmetric memory"
)]
pub trait Source<T>: Memory<T> {}

/// The memory to which a get (§9.6) can copy: a slice, array or vector (anything that is
/// [`AsMut<[T]>`](AsMut)), or symmetric memory.
#[diagnostic::on_unimplemented(
    message = "elements of type `{T}` cannot be copied to `{Self}`",
    label = "not a place for elements of type `{T}`",
    note = "the destination is `&mut` a slice, array or vector of the same type of elements, or a reference to symmetric memory"
)]
pub trait Destination<T>: MemoryMut<T> {}

#[diagnostic::do_not_recommend]
impl<T, M: Memory<T>> Source<T> for M {}
#[diagnostic::do_not_recommend]
impl<T, M: MemoryMut<T>> Destination<T> for M {}

impl<T, S: AsRef<[T]> + ?Sized> Memory<T> for &S {
    #[inline(always)]
    fn elements(&self) -> *const [T] {
        (*self).as_ref()
    }
}

impl<T, S: AsMut<[T]> + ?Sized> MemoryMut<T> for &mut S {
    #[inline(always)]
    fn elements(&mut self) -> *mut [T] {
        (*self).as_mut()
    }
}

/// Makes objects of symmetric memory sources and destinations, by shared references: other PEs may
/// write to them at any time, too.
macro_rules! symmetric_memory {
    ($($object:ty)*) => {$(
        impl<T: Element> Memory<T> for &$object {
            #[inline(always)]
            fn elements(&self) -> *const [T] {
                let elements = self.as_sym_slice();
                slice_from_raw_parts(elements.as_ptr(), elements.len())
            }
        }
        impl<T: Element> MemoryMut<T> for &$object {
            #[inline(always)]
            fn elements(&mut self) -> *mut [T] {
                let elements = self.as_sym_slice();
                slice_from_raw_parts_mut(elements.as_ptr(), elements.len())
            }
        }
    )*};
}
symmetric_memory! { SymSlice<T> Sym<T> SymArray<'_, T> SymBox<'_, T> }

impl<T: Element, C: Threads> Remote<'_, SymSlice<T>, Peer<'_, C>> {
    /// Copies `source`, which must have the same number of elements, to these (`shmem_put`,
    /// §9.6.1.1). The source may be reused on return; the data are at their PE after a
    /// [`quiet`](crate::Context::quiet). On this PE, `source` must not overlap these elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(3);
    /// inbox.on(shmem.next()).put(&[1, 2, 3]);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_put")]
    #[doc(alias = "shmem_putmem")]
    #[inline]
    #[track_caller]
    pub fn put(self, source: impl Source<T>)
    where
        T: PlainData,
    {
        let call = call!("put");
        let dest = self.view();
        let elements = source.elements();
        require_same_length(call, dest.len(), elements.len());

        let (pe, context) = self.target();
        let to = dest.as_ptr().cast();
        let from = elements.cast::<Plain<T>>();
        // SAFETY: `dest` and `source` have the same number of elements, as just checked. The source
        // is borrowed until the end of the call.
        unsafe { rma::put(call, context, to, from, elements.len(), pe) }
    }

    /// Copies these elements to `dest`, which must have the same number (`shmem_get`, §9.6.1.5).
    /// On this PE, `dest` must not overlap these elements.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.array::<usize>(3);
    /// mine.fill(shmem.my_pe());
    /// shmem.barrier_all();
    /// let mut theirs = [0; 3];
    /// mine.on(shmem.next()).get(&mut theirs);
    /// assert_eq!(theirs, [shmem.next().pe(); 3]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[doc(alias = "shmem_get")]
    #[doc(alias = "shmem_getmem")]
    #[inline]
    #[track_caller]
    pub fn get(self, mut dest: impl Destination<T>)
    where
        T: PlainData,
    {
        let call = call!("get");
        let source = self.view();
        let elements = dest.elements();
        require_same_length(call, elements.len(), source.len());

        let (pe, context) = self.target();
        let to = elements.cast::<Plain<T>>();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` have the same number of elements, as just checked. `dest` is
        // borrowed until the end of the call.
        unsafe { rma::get(call, context, to, from, elements.len(), pe) }
    }

    /// Returns the values of these elements (`shmem_get`, §9.6.1.5).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.array::<usize>(3);
    /// mine.fill(shmem.my_pe());
    /// shmem.barrier_all();
    /// assert_eq!(mine[..2].on(shmem.pe(0)).to_vec(), [0, 0]);
    /// ```
    #[doc(alias = "shmem_get")]
    pub fn to_vec(self) -> Vec<T>
    where
        T: PlainData,
    {
        let mut values = vec![T::zeroed(); self.view().len()];
        self.get(&mut values);
        values
    }
}

impl<T: Element, C: Threads> Remote<'_, Sym<T>, Peer<'_, C>> {
    /// Writes `value` to this element. It is there after a [`quiet`](crate::Context::quiet)
    /// (`shmem_p`, §9.6.1.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.boxed(0);
    /// inbox.on(shmem.next()).write(17);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.load(), 17);
    /// ```
    #[doc(alias = "shmem_p")]
    #[doc(alias = "put")]
    #[inline]
    pub fn write(self, value: T)
    where
        T: PlainData,
    {
        let to = self.view().as_ptr().cast();
        let (pe, context) = self.target();
        // SAFETY: a `Sym` is an aligned element of a symmetric object.
        unsafe { rma::p(call!("write"), context, to, Plain(value), pe) }
    }

    /// Returns the value of this element (`shmem_g`, §9.6.1.6).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(shmem.my_pe());
    /// assert_eq!(mine.on(shmem.next()).read(), shmem.next().pe());
    /// ```
    #[doc(alias = "shmem_g")]
    #[doc(alias = "get")]
    #[inline]
    pub fn read(self) -> T
    where
        T: PlainData,
    {
        let from = self.view().as_ptr().cast::<Plain<T>>();
        let (pe, context) = self.target();
        // SAFETY: a `Sym` is an aligned element of a symmetric object, whose bits are a value,
        // whatever wrote them.
        unsafe { rma::g(call!("read"), context, from, pe) }.0
    }
}

/// Panics unless both sides of a transfer have the same number of elements.
#[inline(always)]
#[track_caller]
pub(crate) fn require_same_length(name: Call, dest: usize, source: usize) {
    if dest != source {
        lengths_differ(name, dest, source);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn lengths_differ(name: Call, dest: usize, source: usize) -> ! {
    mistake!(
        name,
        "the destination has {dest} elements and the source {source}; slice the longer one"
    )
}
