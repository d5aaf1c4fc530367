//! Transfers of elements and blocks at a constant distance (OpenSHMEM 1.6, §9.6.1.3, §9.6.1.4,
//! §9.6.1.7 and §9.6.1.8).
//!
//! Each call checks once that the blocks are within the source and the destination.
#![allow(unsafe_code)]

use crate::context::{Context, ContextKind};
use crate::element::Plain;
use crate::panics::mistake;
use crate::rma::{Destination, Source};
use crate::symmetric::view::AsElements;
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;
use rushmem_runtime::{Call, rma};

/// The distances between blocks in the destination and in the source (`dst` and `sst` of §9.6.1.3
/// to §9.6.1.8, and of §9.10.6), in elements, not bytes.
///
/// The transfers panic if a block is beyond the source or destination, or if blocks overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// The number of elements from the start of a block to the start of the next one in the
    /// destination: at least the length of a block.
    pub dst: usize,
    /// The same in the source.
    pub sst: usize,
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Copies `nelems` elements: every `strides.sst`-th one of `source` to every `strides.dst`-th
    /// one of `dest` on `pe` (`shmem_iput`, §9.6.1.3).
    #[doc(alias = "shmem_iput")]
    #[inline]
    #[track_caller]
    pub fn iput<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl Source<T>,
        strides: Strides,
        nelems: usize,
        pe: usize,
    ) {
        self.ibput(dest, source, strides, 1, nelems, pe);
    }

    /// Works as [`iput`](Self::iput), for `nblocks` blocks of `bsize` elements instead of elements
    /// (`shmem_ibput`, §9.6.1.4).
    #[doc(alias = "shmem_ibput")]
    #[inline]
    #[track_caller]
    pub fn ibput<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl Source<T>,
        strides: Strides,
        bsize: usize,
        nblocks: usize,
        pe: usize,
    ) {
        let (dest, (from, len)) = (dest.into(), source.parts());
        let Strides { dst, sst } = strides;
        require_in_span(call!("ibput"), "dest", dest.len(), dst, bsize, nblocks);
        require_in_span(call!("ibput"), "source", len, sst, bsize, nblocks);
        if size_of::<T>() == 0 {
            return;
        }
        let (from, to) = (from.cast::<Plain<T>>(), dest.as_ptr().cast());
        let (dst, sst, call) = (dst as isize, sst as isize, call!("ibput"));
        let pe = self.existing(call, pe);
        // SAFETY: all blocks are within both, as just checked; the source is borrowed until the end
        // of the call.
        unsafe { rma::ibput(call, self.handle(), to, from, dst, sst, bsize, nblocks, pe) }
    }

    /// Copies `nelems` elements of `source` on `pe` to `dest`, which are `strides` apart
    /// (`shmem_iget`, §9.6.1.7).
    #[doc(alias = "shmem_iget")]
    #[inline]
    #[track_caller]
    pub fn iget<'a, T: Pod>(
        &self,
        dest: impl Destination<T>,
        source: impl AsElements<'a, T>,
        strides: Strides,
        nelems: usize,
        pe: usize,
    ) {
        self.ibget(dest, source, strides, 1, nelems, pe);
    }

    /// Works as [`iget`](Self::iget), for `nblocks` blocks of `bsize` elements instead of elements
    /// (`shmem_ibget`, §9.6.1.8).
    #[doc(alias = "shmem_ibget")]
    #[inline]
    #[track_caller]
    pub fn ibget<'a, T: Pod>(
        &self,
        mut dest: impl Destination<T>,
        source: impl AsElements<'a, T>,
        strides: Strides,
        bsize: usize,
        nblocks: usize,
        pe: usize,
    ) {
        let (source, (to, len)) = (source.into(), dest.parts());
        let Strides { dst, sst } = strides;
        require_in_span(call!("ibget"), "dest", len, dst, bsize, nblocks);
        require_in_span(call!("ibget"), "source", source.len(), sst, bsize, nblocks);
        if size_of::<T>() == 0 {
            return;
        }
        let (from, to) = (source.as_ptr().cast::<Plain<T>>(), to.cast());
        let (dst, sst, call) = (dst as isize, sst as isize, call!("ibget"));
        let pe = self.existing(call, pe);
        // SAFETY: all blocks are within both, as just checked; the destination is borrowed until
        // the end of the call.
        unsafe { rma::ibget(call, self.handle(), to, from, dst, sst, bsize, nblocks, pe) }
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
