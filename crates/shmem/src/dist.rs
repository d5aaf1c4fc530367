//! Arrays that are distributed over the PEs of a team: one index for all elements, each of which is
//! on one PE. (The arrays of the standard have all their elements on every PE.)
//!
//! A [`BlockArray`] gives each PE a block of consecutive elements. Its methods never access the
//! elements of another PE one by one, except those of [`at`](BlockArray::at): ranges are copied by
//! one transfer for each PE, operations on elements anywhere (`add_each`, `read_each`) are sent
//! several together, and only the elements of this PE are iterated.
//!
//! ```
//! use shmem::Atomic;
//!
//! let shmem = shmem::init();
//! let n_pes = shmem.n_pes() as u64;
//! let counts = shmem.world().block_array::<Atomic<u64>>(100);
//! counts.add_each((0..1000).map(|key| (key % 100, 1)));
//! counts.at(17).add(5);
//! shmem.barrier_all();
//!
//! for (index, count) in counts.own_iter() {
//!     let added = if index == 17 { 5 * n_pes } else { 0 };
//!     assert_eq!(count.load(), 10 * n_pes + added);
//! }
//!
//! let squares = shmem.world().block_array::<usize>(100);
//! for (index, square) in squares.own_iter() {
//!     square.store(index * index);
//! }
//! shmem.barrier_all();
//! assert_eq!(squares.read(8..12), [64, 81, 100, 121]);
//! assert_eq!(squares.at(99).read(), 9801);
//! ```

mod batches;
mod layout;

use crate::context::Context;
use crate::dist::layout::BlockLayout;
use crate::element::{Atomic, AtomicValue, Element, PlainData};
use crate::panics::mistake;
use crate::peer::Peer;
use crate::remote::Remote;
use crate::rma::require_same_length;
use crate::symmetric::array::{OutOfMemory, SymArray};
use crate::symmetric::view::{Sym, SymSlice, bounds};
use crate::team::Team;
use crate::threads::{Local, Threads};
use rushmem_runtime::Call;
use std::fmt;
use std::ops::{Range, RangeBounds};

/// An array of `len` elements, distributed by blocks over the PEs of a team, which makes it
/// ([`Team::block_array`]). The standard has no such object.
///
/// A block has `len` divided by the number of PEs, rounded up, which is
/// [`block_len`](Self::block_len). PE 0 of the team has the first block, PE 1 the second one, and
/// so on; the last block that has elements may be shorter, and the PEs after it have none.
/// So the element `i` is on PE `i / block_len`. PE numbers are those of the team, indices and
/// lengths count elements, not bytes. For 10 elements over 4 PEs:
///
/// | PE | 0 | 1 | 2 | 3 |
/// |---|---|---|---|---|
/// | elements | 0, 1, 2 | 3, 4, 5 | 6, 7, 8 | 9 |
///
/// Operations are those of the default context.
pub struct BlockArray<'s, T: Element, C: Threads = Local> {
    /// A whole block on each PE, also where fewer elements are used.
    blocks: SymArray<'s, T>,
    layout: BlockLayout,
    members: Vec<Peer<'s, C>>,
    /// The number of this PE in the team.
    me: usize,
}

impl<'s, C: Threads> Team<'s, C> {
    /// Allocates an array of `len` zero elements, not bytes, that is distributed over the PEs of
    /// this team (`shmem_calloc`, §9.3.6).
    ///
    /// Collective over **all** PEs of the job, as [`Shmem::array`](crate::Shmem::array) is: each PE
    /// passes the same `len` and a team of the same size, which need not be the same team. So every
    /// row of a grid of PEs can have an array of its own. The job ends with a message if another PE
    /// allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let squares = shmem.world().block_array::<usize>(100);
    /// for (index, square) in squares.own_iter() {
    ///     square.store(index * index);
    /// }
    /// shmem.barrier_all();
    /// assert_eq!(squares.read(8..12), [64, 81, 100, 121]);
    /// ```
    ///
    /// # Panics
    /// If the symmetric heap has no room, which is so on all PEs.
    #[doc(alias = "shmem_calloc")]
    #[track_caller]
    pub fn block_array<T: Element>(&self, len: usize) -> BlockArray<'s, T, C> {
        match self.try_block_array(len) {
            Ok(array) => array,
            Err(error) => mistake!(call!("Team::block_array"), "{error}"),
        }
    }

    /// Allocates an array of `len` zero elements, not bytes, that is distributed over the PEs of
    /// this team (`shmem_calloc`, §9.3.6). Collective over all PEs of the job, with the same
    /// arguments as [`block_array`](Self::block_array). The job ends with a message if another PE
    /// allocates something else.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().try_block_array::<u64>(100)?;
    /// assert_eq!(numbers.read(..), [0; 100]);
    /// # Ok::<(), shmem::OutOfMemory>(())
    /// ```
    ///
    /// # Errors
    /// If the symmetric heap has no room, which is so on all PEs.
    pub fn try_block_array<T: Element>(
        &self,
        len: usize,
    ) -> Result<BlockArray<'s, T, C>, OutOfMemory> {
        let layout = BlockLayout::new(len, self.n_pes());
        let call = call!("Team::block_array");
        Ok(BlockArray {
            blocks: SymArray::allocate(call, layout.block_len, len)?,
            layout,
            members: self.peers().collect(),
            me: self.my_pe(),
        })
    }
}

impl<'s, T: Element, C: Threads> BlockArray<'s, T, C> {
    /// Returns the number of elements on all PEs together.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// assert_eq!(numbers.len(), 100);
    /// ```
    #[inline]
    pub fn len(&self) -> usize {
        self.layout.len
    }

    /// Returns true if there are no elements on any PE.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let nothing = shmem.world().block_array::<u64>(0);
    /// assert!(nothing.is_empty());
    /// ```
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layout.len == 0
    }

    /// Returns the number of elements of a block that is not the last one. It is at least 1.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// assert_eq!(numbers.block_len(), 100usize.div_ceil(shmem.n_pes()));
    /// ```
    #[inline]
    pub fn block_len(&self) -> usize {
        self.layout.block_len
    }

    /// Returns the number, in the team, of the PE that has the element of an index.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// assert_eq!(numbers.owner(70), 70 / numbers.block_len());
    /// ```
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn owner(&self, index: usize) -> usize {
        self.require(call!("BlockArray::owner"), index);
        self.layout.owner(index)
    }

    /// Returns the indices of the elements of this PE, those of [`own`](Self::own).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// let owned = numbers.own_range().all(|index| numbers.owner(index) == shmem.my_pe());
    /// assert!(owned);
    /// ```
    #[inline]
    pub fn own_range(&self) -> Range<usize> {
        self.layout.of(self.me)
    }

    /// Returns the elements of this PE.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// numbers.own().fill(17);
    /// shmem.barrier_all();
    /// assert_eq!(numbers.at(70).read(), 17);
    /// ```
    #[inline]
    pub fn own(&self) -> &SymSlice<T> {
        &self.blocks[..self.own_range().len()]
    }

    /// Returns the elements of this PE, each with its index in the whole array.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let squares = shmem.world().block_array::<usize>(100);
    /// for (index, square) in squares.own_iter() {
    ///     square.store(index * index);
    /// }
    /// shmem.barrier_all();
    /// assert_eq!(squares.at(70).read(), 4900);
    /// ```
    #[doc(alias = "iter")]
    #[doc(alias = "enumerate")]
    #[doc(alias = "local_iter")]
    pub fn own_iter(&self) -> impl DoubleEndedIterator<Item = (usize, &Sym<T>)> + Clone {
        self.own_range().zip(self.own())
    }

    /// Returns an element on the PE that has it, for an operation: `array.at(7).write(1)`.
    ///
    /// To access many elements of other PEs one by one is slow. [`read`](Self::read) and
    /// [`write`](Self::write) copy ranges; [`read_each`](Self::read_each), `write_each`,
    /// `load_each`, `store_each`, `add_each` and `fetch_add_each` access many elements anywhere.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// if shmem.my_pe() == 0 {
    ///     numbers.at(70).write(17);
    /// }
    /// shmem.barrier_all();
    /// assert_eq!(numbers.at(70).read(), 17);
    /// ```
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn at(&self, index: usize) -> Remote<'_, Sym<T>, Peer<'s, C>> {
        self.require(call!("BlockArray::at"), index);
        self.element(index)
    }

    /// Calls `f` with the elements of this PE, which no other PE can access until all PEs have
    /// returned from their `f`: an [epoch](SymArray::epoch). Collective over all PEs of the job.
    /// The standard has no such routine.
    ///
    /// The elements are a slice as any other, so threads of this PE may share them: with the crate
    /// rayon, `array.epoch(|own| own.par_iter_mut().for_each(..))`.
    ///
    /// The job ends with a message if another PE allocates something instead, or finalizes, and if
    /// `f` panics.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut numbers = shmem.world().block_array::<u64>(100);
    /// let largest = numbers.epoch(|own| {
    ///     own.iter_mut().zip(1..).for_each(|(x, i)| *x = i);
    ///     own.iter().copied().max().unwrap_or(0)
    /// });
    /// assert_eq!(largest, numbers.own().len() as u64);
    /// ```
    pub fn epoch<R>(&mut self, f: impl FnOnce(&mut [T]) -> R) -> R
    where
        T: PlainData,
    {
        let len = self.own_range().len();
        self.blocks.epoch(|block| f(&mut block[..len]))
    }

    fn element(&self, index: usize) -> Remote<'_, Sym<T>, Peer<'s, C>> {
        let owner = self.members[self.layout.owner(index)];
        self.blocks[self.layout.offset(index)].on(owner)
    }

    /// Returns the values of the elements of a range, by one get from each PE that has some of them
    /// (`shmem_get_nbi`, §9.6.2.2). Completes all operations of this PE on the default context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// numbers.own().fill(17);
    /// shmem.barrier_all();
    /// assert_eq!(numbers.read(48..52), [17; 4]);
    /// ```
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[doc(alias = "shmem_get")]
    #[track_caller]
    pub fn read(&self, range: impl RangeBounds<usize>) -> Vec<T>
    where
        T: PlainData,
    {
        let range = self.require_range(call!("BlockArray::read"), range);
        let mut values = vec![T::zeroed(); range.len()];
        self.get(range, &mut values);
        values
    }

    /// Copies the elements of a range to `dest`, which must have the same number, by one get from
    /// each PE that has some of them (`shmem_get_nbi`, §9.6.2.2). Completes all operations of this
    /// PE on the default context.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// numbers.own().fill(17);
    /// shmem.barrier_all();
    /// let mut part = [0; 4];
    /// numbers.read_into(48..52, &mut part);
    /// assert_eq!(part, [17; 4]);
    /// ```
    ///
    /// # Panics
    /// If the range is out of bounds, or has another length than `dest`.
    #[doc(alias = "shmem_get")]
    #[track_caller]
    pub fn read_into(&self, range: impl RangeBounds<usize>, dest: &mut [T])
    where
        T: PlainData,
    {
        let call = call!("BlockArray::read_into");
        let range = self.require_range(call, range);
        require_same_length(call, dest.len(), range.len());
        self.get(range, dest);
    }

    fn get(&self, range: Range<usize>, mut dest: &mut [T])
    where
        T: PlainData,
    {
        let context = Context::<C>::default_one();

        // A scope, so that the gets from different PEs are under way at the same time.
        context.scope(|s| {
            for part in self.layout.parts(range) {
                let owner = s.pe(self.members[part.owner].pe());
                let values = dest
                    .split_off_mut(..part.elements.len())
                    .expect("the destination has the length of the range");
                self.blocks[part.elements].on(owner).get(values);
            }
        });
    }

    /// Copies `source` to the elements of a range, of which it must have the number, by one put to
    /// each PE that has some of them (`shmem_put`, §9.6.1.1). The source may be reused on return;
    /// the data are at their PEs after a [`quiet`](Context::quiet) or a barrier.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let numbers = shmem.world().block_array::<u64>(100);
    /// if shmem.my_pe() == 0 {
    ///     numbers.write(48..52, &[1, 2, 3, 4]);
    /// }
    /// shmem.barrier_all();
    /// assert_eq!(numbers.read(48..52), [1, 2, 3, 4]);
    /// ```
    ///
    /// # Panics
    /// If the range is out of bounds, or has another length than `source`.
    #[doc(alias = "shmem_put")]
    #[track_caller]
    pub fn write(&self, range: impl RangeBounds<usize>, source: &[T])
    where
        T: PlainData,
    {
        let call = call!("BlockArray::write");
        let range = self.require_range(call, range);
        require_same_length(call, range.len(), source.len());

        let mut rest = source;
        for part in self.layout.parts(range) {
            let values = rest
                .split_off(..part.elements.len())
                .expect("the source has the length of the range");
            let owner = self.members[part.owner];
            self.blocks[part.elements].on(owner).put(values);
        }
    }

    /// Panics unless there is an element of this index.
    #[inline]
    #[track_caller]
    fn require(&self, call: Call, index: usize) {
        if index >= self.len() {
            no_such_element(call, index, self.len());
        }
    }

    /// Panics unless the elements of the range exist.
    #[track_caller]
    fn require_range(&self, call: Call, range: impl RangeBounds<usize>) -> Range<usize> {
        let len = self.len();
        let range = bounds(range, len);
        if range.start > range.end || range.end > len {
            mistake!(
                call,
                "argument range is {range:?}; pass a part of 0..{len}, the elements on all PEs"
            );
        }
        range
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_such_element(call: Call, index: usize, len: usize) -> ! {
    mistake!(
        call,
        "argument index is {index}; pass one below {len}, the number of elements on all PEs"
    )
}

// Blocks of their own, since those of plain and of atomic elements have the same name.
impl<T: PlainData, C: Threads> BlockArray<'_, T, C> {
    /// Writes `value` to all elements: each PE to its own, in an [epoch](Self::epoch). Collective
    /// over all PEs of the job.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut numbers = shmem.world().block_array::<u64>(100);
    /// numbers.fill(17);
    /// assert_eq!(numbers.at(70).read(), 17);
    /// ```
    pub fn fill(&mut self, value: T) {
        self.epoch(|own| own.fill(value));
    }
}

impl<T: AtomicValue, C: Threads> BlockArray<'_, Atomic<T>, C> {
    /// Writes `value` to all elements: each PE to its own, when no other PE can access them.
    /// Collective over all PEs of the job.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut nearest = shmem.world().block_array::<shmem::Atomic<u64>>(100);
    /// nearest.fill(u64::MAX);
    /// assert_eq!(nearest.at(70).load(), u64::MAX);
    /// ```
    pub fn fill(&mut self, value: T) {
        let call = call!("BlockArray::fill");
        self.blocks.block.barrier(call);
        self.own().on(self.members[self.me]).fill(value);
        self.blocks.block.barrier(call);
    }
}

impl<T: Element, C: Threads> fmt::Debug for BlockArray<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockArray({:?} of {})", self.own_range(), self.len())
    }
}
