//! Arrays in the symmetric heap (OpenSHMEM 1.6, §9.3).
#![allow(unsafe_code)]

use crate::element::{Element, Plain, PlainData};
use crate::job::Shmem;
use crate::panics::mistake;
use crate::symmetric::block::SymBlock;
use crate::symmetric::view::{SymRef, SymSlice};
use crate::thread_level::ThreadLevel;
use rushmem_runtime::local;
use std::fmt;
use std::ops::RangeBounds;

/// Elements in the symmetric heap (§9.3), the same number on each PE. All PEs allocate and drop
/// their arrays in the same order. To allocate is collective; to drop is not. The next allocation
/// completes the operations on the arrays that were dropped, and frees their memory (`shmem_free`,
/// §9.3.2). The job ends with a message if another PE allocates something else, finalizes, or has
/// dropped other arrays.
pub struct SymArray<'s, T: Element> {
    pub(crate) block: SymBlock<'s>,
    data: *mut T,
    len: usize,
}

// SAFETY: threads that borrow an array can only make views and copies of elements, which any thread
// may do at any time. They cannot drop the array.
unsafe impl<T: Element> Sync for SymArray<'_, T> {}

/// The error if the symmetric heap, whose size is `SHMEM_SYMMETRIC_SIZE` (§8), has no room for an
/// object. It is the same on all PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    nbytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the symmetric heap has no room for {} bytes; make SHMEM_SYMMETRIC_SIZE larger",
            self.nbytes
        )
    }
}

impl std::error::Error for OutOfMemory {}

impl<L: ThreadLevel> Shmem<L> {
    /// Allocates `len` zero elements, not bytes, on each PE (`shmem_calloc`, §9.3.6). Collective.
    /// Panics if there is no room, which is so on all PEs. The job ends with a message if another
    /// PE allocates something else.
    #[doc(alias = "shmem_calloc")]
    #[track_caller]
    pub fn array<T: Element>(&self, len: usize) -> SymArray<'_, T> {
        match self.try_array(len) {
            Ok(array) => array,
            Err(error) => mistake!(call!("Shmem::array"), "{error}"),
        }
    }

    /// Works as [`array`](Self::array), but returns an error if there is no room.
    ///
    /// # Errors
    /// If there is no room, which is so on all PEs.
    pub fn try_array<T: Element>(&self, len: usize) -> Result<SymArray<'_, T>, OutOfMemory> {
        let block = SymBlock::allocate::<T>(call!("Shmem::array"), len).ok_or(OutOfMemory {
            nbytes: size_of::<T>().saturating_mul(len),
        })?;
        let data = block.data();
        Ok(SymArray { block, data, len })
    }
}

impl<T: Element> SymArray<'_, T> {
    /// Returns a view of all elements.
    #[inline(always)]
    pub fn as_slice(&self) -> SymSlice<'_, T> {
        // SAFETY: all elements of the block, which is not freed while it is borrowed; an epoch
        // borrows it exclusively.
        unsafe { SymSlice::new(self.data, self.len) }
    }

    /// Returns the number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Works as [`SymSlice::slice`].
    #[inline]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> SymSlice<'_, T> {
        self.as_slice().slice(range)
    }

    /// Works as [`SymSlice::at`].
    #[inline]
    #[track_caller]
    pub fn at(&self, index: usize) -> SymRef<'_, T> {
        self.as_slice().at(index)
    }

    /// Works as [`SymSlice::iter`].
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SymRef<'_, T>> + ExactSizeIterator {
        self.as_slice().iter()
    }
}

impl<T: Element> SymArray<'_, T> {
    /// Changes the number of elements (`shmem_realloc`, §9.3.3). The first ones keep their values,
    /// further ones are zero. Collective; completes the operations that this PE has issued. Both
    /// the old and the new elements need room meanwhile.
    ///
    /// ```standalone_crate
    /// let shmem = shmem::init();
    /// let mut numbers = shmem.array::<u64>(2);
    /// numbers.store(1, 17);
    /// numbers.resize(1000)?;
    /// assert_eq!((numbers.load(1), numbers.load(999)), (17, 0));
    /// # Ok::<(), shmem::OutOfMemory>(())
    /// ```
    ///
    /// # Errors
    /// If there is no room, which is so on all PEs. The array is then unchanged.
    #[doc(alias = "shmem_realloc")]
    pub fn resize(&mut self, len: usize) -> Result<(), OutOfMemory> {
        let call = call!("SymArray::resize");
        let block = SymBlock::allocate::<T>(call, len).ok_or(OutOfMemory {
            nbytes: size_of::<T>().saturating_mul(len),
        })?;
        self.block.barrier(call);
        let (to, from) = (block.data::<Plain<T>>(), self.data.cast::<Plain<T>>());
        // SAFETY: both blocks have at least this number of elements. No PE has a view of either
        // block: each has borrowed the array exclusively, and no view outlives that.
        unsafe { local::copy_elements::<local::AtomicLoads, _>(to, from, len.min(self.len)) };
        (self.data, self.len) = (block.data(), len);
        drop(std::mem::replace(&mut self.block, block));
        Ok(())
    }
}

impl<T: Element> SymArray<'_, T> {
    /// Works as [`SymSlice::load`].
    #[inline]
    #[track_caller]
    pub fn load(&self, index: usize) -> T
    where
        T: PlainData,
    {
        self.at(index).load()
    }

    /// Works as [`SymSlice::store`].
    #[inline]
    #[track_caller]
    pub fn store(&self, index: usize, value: T)
    where
        T: PlainData,
    {
        self.at(index).store(value);
    }

    /// Works as [`SymSlice::copy_to_slice`].
    #[inline]
    #[track_caller]
    pub fn copy_to_slice(&self, dest: &mut [T])
    where
        T: PlainData,
    {
        self.as_slice().copy_to_slice(dest);
    }

    /// Works as [`SymSlice::copy_from_slice`].
    #[inline]
    #[track_caller]
    pub fn copy_from_slice(&self, source: &[T])
    where
        T: PlainData,
    {
        self.as_slice().copy_from_slice(source);
    }

    /// Works as [`SymSlice::fill`].
    pub fn fill(&self, value: T)
    where
        T: PlainData,
    {
        self.as_slice().fill(value);
    }

    /// Works as [`SymSlice::to_vec`].
    pub fn to_vec(&self) -> Vec<T>
    where
        T: PlainData,
    {
        self.as_slice().to_vec()
    }
}

impl<'a, T: Element> From<&'a SymArray<'_, T>> for SymSlice<'a, T> {
    #[inline(always)]
    fn from(array: &'a SymArray<'_, T>) -> SymSlice<'a, T> {
        array.as_slice()
    }
}

impl<T: Element> fmt::Debug for SymArray<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymArray({:p}; {})", self.data, self.len)
    }
}
