//! Remote memory access (OpenSHMEM 1.6, §9.6).
#![allow(unsafe_code)]

use crate::context::{Context, ContextKind};
use crate::element::{Element, Plain};
use crate::panics::mistake;
use crate::symmetric::array::SymArray;
use crate::symmetric::boxed::SymBox;
use crate::symmetric::view::{AsElement, AsElements, SymRef, SymSlice};
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;
use rushmem_runtime::{Call, rma};

mod sealed {
    /// Elements in memory of this PE, private or symmetric, that are not moved as long as this
    /// exists.
    pub trait Memory<T> {
        /// Returns the address of the first element, and the number of elements. Both are from one
        /// call of the program's `as_ref`, whose next result may be different.
        fn parts(&self) -> (*const T, usize);
    }

    /// Memory that can be written.
    pub trait MemoryMut<T> {
        /// Works as [`Memory::parts`].
        fn parts(&mut self) -> (*mut T, usize);
    }
}
pub(crate) use sealed::{Memory, MemoryMut};

/// The memory from which a put (§9.6) can copy: a slice, array or vector (anything that is
/// [`AsRef<[T]>`](AsRef)), or symmetric memory.
pub trait Source<T>: Memory<T> {}

/// The memory to which a get (§9.6) can copy: a slice, array or vector (anything that is
/// [`AsMut<[T]>`](AsMut)), or symmetric memory.
pub trait Destination<T>: MemoryMut<T> {}

impl<T, M: Memory<T>> Source<T> for M {}
impl<T, M: MemoryMut<T>> Destination<T> for M {}

impl<T, S: AsRef<[T]> + ?Sized> Memory<T> for &S {
    #[inline(always)]
    fn parts(&self) -> (*const T, usize) {
        let elements = (*self).as_ref();
        (elements.as_ptr(), elements.len())
    }
}

impl<T, S: AsMut<[T]> + ?Sized> MemoryMut<T> for &mut S {
    #[inline(always)]
    fn parts(&mut self) -> (*mut T, usize) {
        let elements = (*self).as_mut();
        (elements.as_mut_ptr(), elements.len())
    }
}

macro_rules! symmetric {
    ($($object:ty)*) => {$(
        impl<'a, T: Element> Memory<T> for $object {
            #[inline(always)]
            fn parts(&self) -> (*const T, usize) {
                let elements = SymSlice::from(*self);
                (elements.as_ptr(), elements.len())
            }
        }
        impl<'a, T: Element> MemoryMut<T> for $object {
            #[inline(always)]
            fn parts(&mut self) -> (*mut T, usize) {
                let elements = SymSlice::from(*self);
                (elements.as_ptr(), elements.len())
            }
        }
    )*};
}
symmetric! { SymSlice<'a, T> SymRef<'a, T> &'a SymArray<'_, T> &'a SymBox<'_, T> }

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Copies `source` to `dest` on `pe`, which must have the same number of elements (`shmem_put`,
    /// §9.6.1.1). The source may be reused on return; the data are at `pe` after a
    /// [`quiet`](Context::quiet).
    ///
    /// # Panics
    /// If the lengths differ or there is no such PE, as all transfers.
    #[doc(alias = "shmem_put")]
    #[inline]
    #[track_caller]
    pub fn put<'a, T: Pod>(&self, dest: impl AsElements<'a, T>, source: impl Source<T>, pe: usize) {
        let (dest, (from, nelems)) = (dest.into(), source.parts());
        require_same_length(call!("put"), dest.len(), nelems);
        let (from, to) = (from.cast::<Plain<T>>(), dest.as_ptr().cast());
        let pe = self.existing(call!("put"), pe);
        // SAFETY: equal numbers of elements; the source is borrowed until the end of the call.
        unsafe { rma::put(call!("put"), self.handle(), to, from, nelems, pe) }
    }

    /// Copies `source` on `pe` to `dest`, which must have the same number of elements (`shmem_get`,
    /// §9.6.1.5).
    #[doc(alias = "shmem_get")]
    #[inline]
    #[track_caller]
    pub fn get<'a, T: Pod>(
        &self,
        mut dest: impl Destination<T>,
        source: impl AsElements<'a, T>,
        pe: usize,
    ) {
        let (source, (to, nelems)) = (source.into(), dest.parts());
        require_same_length(call!("get"), nelems, source.len());
        let (from, to) = (source.as_ptr().cast::<Plain<T>>(), to.cast());
        let pe = self.existing(call!("get"), pe);
        // SAFETY: equal numbers of elements; the destination is borrowed until the end of the call.
        unsafe { rma::get(call!("get"), self.handle(), to, from, nelems, pe) }
    }

    /// Writes `value` to `dest` on `pe`. It is there after a [`quiet`](Context::quiet) (`shmem_p`,
    /// §9.6.1.2).
    #[doc(alias = "shmem_p")]
    #[inline]
    #[track_caller]
    pub fn p<'a, T: Pod>(&self, dest: impl AsElement<'a, T>, value: T, pe: usize) {
        let to = dest.into().as_ptr().cast();
        let pe = self.existing(call!("p"), pe);
        // SAFETY: an element of a symmetric object.
        unsafe { rma::p(call!("p"), self.handle(), to, Plain(value), pe) }
    }

    /// Returns the value of `source` on `pe` (`shmem_g`, §9.6.1.6).
    #[doc(alias = "shmem_g")]
    #[inline]
    #[track_caller]
    pub fn g<'a, T: Pod>(&self, source: impl AsElement<'a, T>, pe: usize) -> T {
        let from = source.into().as_ptr().cast::<Plain<T>>();
        let pe = self.existing(call!("g"), pe);
        // SAFETY: an element of a symmetric object, whose bits are a value, whatever wrote them.
        unsafe { rma::g(call!("g"), self.handle(), from, pe) }.0
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
        "argument dest has {dest} elements and argument source {source}; slice the longer one"
    )
}
