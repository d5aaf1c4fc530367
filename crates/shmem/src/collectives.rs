//! Collectives over the members of a team (OpenSHMEM 1.6, §9.10), on symmetric memory.
//!
//! All members call with views of the same elements of the same objects, unless a routine says that
//! lengths may differ. Until a call returns, any member may read `source` and write to `dest` of
//! any other member that has called, so the program must not access them meanwhile: it would read
//! old or new values. `dest` is `source`, or has no element in common with it. Each routine writes
//! only to the elements that `dest` of this member's call names, on all members. So a mistake in a
//! program leads to wrong values, but not to writes to other memory.
#![allow(unsafe_code)]

use crate::element::PlainData;
use crate::operator::Operator;
use crate::panics::mistake;
use crate::rma::require_same_length;
use crate::strided::Strides;
use crate::symmetric::view::{AsSymSlice, SymSlice};
use crate::team::Team;
use crate::threads::Threads;
use core::ffi::c_int;
use rushmem_runtime::alltoallv::{self, SourceBlocks, TargetBlocks};
use rushmem_runtime::collectives::{self, ElementCount};
use rushmem_runtime::reductions;
use rushmem_runtime::{Call, Combine};

/// Blocks of an array, one for each member of a team. All numbers are numbers of elements, not of
/// bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Blocks<'a> {
    /// The index of the first element of each block.
    pub offsets: &'a [usize],
    /// The number of elements of each block.
    pub counts: &'a [usize],
}

impl<'a> Blocks<'a> {
    /// Returns the blocks with these first elements and numbers of elements, in the order of the
    /// members.
    ///
    /// ```
    /// // Member 0 gets three elements, member 1 the two that follow them.
    /// let blocks = shmem::Blocks::new(&[0, 3], &[3, 2]);
    /// assert_eq!(blocks.offsets[1], blocks.counts[0]);
    /// ```
    pub fn new(offsets: &'a [usize], counts: &'a [usize]) -> Blocks<'a> {
        Blocks { offsets, counts }
    }
}

impl<C: Threads> Team<'_, C> {
    /// Copies `source` of member `root` to `dest` of all members (`shmem_broadcast`, §9.10.7).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (settings, all) = (shmem.array::<usize>(2), shmem.array(2));
    /// settings.fill(shmem.my_pe() + 5);
    /// shmem.world().broadcast_into(&settings, &all, 0);
    /// assert_eq!(all.to_vec(), [5, 5]);
    /// ```
    ///
    /// # Panics
    /// If there is no such member, if the lengths differ, or if `source` and `dest` overlap but are
    /// not the same elements.
    #[doc(alias = "shmem_broadcast")]
    #[track_caller]
    pub fn broadcast_into<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        root: usize,
    ) {
        let call = call!("Team::broadcast_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        require_same_length(call, dest.len(), source.len());
        require_apart(call, dest, source);
        let root = self.root(call, root) as i32;

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` are parts of symmetric objects and have the same number of
        // bytes, as just checked.
        unsafe { collectives::broadcast(call, team, to, from, count_of(source), root) };
    }

    /// Copies `source` of all members, whose lengths may differ, one after the other to `dest` of
    /// all members (`shmem_collect`, §9.10.8). Returns the number of elements of all sources. The
    /// job ends with a message if `dest` has fewer.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (mine, all) = (shmem.array::<usize>(2), shmem.array(2 * shmem.n_pes()));
    /// mine.fill(shmem.my_pe());
    /// let len = if shmem.my_pe() == 0 { 1 } else { 2 };       // PE 0 has fewer than the others
    /// let n = shmem.world().all_gather_varying_into(&mine[..len], &all);
    /// assert_eq!(n, 2 * shmem.n_pes() - 1);
    /// ```
    ///
    /// # Panics
    /// If `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmem_collect")]
    #[doc(alias = "all_gather_varcount_into")]
    #[track_caller]
    pub fn all_gather_varying_into<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
    ) -> usize {
        let call = call!("Team::all_gather_varying_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        require_apart(call, dest, source);

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        let max_bytes = bytes_of(dest);
        // SAFETY: `dest` and `source` are parts of symmetric objects. The call writes at most
        // `max_bytes`, which `dest` has.
        let nbytes = unsafe {
            collectives::collect_within(call, team, to, from, count_of(source), max_bytes)
        };
        elements_of::<T>(nbytes)
    }

    /// Copies `source` of all members, which has the same number of elements on each, one after the
    /// other to `dest` of all members (`shmem_fcollect`, §9.10.8).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (mine, all) = (shmem.boxed(shmem.my_pe()), shmem.array(shmem.n_pes()));
    /// shmem.world().all_gather_into(&mine, &all);
    /// assert!(all.to_vec().into_iter().eq(0..shmem.n_pes()));
    /// ```
    ///
    /// # Panics
    /// If `dest` has not the length of all sources together, or if `source` and `dest` overlap but
    /// are not the same elements.
    #[doc(alias = "shmem_fcollect")]
    #[track_caller]
    pub fn all_gather_into<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
    ) {
        let call = call!("Team::all_gather_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        let total = source.len().saturating_mul(self.n_pes());
        if dest.len() != total {
            wrong_length(call, dest.len(), total);
        }
        require_apart(call, dest, source);

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` are parts of symmetric objects, and `dest` has as many bytes
        // as all sources together, as just checked.
        unsafe { collectives::fcollect(call, team, to, from, count_of(source)) };
    }

    /// Exchanges blocks: block `l` of `source` of member `k` is copied to block `k` of `dest` of
    /// member `l` (`shmem_alltoall`, §9.10.5). `source` and `dest` each consist of a block for each
    /// member, all of the same length.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let n = shmem.n_pes();
    /// let (outbox, inbox) = (shmem.array::<usize>(n), shmem.array(n));
    /// outbox.fill(shmem.my_pe());
    /// shmem.world().all_to_all_into(&outbox, &inbox);
    /// assert!(inbox.to_vec().into_iter().eq(0..n));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ or are no multiple of the number of members, or if `source` and `dest`
    /// overlap but are not the same elements.
    #[doc(alias = "shmem_alltoall")]
    #[track_caller]
    pub fn all_to_all_into<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
    ) {
        let call = call!("Team::all_to_all_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        let n_pes = self.n_pes();
        require_same_length(call, dest.len(), source.len());
        if !dest.len().is_multiple_of(n_pes) {
            wrong_length(call, dest.len(), dest.len().next_multiple_of(n_pes));
        }
        require_apart(call, dest, source);

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        let block = ElementCount::of::<T>(source.len() / n_pes);
        // SAFETY: `dest` and `source` are parts of symmetric objects, and consist of a block for
        // each member, as just checked.
        unsafe { collectives::alltoall(call, team, to, from, block) };
    }

    /// Exchanges blocks as [`all_to_all_into`](Self::all_to_all_into), whose elements are not
    /// adjacent: `strides.count` elements for each member, `strides.source` apart in `source` and
    /// `strides.dest` apart in `dest` (`shmem_alltoalls`, §9.10.6).
    ///
    /// ```
    /// # use shmem::Strides;
    /// # let shmem = shmem::init();
    /// let n = shmem.n_pes();
    /// let (outbox, inbox) = (shmem.array::<usize>(n), shmem.array(2 * n));
    /// outbox.fill(shmem.my_pe());
    /// // One element for each PE, which goes to every second place.
    /// let strides = Strides::new(1).dest(2);
    /// shmem.world().all_to_all_strided_into(&outbox, &inbox, strides);
    /// assert_eq!(inbox[2 * (n - 1)].load(), n - 1);
    /// ```
    ///
    /// # Panics
    /// If `strides.block` is not 1, if not all elements are in both, or if `source` and `dest`
    /// overlap but are not the same elements.
    #[doc(alias = "shmem_alltoalls")]
    #[track_caller]
    pub fn all_to_all_strided_into<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        strides: Strides,
    ) {
        let call = call!("Team::all_to_all_strided_into");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        if strides.block != 1 {
            mistake!(
                call,
                "the blocks of argument strides have {} elements; pass single ones, of block 1",
                strides.block
            );
        }
        let of_all = Strides {
            count: strides.count.saturating_mul(self.n_pes()),
            ..strides
        };
        of_all.require_in_span(call, "destination", dest.len(), strides.dest);
        of_all.require_in_span(call, "source", source.len(), strides.source);
        require_apart(call, dest, source);

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        let dst = strides.dest as isize;
        let sst = strides.source as isize;
        let nbytes = size_of::<T>();
        // SAFETY: `dest` and `source` are parts of symmetric objects, and the elements for all
        // members are within them, as just checked.
        unsafe { collectives::alltoalls(call, team, to, from, dst, sst, strides.count, nbytes) };
    }

    /// Exchanges blocks whose lengths differ: block `l` of member `k` is copied to `dest` of member
    /// `l`, from the element `dest_offsets[k]` of member `l` on (`shmemx_alltoallv`, an extension).
    /// Returns the number of elements received from each member.
    ///
    /// The job ends with a message if a block does not fit. Blocks received from two members must
    /// not overlap.
    ///
    /// ```
    /// # use shmem::Blocks;
    /// # let shmem = shmem::init();
    /// let n = shmem.n_pes();
    /// let (outbox, inbox) = (shmem.boxed(shmem.my_pe()), shmem.array(n));
    /// // The same element goes to each PE, which has a place for each sender.
    /// let (offsets, counts) = (vec![0; n], vec![1; n]);
    /// let blocks = Blocks::new(&offsets, &counts);
    /// let places: Vec<usize> = (0..n).collect();
    /// let received = shmem.world().all_to_all_blocks_at(&outbox, blocks, &inbox, &places);
    /// assert_eq!((received, inbox.to_vec()), (vec![1; n], places));
    /// ```
    ///
    /// # Panics
    /// If `blocks` or `dest_offsets` has not one entry for each member, if a block is not within
    /// `source`, or if `source` and `dest` overlap.
    #[doc(alias = "shmemx_alltoallv")]
    #[doc(alias = "shmemx_team_alltoallvmem")]
    #[doc(alias = "all_to_all_varcount_into")]
    #[track_caller]
    pub fn all_to_all_blocks_at<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        blocks: Blocks<'_>,
        dest: &(impl AsSymSlice<T> + ?Sized),
        dest_offsets: &[usize],
    ) -> Vec<usize> {
        let call = call!("Team::all_to_all_blocks_at");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        let n_pes = self.n_pes();
        require_disjoint(call, dest, source);
        if dest_offsets.len() != n_pes {
            wrong_length(call, dest_offsets.len(), n_pes);
        }

        let blocks = self.blocks_in_bytes::<T>(call, source.len(), blocks);
        let from = blocks.of_source(source);
        let to = TargetBlocks {
            target: dest.as_ptr().cast(),
            nbytes: bytes_of(dest),
        };
        let offsets = all_in_bytes::<T>(dest_offsets);
        let mut received_bytes = vec![0; n_pes];

        let team = self.handle().into();
        let sizes = received_bytes.as_mut_ptr();
        // SAFETY: `offsets`, `received_bytes` and the arrays of `from` have an entry for each
        // member. All blocks are within `source`, and `to` is `dest` with its length.
        unsafe { alltoallv::alltoallv(call, team, to, offsets.as_ptr(), sizes, from) };

        received_bytes.into_iter().map(elements_of::<T>).collect()
    }

    /// Exchanges adjacent blocks whose lengths differ: the first `counts[0]` elements of `source`
    /// are for member 0, the next `counts[1]` for member 1, and so on. Stores the blocks received
    /// in `dest` one after the other, in the order of the members, and returns the number of
    /// elements received (`shmemx_alltoallv_packed`, an extension). `dest` has the same length on
    /// all members.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (outbox, inbox) = (shmem.array::<u32>(20), shmem.array::<u32>(20));
    /// // One element for each PE, and a second one for PE 0.
    /// let mut counts = vec![1; shmem.n_pes()];
    /// counts[0] = 2;
    /// let received = shmem.world().all_to_all_blocks(&outbox, &counts, &inbox);
    /// assert_eq!(received, counts[shmem.my_pe()] * shmem.n_pes());
    /// ```
    ///
    /// # Panics
    /// If `counts` has not one entry for each member, if `source` has fewer elements than the sum
    /// of the counts, or if `source` and `dest` overlap.
    #[doc(alias = "shmemx_alltoallv_packed")]
    #[doc(alias = "all_to_all_varcount_into")]
    #[track_caller]
    pub fn all_to_all_blocks<T: PlainData>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        counts: &[usize],
        dest: &(impl AsSymSlice<T> + ?Sized),
    ) -> usize {
        let call = call!("Team::all_to_all_blocks");
        let dest = dest.as_sym_slice();
        let source = source.as_sym_slice();
        require_disjoint(call, dest, source);

        let blocks = self.adjacent_blocks::<T>(call, source.len(), counts);
        let from = blocks.of_source(source);
        let nbytes = bytes_of(dest);
        let to = TargetBlocks {
            target: dest.as_ptr().cast(),
            nbytes,
        };

        let team = self.handle().into();
        // SAFETY: the arrays of `from` have an entry for each member. All blocks are within
        // `source`, and `to` is `dest` with its length.
        let received = unsafe { alltoallv::alltoallv_packed(call, team, to, nbytes, from) };
        elements_of::<T>(received)
    }

    /// Converts the lengths of adjacent blocks of a source of `len` elements. Panics unless there
    /// is a block for each member, and all are within the source.
    #[track_caller]
    pub(crate) fn adjacent_blocks<T: PlainData>(
        &self,
        call: Call,
        len: usize,
        counts: &[usize],
    ) -> BlocksInBytes {
        let mut offsets = Vec::with_capacity(counts.len());
        let mut end = 0usize;
        for &count in counts {
            offsets.push(end);
            end = end.saturating_add(count);
        }
        self.blocks_in_bytes::<T>(call, len, Blocks::new(&offsets, counts))
    }

    /// Converts the offsets and lengths of blocks of a source of `len` elements. Panics unless
    /// there is a block for each member, and all are within the source.
    #[track_caller]
    fn blocks_in_bytes<T: PlainData>(
        &self,
        call: Call,
        len: usize,
        blocks: Blocks<'_>,
    ) -> BlocksInBytes {
        let Blocks { offsets, counts } = blocks;
        let n_pes = self.n_pes();
        for entries in [offsets.len(), counts.len()] {
            if entries != n_pes {
                wrong_length(call, entries, n_pes);
            }
        }

        let mut needed = 0;
        for (&first, &count) in offsets.iter().zip(counts) {
            // A sum beyond the maximum becomes the maximum, which no source has.
            needed = needed.max(first.saturating_add(count));
        }
        if needed > len {
            wrong_length(call, len, needed);
        }

        BlocksInBytes {
            offsets: all_in_bytes::<T>(offsets),
            sizes: all_in_bytes::<T>(counts),
        }
    }

    /// Combines `source` of all members element by element, and stores the result in `dest` of all
    /// members (`shmem_and_reduce` and others, §9.10.9).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (own, most) = (shmem.array::<f64>(8), shmem.array::<f64>(8));
    /// own.fill(0.5);
    /// shmem.world().all_reduce_into(&own, &most, shmem::Max);
    /// assert_eq!(most.to_vec(), [0.5; 8]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, or if `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmem_sum_reduce")]
    #[doc(alias = "shmem_max_reduce")]
    #[doc(alias = "shmem_min_reduce")]
    #[doc(alias = "shmem_prod_reduce")]
    #[doc(alias = "shmem_and_reduce")]
    #[doc(alias = "shmem_or_reduce")]
    #[doc(alias = "shmem_xor_reduce")]
    #[track_caller]
    pub fn all_reduce_into<T: PlainData, O: Operator<T>>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) {
        let call = call!("Team::all_reduce_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.combine_into::<T, O>(call, reductions::reduce, source, dest);
    }

    /// Combines `source` of the members up to this one element by element, and stores the results
    /// in `dest` (`shmem_sum_inscan`, §9.10.10, whose only operator is the sum).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (count, end) = (shmem.boxed(10), shmem.boxed(0));
    /// shmem.world().inclusive_scan_into(&count, &end, shmem::Sum);
    /// assert_eq!(end.load(), 10 * (shmem.my_pe() + 1));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, or if `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmem_sum_inscan")]
    #[doc(alias = "scan_into")]
    #[track_caller]
    pub fn inclusive_scan_into<T: PlainData, O: Operator<T>>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) {
        let call = call!("Team::inclusive_scan_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.combine_into::<T, O>(call, reductions::inscan, source, dest);
    }

    /// Combines the `source` of all members before this one, element by element, into `dest`
    /// (`shmem_sum_exscan`, §9.10.10). The first member gets the identity of the operator:
    ///
    /// - zero for [`Sum`](crate::Sum), [`Or`](crate::Or) and [`Xor`](crate::Xor), one for
    ///   [`Prod`](crate::Prod), and all bits set for [`And`](crate::And);
    /// - for [`Max`](crate::Max) the minimum of the type, for [`Min`](crate::Min) its maximum; for
    ///   floating-point numbers, negative and positive infinity.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (count, start) = (shmem.boxed(10), shmem.boxed(0));
    /// shmem.world().exclusive_scan_into(&count, &start, shmem::Sum);
    /// assert_eq!(start.load(), 10 * shmem.my_pe());
    /// ```
    ///
    /// # Panics
    /// If the lengths differ, or if `source` and `dest` overlap but are not the same elements.
    #[doc(alias = "shmem_sum_exscan")]
    #[track_caller]
    pub fn exclusive_scan_into<T: PlainData, O: Operator<T>>(
        &self,
        source: &(impl AsSymSlice<T> + ?Sized),
        dest: &(impl AsSymSlice<T> + ?Sized),
        _op: O,
    ) {
        let call = call!("Team::exclusive_scan_into");
        let source = source.as_sym_slice();
        let dest = dest.as_sym_slice();
        self.combine_into::<T, O>(call, reductions::exscan, source, dest);
    }

    /// Carries out a routine that combines elements of the members.
    #[track_caller]
    fn combine_into<T: PlainData, O: Operator<T>>(
        &self,
        call: Call,
        routine: CombiningRoutine,
        source: &SymSlice<T>,
        dest: &SymSlice<T>,
    ) {
        require_same_length(call, dest.len(), source.len());
        require_apart(call, dest, source);

        let team = self.handle().into();
        let to = dest.as_ptr().cast();
        let from = source.as_ptr().cast();
        // SAFETY: `dest` and `source` are parts of symmetric objects with the same number of
        // elements, as just checked, which have the type that `O` combines.
        unsafe { routine(call, team, to, from, source.len(), O::COMBINE) };
    }
}

/// A routine of the runtime that combines elements of the members of a team.
type CombiningRoutine = unsafe fn(
    Call,
    collectives::TeamOrActiveSet,
    *mut u8,
    *const u8,
    usize,
    &'static Combine,
) -> c_int;

/// Blocks of an array, in bytes, with an entry for each member in both lists.
pub(crate) struct BlocksInBytes {
    pub(crate) offsets: Vec<usize>,
    pub(crate) sizes: Vec<usize>,
}

impl BlocksInBytes {
    /// Returns these blocks of `source` in the runtime's form, whose pointers are valid as long as
    /// this exists.
    fn of_source<T: PlainData>(&self, source: &SymSlice<T>) -> SourceBlocks {
        SourceBlocks {
            source: source.as_ptr().cast(),
            offsets: self.offsets.as_ptr(),
            sizes: self.sizes.as_ptr(),
        }
    }
}

pub(crate) fn count_of<T: PlainData>(elements: &SymSlice<T>) -> ElementCount {
    ElementCount::of::<T>(elements.len())
}

pub(crate) fn bytes_of<T: PlainData>(elements: &SymSlice<T>) -> usize {
    elements.len() * size_of::<T>()
}

/// Converts numbers of elements to numbers of bytes. One that overflows becomes the maximum, which
/// fits nowhere.
fn all_in_bytes<T>(numbers: &[usize]) -> Vec<usize> {
    numbers
        .iter()
        .map(|nelems| nelems.saturating_mul(size_of::<T>()))
        .collect()
}

/// Returns the number of elements in `nbytes` bytes: 0 if elements have no bytes, as those of `()`.
pub(crate) fn elements_of<T>(nbytes: usize) -> usize {
    nbytes.checked_div(size_of::<T>()).unwrap_or(0)
}

/// Panics unless both views start at the same element, or have none in common.
#[track_caller]
pub(crate) fn require_apart<T: PlainData>(call: Call, dest: &SymSlice<T>, source: &SymSlice<T>) {
    if overlap(dest, source) && dest.as_ptr().addr() != source.as_ptr().addr() {
        mistake!(
            call,
            "arguments dest and source overlap; pass the same elements for both, or elements that do not overlap"
        )
    }
}

/// Panics if both views have an element in common.
#[track_caller]
pub(crate) fn require_disjoint<T: PlainData>(call: Call, dest: &SymSlice<T>, source: &SymSlice<T>) {
    if overlap(dest, source) {
        mistake!(
            call,
            "arguments dest and source overlap; pass elements that do not overlap"
        )
    }
}

fn overlap<T: PlainData>(dest: &SymSlice<T>, source: &SymSlice<T>) -> bool {
    let to = dest.as_ptr().addr();
    let from = source.as_ptr().addr();
    to < from + bytes_of(source) && from < to + bytes_of(dest)
}

#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn wrong_length(call: Call, len: usize, needed: usize) -> ! {
    mistake!(
        call,
        "an argument has {len} elements, but {needed} are needed; slice or enlarge it"
    )
}
