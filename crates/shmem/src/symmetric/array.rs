//! Arrays in the symmetric heap (OpenSHMEM 1.6, §9.3).
#![allow(unsafe_code)]

use crate::element::{Element, Plain, PlainData};
use crate::job::Shmem;
use crate::panics::mistake;
use crate::symmetric::block::SymBlock;
use crate::symmetric::view::{IsSymmetric, Sym, SymSlice};
use crate::threads::Threads;
use rushmem_runtime::{Call, local};
use std::fmt;
use std::ops::Deref;
use std::slice;

/// Elements in the symmetric heap (§9.3), the same number on each PE: a `Vec` whose elements all
/// PEs reach. It dereferences to a [`SymSlice`]. All PEs allocate and drop their arrays in the same
/// order. To allocate is collective; to drop is not. The next allocation completes the operations
/// on the arrays that were dropped, and frees their memory (`shmem_free`, §9.3.2). The job ends
/// with a message if another PE allocates something else, finalizes, or has dropped other arrays.
pub struct SymArray<'s, T: Element> {
    pub(crate) block: SymBlock<'s>,
    data: *mut T,
    len: usize,
}

// SAFETY: by a shared reference, threads can only make views of an array and copy elements, which
// any thread may do at any time. `resize`, `epoch` and the drop need the array itself, which stays
// on its thread.
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

impl<C: Threads> Shmem<C> {
    /// Allocates `len` zero elements, not bytes, on each PE (`shmem_calloc`, §9.3.6). Collective.
    /// The job ends with a message if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(100);
    /// assert_eq!(numbers.to_vec(), [0; 100]);
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_calloc")]
    #[doc(alias = "shmem_align")]
    #[doc(alias = "shmem_malloc_with_hints")]
    #[track_caller]
    pub fn array<T: Element>(&self, len: usize) -> SymArray<'_, T> {
        match self.try_array(len) {
            Ok(array) => array,
            Err(error) => mistake!(call!("Shmem::array"), "{error}"),
        }
    }

    /// Allocates `len` zero elements, not bytes, on each PE (`shmem_calloc`, §9.3.6). Collective.
    /// The job ends with a message if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.try_array::<u64>(100)?;
    /// assert_eq!(numbers.len(), 100);
    /// # Ok::<(), shmem::OutOfMemory>(())
    /// ```
    ///
    /// # Errors
    /// If the symmetric heap has no room, which is so on all PEs.
    pub fn try_array<T: Element>(&self, len: usize) -> Result<SymArray<'_, T>, OutOfMemory> {
        SymArray::allocate(call!("Shmem::array"), len, len)
    }

    /// Allocates elements with these values on each PE (`shmem_malloc`, §9.3.1). Collective: all
    /// PEs pass the same number of values, which may be different ones. The job ends with a message
    /// if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let me = shmem.my_pe();
    /// let numbers = shmem.array_from(&[me, me + 1, me + 2]);
    /// assert_eq!(numbers.on(shmem.pe(0)).to_vec(), [0, 1, 2]);
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_malloc")]
    #[track_caller]
    pub fn array_from<T: PlainData>(&self, values: &[T]) -> SymArray<'_, T> {
        let array = self.array(values.len());
        array.copy_from_slice(values);

        // Every PE then finds the values. A store of this PE to its own element needs no quiet.
        self.sync_all();
        array
    }

    /// Allocates `len` elements on each PE, whose values `f` returns for their indices
    /// (`shmem_malloc`, §9.3.1), as [`std::array::from_fn`] makes an array. Collective. The job
    /// ends with a message if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let squares = shmem.array_from_fn(4, |i| i * i);
    /// assert_eq!(squares.on(shmem.next()).to_vec(), [0, 1, 4, 9]);
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_malloc")]
    #[track_caller]
    pub fn array_from_fn<T: PlainData>(
        &self,
        len: usize,
        f: impl FnMut(usize) -> T,
    ) -> SymArray<'_, T> {
        let values: Vec<T> = (0..len).map(f).collect();
        self.array_from(&values)
    }
}

impl<T: Element> Deref for SymArray<'_, T> {
    type Target = SymSlice<T>;

    #[inline(always)]
    fn deref(&self) -> &SymSlice<T> {
        // SAFETY: `data` and `len` are all elements of the block. It is not freed while `self` is
        // borrowed, and is in no epoch, which would borrow `self` exclusively.
        unsafe { SymSlice::new(self.data, self.len) }
    }
}

impl<T: Element> IsSymmetric<T> for SymArray<'_, T> {
    #[inline(always)]
    fn as_sym_slice(&self) -> &SymSlice<T> {
        self
    }
}

impl<'a, T: Element> IntoIterator for &'a SymArray<'_, T> {
    type Item = &'a Sym<T>;
    type IntoIter = slice::Iter<'a, Sym<T>>;

    fn into_iter(self) -> slice::Iter<'a, Sym<T>> {
        self.iter()
    }
}

impl<'s, T: Element> SymArray<'s, T> {
    /// Allocates zero elements for an object of `whole_len` elements, of which each PE has `len`.
    /// Both numbers are the same on all PEs.
    pub(crate) fn allocate(
        call: Call,
        len: usize,
        whole_len: usize,
    ) -> Result<SymArray<'s, T>, OutOfMemory> {
        let Some(block) = SymBlock::allocate::<T>(call, len, whole_len) else {
            let nbytes = size_of::<T>().saturating_mul(len);
            return Err(OutOfMemory { nbytes });
        };
        let data = block.data();
        Ok(SymArray { block, data, len })
    }

    /// Changes the number of elements, not bytes, to `len`, the same on all PEs (`shmem_realloc`,
    /// §9.3.3). The first ones keep their values, further ones are zero. Collective; completes the
    /// operations that this PE has issued. Both the old and the new elements need room meanwhile.
    /// The job ends with a message if another PE allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut numbers = shmem.array::<u64>(2);
    /// numbers[1].store(17);
    /// numbers.resize(1000)?;
    /// assert_eq!((numbers[1].load(), numbers[999].load()), (17, 0));
    /// # Ok::<(), shmem::OutOfMemory>(())
    /// ```
    ///
    /// # Errors
    /// If there is no room, which is so on all PEs. The array is then unchanged.
    #[doc(alias = "shmem_realloc")]
    pub fn resize(&mut self, len: usize) -> Result<(), OutOfMemory> {
        let call = call!("SymArray::resize");
        let mut new = Self::allocate(call, len, len)?;

        // Completes what PEs have issued on the old elements, so that the copies include it.
        self.block.barrier(call);

        let to = new.data.cast::<Plain<T>>();
        let from = self.data.cast::<Plain<T>>();
        // SAFETY: `to` and `from` are the elements of two blocks, which have at least this number.
        // No PE has a view of either block: each has borrowed the array exclusively, and no view
        // outlives that.
        unsafe { local::copy_elements::<local::AtomicLoads, _>(to, from, len.min(self.len)) };

        // No PE accesses the new elements of this one before they have their values.
        new.block.barrier(call);

        *self = new;
        Ok(())
    }

    /// Drops the array (`shmem_free`, §9.3.2), as its end of life does. Its memory is freed by the
    /// next allocation.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.array::<u64>(100);
    /// let used = shmem.heap_info().used;
    /// numbers.free();
    /// let fewer = shmem.array::<u64>(50);     // may be where the others were
    /// assert!(shmem.heap_info().used < used);
    /// ```
    #[doc(alias = "shmem_free")]
    pub fn free(self) {}
}

impl<T: Element> fmt::Debug for SymArray<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymArray({:p}; {})", self.data, self.len)
    }
}
