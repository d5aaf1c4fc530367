//! Collectives over the members of a team (OpenSHMEM 1.6, §9.10), on symmetric memory.
//!
//! All members call with views of the same elements of the same objects, unless a routine says that
//! lengths may differ. Until a call returns, any
//! member may read `source` and write to `dest` of any other member that has called, so the program
//! must not access them meanwhile: it would read old or new values. `dest` is `source`, or has no
//! element in common with it. Each routine writes only to the elements that `dest` of this member's
//! call names, on all members. So a mistake in a program leads to wrong values, but not to writes
//! to other memory.
#![allow(unsafe_code)]

use crate::operator::{Operator, Sum};
use crate::panics::mistake;
use crate::rma::require_same_length;
use crate::symmetric::view::{AsElements, SymSlice};
use crate::team::Team;
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;
use rushmem_runtime::alltoallv::{self, TargetBlocks};
use rushmem_runtime::combine::Arithmetic;
use rushmem_runtime::{Call, collectives};

/// Blocks of an array, one for each member of a team. All numbers are numbers of elements, not of
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// The index of the first element of each block.
    pub offsets: &'a [usize],
    /// The number of elements of each block.
    pub counts: &'a [usize],
}

impl<L: ThreadLevel> Team<'_, L> {
    /// Copies `source` of member `root` to `dest` of all members (`shmem_broadcast`, §9.10.7).
    #[track_caller]
    pub fn broadcast<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
        root: usize,
    ) {
        let (dest, source) = (dest.into(), source.into());
        require_same_length(call!("Team::broadcast"), dest.len(), source.len());
        require_apart(call!("Team::broadcast"), dest, source);
        let root = self.root(call!("Team::broadcast"), root) as i32;
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team) = (call!("Team::broadcast"), self.handle().into());
        // SAFETY: equal numbers of bytes, of symmetric objects.
        unsafe { collectives::broadcast(call, team, to, from, bytes_of(source), root) };
    }

    /// Copies `source` of all members, whose lengths may differ, one after the other to `dest` of
    /// all members (`shmem_collect`, §9.10.8). Returns the number of elements of all sources. The
    /// job ends with a message if `dest` has fewer.
    #[track_caller]
    pub fn collect<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) -> usize {
        let (dest, source) = (dest.into(), source.into());
        require_apart(call!("Team::collect"), dest, source);
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team) = (call!("Team::collect"), self.handle().into());
        let max_bytes = bytes_of(dest);
        // SAFETY: symmetric objects; the call writes at most `max_bytes`, which the destination
        // has.
        let nbytes = unsafe {
            collectives::collect_within(call, team, to, from, bytes_of(source), max_bytes)
        };
        elements_of::<T>(nbytes)
    }

    /// Copies `source` of all members, which has the same number of elements on each, one after the
    /// other to `dest` of all members (`shmem_fcollect`, §9.10.8).
    #[track_caller]
    pub fn fcollect<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) {
        let (dest, source) = (dest.into(), source.into());
        let total = source.len().saturating_mul(self.n_pes());
        if dest.len() != total {
            wrong_length(call!("Team::fcollect"), dest.len(), total);
        }
        require_apart(call!("Team::fcollect"), dest, source);
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team) = (call!("Team::fcollect"), self.handle().into());
        // SAFETY: symmetric objects, the destination of as many bytes as all sources have.
        unsafe { collectives::fcollect(call, team, to, from, bytes_of(source)) };
    }

    /// Exchanges blocks: block `l` of `source` of member `k` is copied to block `k` of `dest` of
    /// member `l` (`shmem_alltoall`, §9.10.5). `source` and `dest` each consist of a block for each
    /// member, all of the same length.
    #[track_caller]
    pub fn alltoall<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) {
        let (dest, source) = (dest.into(), source.into());
        require_same_length(call!("Team::alltoall"), dest.len(), source.len());
        let n_pes = self.n_pes();
        if !dest.len().is_multiple_of(n_pes) {
            wrong_length(
                call!("Team::alltoall"),
                dest.len(),
                dest.len().next_multiple_of(n_pes),
            );
        }
        require_apart(call!("Team::alltoall"), dest, source);
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team) = (call!("Team::alltoall"), self.handle().into());
        // SAFETY: symmetric objects, each of as many blocks as there are members.
        unsafe { collectives::alltoall(call, team, to, from, bytes_of(source) / n_pes) };
    }

    /// Works as [`alltoall`](Self::alltoall), for blocks of `nelems` elements that are not
    /// adjacent: the elements are `dst` apart in `dest` and `sst` apart in `source`
    /// (`shmem_alltoalls`, §9.10.6).
    #[track_caller]
    pub fn alltoalls<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
        dst: usize,
        sst: usize,
        nelems: usize,
    ) {
        let (dest, source) = (dest.into(), source.into());
        let elements = nelems.saturating_mul(self.n_pes());
        let call = call!("Team::alltoalls");
        require_in_span(call, "dest", dest.len(), dst, 1, elements);
        require_in_span(call, "source", source.len(), sst, 1, elements);
        require_apart(call, dest, source);
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team, bytes) = (call, self.handle().into(), size_of::<T>());
        let (dst, sst) = (dst as isize, sst as isize);
        // SAFETY: symmetric objects; all elements are within them, as just checked.
        unsafe { collectives::alltoalls(call, team, to, from, dst, sst, nelems, bytes) };
    }

    /// Works as [`alltoall`](Self::alltoall), for blocks whose lengths differ: block `l` of member
    /// `k` is copied to `dest` of member `l`, from the element `dest_offsets[k]` of member `l` on
    /// (`shmemx_alltoallv`, an extension). Returns the number of elements received from each
    /// member.
    ///
    /// The job ends with a message if a block does not fit. Blocks received from two members must
    /// not overlap.
    #[track_caller]
    pub fn alltoallv<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        dest_offsets: &[usize],
        source: impl AsElements<'a, T>,
        blocks: Blocks<'_>,
    ) -> Vec<usize> {
        let (dest, source) = (dest.into(), source.into());
        let (call, n_pes) = (call!("Team::alltoallv"), self.n_pes());
        require_apart(call, dest, source);
        if dest_offsets.len() != n_pes {
            wrong_length(call, dest_offsets.len(), n_pes);
        }
        let places: Vec<usize> = dest_offsets.iter().map(|&at| in_bytes::<T>(at)).collect();
        let [offsets, counts] = self.blocks(call, source, blocks);
        let mut sizes = vec![0; n_pes];
        let target = TargetBlocks {
            target: dest.as_ptr().cast(),
            nbytes: bytes_of(dest),
        };
        let (offsets, counts) = (offsets.as_ptr(), counts.as_ptr());
        let from = alltoallv::SourceBlocks {
            source: source.as_ptr().cast(),
            offsets,
            sizes: counts,
        };
        let (places, received) = (places.as_ptr(), sizes.as_mut_ptr());
        let (call, team) = (call, self.handle().into());
        // SAFETY: an entry for each member in all arrays; the blocks are in the source, and the
        // target is as long as it says.
        unsafe { alltoallv::alltoallv(call, team, target, places, received, from) };
        sizes
            .iter_mut()
            .for_each(|size| *size = elements_of::<T>(*size));
        sizes
    }

    /// Works as [`alltoallv`](Self::alltoallv), but stores the blocks received in `dest` one after
    /// the other, in the order of the members (`shmemx_alltoallv_packed`, an extension). Returns
    /// the number of elements received. `dest` has the same length on all members.
    #[track_caller]
    pub fn alltoallv_packed<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
        blocks: Blocks<'_>,
    ) -> usize {
        let (dest, source) = (dest.into(), source.into());
        let call = call!("Team::alltoallv_packed");
        require_apart(call, dest, source);
        let [offsets, counts] = self.blocks(call, source, blocks);
        let nbytes = bytes_of(dest);
        let target = TargetBlocks {
            target: dest.as_ptr().cast(),
            nbytes,
        };
        let (offsets, sizes) = (offsets.as_ptr(), counts.as_ptr());
        let from = alltoallv::SourceBlocks {
            source: source.as_ptr().cast(),
            offsets,
            sizes,
        };
        let (call, team) = (call, self.handle().into());
        // SAFETY: an entry for each member in both arrays; the blocks are in the source, and the
        // target is as long as it says.
        elements_of::<T>(unsafe { alltoallv::alltoallv_packed(call, team, target, nbytes, from) })
    }

    /// Returns the offsets and lengths of blocks in bytes. Panics unless there
    /// is a block for each member, and all are within `source`.
    #[track_caller]
    fn blocks<T: Pod>(
        &self,
        call: Call,
        source: SymSlice<'_, T>,
        blocks: Blocks<'_>,
    ) -> [Vec<usize>; 2] {
        let Blocks { offsets, counts } = blocks;
        let n_pes = self.n_pes();
        for entries in [offsets.len(), counts.len()] {
            if entries != n_pes {
                wrong_length(call, entries, n_pes);
            }
        }
        let ends = offsets
            .iter()
            .zip(counts)
            .map(|(&first, &count)| first.saturating_add(count));
        if let Some(end) = ends.max().filter(|&end| end > source.len()) {
            wrong_length(call, source.len(), end);
        }
        [offsets, counts].map(|numbers| numbers.iter().map(|&n| in_bytes::<T>(n)).collect())
    }

    /// Combines `source` of all members element by element, and stores the result in `dest` of all
    /// members (`shmem_and_reduce` and others, §9.10.9).
    ///
    /// ```standalone_crate
    /// # use shmem::Max;
    /// # let shmem = shmem::init();
    /// # let (most, own) = (shmem.array::<f64>(8), shmem.array::<f64>(8));
    /// shmem.world().reduce(Max, &most, &own);
    /// ```
    #[track_caller]
    pub fn reduce<'a, T: Pod, O: Operator<T>>(
        &self,
        _op: O,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) {
        let (dest, source) = (dest.into(), source.into());
        require_same_length(call!("Team::reduce"), dest.len(), source.len());
        require_apart(call!("Team::reduce"), dest, source);
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team) = (call!("Team::reduce"), self.handle().into());
        // SAFETY: equal numbers of elements, of the operator's type, in symmetric objects.
        unsafe { collectives::reduce(call, team, to, from, source.len(), O::COMBINE) };
    }

    /// Adds up `source` of the members up to this one element by element, and stores the sums in
    /// `dest` (`shmem_sum_inscan`, §9.10.10). The standard's scans have no other operator.
    #[track_caller]
    pub fn inscan<'a, T: Pod + Arithmetic>(
        &self,
        _op: Sum,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) {
        let (dest, source) = (dest.into(), source.into());
        require_same_length(call!("Team::inscan"), dest.len(), source.len());
        require_apart(call!("Team::inscan"), dest, source);
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team) = (call!("Team::inscan"), self.handle().into());
        // SAFETY: equal numbers of elements, of the operator's type, in symmetric objects.
        unsafe { collectives::inscan(call, team, to, from, source.len(), sum::<T>()) };
    }

    /// Adds up `source` of the members before this one element by element, and stores the sums in
    /// `dest`; they are zero on the first member (`shmem_sum_exscan`, §9.10.10).
    #[track_caller]
    pub fn exscan<'a, T: Pod + Arithmetic>(
        &self,
        _op: Sum,
        dest: impl AsElements<'a, T>,
        source: impl AsElements<'a, T>,
    ) {
        let (dest, source) = (dest.into(), source.into());
        require_same_length(call!("Team::exscan"), dest.len(), source.len());
        require_apart(call!("Team::exscan"), dest, source);
        let (to, from) = (dest.as_ptr().cast(), source.as_ptr().cast());
        let (call, team) = (call!("Team::exscan"), self.handle().into());
        // SAFETY: equal numbers of elements, of the operator's type, in symmetric objects.
        unsafe { collectives::exscan(call, team, to, from, source.len(), sum::<T>()) };
    }
}

/// Returns the operator of scans.
pub(crate) fn sum<T: Pod + Arithmetic>() -> &'static rushmem_runtime::Combine {
    <Sum as crate::operator::Combines<T>>::COMBINE
}

pub(crate) fn bytes_of<T>(elements: SymSlice<'_, T>) -> usize
where
    T: Pod,
{
    elements.len() * size_of::<T>()
}

/// Returns the number of bytes of `nelems` elements. If it overflows, returns the maximum, which
/// fits nowhere.
fn in_bytes<T>(nelems: usize) -> usize {
    nelems.saturating_mul(size_of::<T>())
}

pub(crate) fn elements_of<T>(nbytes: usize) -> usize {
    nbytes.checked_div(size_of::<T>()).unwrap_or(0)
}

/// Panics unless both views start at the same element, or have none in common.
#[track_caller]
pub(crate) fn require_apart<T: Pod>(call: Call, dest: SymSlice<'_, T>, source: SymSlice<'_, T>) {
    let (to, from) = (dest.as_ptr().addr(), source.as_ptr().addr());
    if to != from && to < from + bytes_of(source) && from < to + bytes_of(dest) {
        mistake!(
            call,
            "arguments dest and source overlap; pass the same elements for both, or elements that do not overlap"
        )
    }
}

/// Panics unless `nblocks` blocks of `bsize` elements, `stride` elements
/// apart, fit into an array of `len` elements without overlap.
#[inline]
#[track_caller]
pub(crate) fn require_in_span(
    call: Call,
    argument: &'static str,
    len: usize,
    stride: usize,
    bsize: usize,
    nblocks: usize,
) {
    if nblocks == 0 || bsize == 0 {
        return;
    }
    let end = stride.saturating_mul(nblocks - 1).saturating_add(bsize);
    if stride == 0 || stride < bsize || stride > isize::MAX as usize || end > len {
        beyond(call, argument, len, stride, bsize, nblocks);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn beyond(
    call: Call,
    argument: &'static str,
    len: usize,
    stride: usize,
    bsize: usize,
    nblocks: usize,
) -> ! {
    mistake!(
        call,
        "argument {argument} has {len} elements, in which {nblocks} blocks of {bsize} that are \
         {stride} elements apart do not lie one after the other; make it larger, or the stride at least {bsize} and fitting"
    )
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
