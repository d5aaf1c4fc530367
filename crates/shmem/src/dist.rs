//! Arrays that are distributed over the PEs of a team: one index for all elements, each of which is
//! on one PE. (The arrays of the standard have all their elements on every PE.)
//!
//! A [`BlockArray`] gives each PE a block of consecutive elements. Its methods never access the
//! elements of another PE one by one, except those of [`at`](BlockArray::at): ranges are copied by
//! one transfer for each PE, many additions are sent several together, and only the elements of
//! this PE are iterated.
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
//! let mine = counts.own().on(shmem.me()).load_each();
//! for (index, count) in counts.own_range().zip(mine) {
//!     let added = if index == 17 { 5 * n_pes } else { 0 };
//!     assert_eq!(count, 10 * n_pes + added);
//! }
//!
//! let squares = shmem.world().block_array::<usize>(100);
//! for (index, square) in squares.own_range().zip(squares.own()) {
//!     square.store(index * index);
//! }
//! shmem.barrier_all();
//! assert_eq!(squares.read(8..12), [64, 81, 100, 121]);
//! assert_eq!(squares.at(99).read(), 9801);
//! ```

use crate::context::{Context, SessionOptions};
use crate::element::{Atomic, AtomicNumber, Element, PlainData};
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
    /// for (index, square) in squares.own_range().zip(squares.own()) {
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
    /// `array.own_range().zip(array.own())` has the elements of this PE with their indices.
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

    /// Returns an element on the PE that has it, for an operation: `array.at(7).write(1)`.
    ///
    /// To access many elements of other PEs one by one is slow. [`read`](Self::read) and
    /// [`write`](Self::write) copy ranges, [`add_each`](Self::add_each) adds to many elements.
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

impl<T: AtomicNumber, C: Threads> BlockArray<'_, Atomic<T>, C> {
    /// Adds to many elements: of each pair, the value to the element of the index, as
    /// `array.at(index).add(value)` does (`shmem_atomic_add`, §9.7.1.8). An index may come several
    /// times.
    ///
    /// The additions are in a session (`SHMEM_CTX_SESSION_BATCH`, §9.9), so that over a network
    /// many of them travel in one message. They are complete after a [`quiet`](Context::quiet) or a
    /// barrier.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let counts = shmem.world().block_array::<shmem::Atomic<usize>>(100);
    /// counts.add_each([(70, 1), (90, 1), (70, 1)]);
    /// shmem.barrier_all();
    /// assert_eq!(counts.at(70).load(), 2 * shmem.n_pes());
    /// ```
    ///
    /// # Panics
    /// At a pair with an index that does not exist. The pairs before it are added.
    #[doc(alias = "shmem_atomic_add")]
    #[doc(alias = "batch_add")]
    #[track_caller]
    pub fn add_each(&self, additions: impl IntoIterator<Item = (usize, T)>) {
        let context = Context::<C>::default_one();
        let _session = context.session_with(SessionOptions::new().batch());
        for (index, value) in additions {
            self.require(call!("BlockArray::add_each"), index);
            self.element(index).add(value);
        }
    }
}

impl<T: Element, C: Threads> fmt::Debug for BlockArray<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockArray({:?} of {})", self.own_range(), self.len())
    }
}

/// Which PE of a team has which elements.
#[derive(Clone, Copy)]
struct BlockLayout {
    len: usize,
    /// At least 1, so that every index has an owner.
    block_len: usize,
}

/// The elements of a range that one PE has.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    owner: usize,
    /// The positions of the elements in the block of the owner.
    elements: Range<usize>,
}

impl BlockLayout {
    fn new(len: usize, n_pes: usize) -> BlockLayout {
        BlockLayout {
            len,
            block_len: len.div_ceil(n_pes).max(1),
        }
    }

    fn owner(self, index: usize) -> usize {
        index / self.block_len
    }

    /// Returns the position of an element in the block of its owner.
    fn offset(self, index: usize) -> usize {
        index % self.block_len
    }

    /// Returns the indices of the elements of a PE.
    fn of(self, pe: usize) -> Range<usize> {
        // Blocks beyond the last element may begin beyond the maximum of a `usize`, too.
        let start = pe.saturating_mul(self.block_len).min(self.len);
        let end = start.saturating_add(self.block_len).min(self.len);
        start..end
    }

    /// Returns the parts of a range of elements that exist, in their order.
    fn parts(self, range: Range<usize>) -> impl Iterator<Item = Part> {
        let mut next = range.start;
        std::iter::from_fn(move || {
            if next == range.end {
                return None;
            }

            let owner = self.owner(next);
            let first = self.offset(next);
            let len = (self.block_len - first).min(range.end - next);
            next += len;

            Some(Part {
                owner,
                elements: first..first + len,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ranges of all PEs for an array of `len` elements.
    fn ranges(len: usize, n_pes: usize) -> Vec<Range<usize>> {
        let layout = BlockLayout::new(len, n_pes);
        (0..n_pes).map(|pe| layout.of(pe)).collect()
    }

    #[test]
    fn blocks_are_consecutive_and_the_last_one_is_shorter() {
        assert_eq!(ranges(10, 4), [0..3, 3..6, 6..9, 9..10]);
        assert_eq!(ranges(12, 4), [0..3, 3..6, 6..9, 9..12]);
        assert_eq!(ranges(9, 4), [0..3, 3..6, 6..9, 9..9]);
        assert_eq!(ranges(7, 1)[0], 0..7);
        assert_eq!(ranges(2, 4), [0..1, 1..2, 2..2, 2..2]);
        assert_eq!(ranges(0, 3), [0..0, 0..0, 0..0]);
        assert_eq!(ranges(usize::MAX, 2)[1].end, usize::MAX);
    }

    #[test]
    fn every_element_has_one_owner() {
        for len in 0..30 {
            for n_pes in 1..8 {
                let layout = BlockLayout::new(len, n_pes);
                let mut indices = Vec::new();
                for pe in 0..n_pes {
                    for (offset, index) in layout.of(pe).enumerate() {
                        assert_eq!(layout.owner(index), pe);
                        assert_eq!(layout.offset(index), offset);
                        indices.push(index);
                    }
                }
                assert_eq!(indices, (0..len).collect::<Vec<_>>());
            }
        }
    }

    /// Returns the parts of a range of the array of 10 elements over 4 PEs.
    fn parts(range: Range<usize>) -> Vec<Part> {
        BlockLayout::new(10, 4).parts(range).collect()
    }

    fn part(owner: usize, elements: Range<usize>) -> Part {
        Part { owner, elements }
    }

    #[test]
    fn a_range_has_one_part_for_each_owner() {
        assert_eq!(parts(4..4), []);
        assert_eq!(parts(10..10), []);
        assert_eq!(parts(4..6), [part(1, 1..3)]);
        assert_eq!(parts(2..7), [part(0, 2..3), part(1, 0..3), part(2, 0..1)]);
        assert_eq!(parts(8..10), [part(2, 2..3), part(3, 0..1)]);
        assert_eq!(parts(0..10).len(), 4);
    }
}
