//! Single values in the symmetric heap.

use crate::element::{Element, PlainData};
use crate::job::Shmem;
use crate::symmetric::array::SymArray;
use crate::symmetric::view::{SymRef, SymSlice};
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;

/// One element in the symmetric heap of each PE (§9.3): a [`SymArray`] of one.
#[derive(Debug)]
pub struct SymBox<'s, T: Element>(SymArray<'s, T>);

impl<L: ThreadLevel> Shmem<L> {
    /// Allocates one element with the value `value` on each PE (`shmem_malloc`, §9.3.1).
    /// Collective. Panics, or ends the job with a message, in the same cases as
    /// [`array`](Self::array).
    #[doc(alias = "shmem_malloc")]
    #[track_caller]
    pub fn boxed<T: Pod>(&self, value: T) -> SymBox<'_, T> {
        let one = self.zeroed();
        one.store(value);
        self.sync_all();
        one
    }

    /// Allocates one zero element on each PE (`shmem_calloc`, §9.3.6). Collective. Panics, or ends
    /// the job with a message, in the same cases as [`array`](Self::array).
    #[doc(alias = "shmem_calloc")]
    #[track_caller]
    pub fn zeroed<T: Element>(&self) -> SymBox<'_, T> {
        SymBox(self.array(1))
    }
}

impl<T: Element> SymBox<'_, T> {
    /// Returns a view of the element.
    #[inline(always)]
    pub fn element(&self) -> SymRef<'_, T> {
        self.0.at(0)
    }
}

impl<T: Element> SymBox<'_, T> {
    /// Returns this PE's value of the element.
    #[inline(always)]
    pub fn load(&self) -> T
    where
        T: PlainData,
    {
        self.element().load()
    }

    /// Writes to this PE's element.
    #[inline(always)]
    pub fn store(&self, value: T)
    where
        T: PlainData,
    {
        self.element().store(value);
    }

    /// Works as [`SymArray::epoch`], for one element.
    pub fn epoch<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R
    where
        T: PlainData,
    {
        self.0.epoch(|elements| f(&mut elements[0]))
    }
}

impl<'a, T: Element> From<&'a SymBox<'_, T>> for SymRef<'a, T> {
    #[inline(always)]
    fn from(one: &'a SymBox<'_, T>) -> SymRef<'a, T> {
        one.element()
    }
}

impl<'a, T: Element> From<&'a SymBox<'_, T>> for SymSlice<'a, T> {
    #[inline(always)]
    fn from(one: &'a SymBox<'_, T>) -> SymSlice<'a, T> {
        one.element().into()
    }
}
