//! Single values in the symmetric heap.

use crate::element::{Element, PlainData};
use crate::job::Shmem;
use crate::symmetric::array::SymArray;
use crate::symmetric::view::{IsSymmetric, Sym, SymSlice};
use crate::threads::Threads;
use std::ops::Deref;

/// One element in the symmetric heap of each PE (§9.3): a `Box` whose value all PEs reach. It
/// dereferences to a [`Sym`].
#[derive(Debug)]
pub struct SymBox<'s, T: Element>(SymArray<'s, T>);

impl<C: Threads> Shmem<C> {
    /// Allocates one element with the value `value` on each PE (`shmem_malloc`, §9.3.1).
    /// Collective. The job ends with a message if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(shmem.my_pe());
    /// assert_eq!(mine.on(shmem.next()).read(), shmem.next().pe());
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_malloc")]
    #[track_caller]
    pub fn boxed<T: PlainData>(&self, value: T) -> SymBox<'_, T> {
        let one = self.zeroed::<T>();
        one.store(value);

        // Every PE then finds the value. A store of this PE to its own element needs no quiet.
        self.sync_all();
        one
    }

    /// Allocates one zero element on each PE (`shmem_calloc`, §9.3.6). Collective. The job ends
    /// with a message if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let ready = shmem.zeroed::<shmem::Signal>();
    /// assert_eq!(shmem.signal(&ready), 0);
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_calloc")]
    #[track_caller]
    pub fn zeroed<T: Element>(&self) -> SymBox<'_, T> {
        SymBox(self.array(1))
    }
}

impl<T: Element> Deref for SymBox<'_, T> {
    type Target = Sym<T>;

    #[inline(always)]
    fn deref(&self) -> &Sym<T> {
        &self.0[0]
    }
}

impl<T: Element> IsSymmetric<T> for SymBox<'_, T> {
    #[inline(always)]
    fn as_sym_slice(&self) -> &SymSlice<T> {
        self.as_slice()
    }
}

impl<T: PlainData> SymBox<'_, T> {
    /// Calls `f` with this PE's element, which no other PE can access until all PEs have returned
    /// from their `f`: an [epoch](SymArray::epoch). Collective over all PEs. The standard has no
    /// such routine.
    ///
    /// The job ends with a message if another PE allocates something instead, or finalizes, and if
    /// `f` panics.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut mine = shmem.boxed(1);
    /// mine.epoch(|own| *own += shmem.my_pe());
    /// assert_eq!(mine.on(shmem.pe(0)).read(), 1);
    /// ```
    pub fn epoch<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        self.0.epoch(|elements| f(&mut elements[0]))
    }
}

impl<T: Element> SymBox<'_, T> {
    /// Drops the box (`shmem_free`, §9.3.2), as its end of life does. Its memory is freed by the
    /// next allocation.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mine = shmem.boxed(17);
    /// mine.free();
    /// let other = shmem.boxed(5);             // may be where the first one was
    /// assert_eq!(other.load(), 5);
    /// ```
    #[doc(alias = "shmem_free")]
    pub fn free(self) {}
}
