//! Transfers of elements and blocks at a constant distance (OpenSHMEM 1.6, §9.6.1.3, §9.6.1.4,
//! §9.6.1.7 and §9.6.1.8).
//!
//! The blocks that are accessed lie within both sides, which is checked once, for the whole span.
#![allow(unsafe_code)]

use crate::collectives::in_span;
use crate::context::{Context, ContextKind, number};
use crate::element::Plain;
use crate::rma::{Destination, Source};
use crate::symmetric::view::AsElements;
use crate::thread_level::ThreadLevel;
use bytemuck::Pod;
use rushmem_runtime::rma;

/// Blocks at constant distances (`dst` and `sst` of §9.6.1.3 to §9.6.1.8, and of §9.10.6): where
/// they begin in the destination and in the source. All numbers are numbers of elements, none of
/// bytes.
///
/// The job ends with a message if a block is not inside its side or blocks overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// From the start of a block to that of the next one in the destination: at least the length of
    /// a block.
    pub dst: usize,
    /// The stride in the source.
    pub sst: usize,
}

impl<K: ContextKind, L: ThreadLevel> Context<'_, K, L> {
    /// Copies `nelems` elements of `source` to `dest` on `pe`, each so far from the one before
    /// (`shmem_iput`, §9.6.1.3).
    #[inline]
    #[track_caller]
    pub fn iput<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl Source<T>,
        strides: Strides,
        nelems: usize,
        pe: u32,
    ) {
        self.ibput(dest, source, strides, 1, nelems, pe);
    }

    /// Works as [`iput`](Self::iput), of `nblocks` blocks of `bsize` elements (`shmem_ibput`,
    /// §9.6.1.4).
    #[inline]
    #[track_caller]
    pub fn ibput<'a, T: Pod>(
        &self,
        dest: impl AsElements<'a, T>,
        source: impl Source<T>,
        strides: Strides,
        bsize: usize,
        nblocks: usize,
        pe: u32,
    ) {
        let (dest, (from, len)) = (dest.into(), source.parts());
        let Strides { dst, sst } = strides;
        in_span(call!("ibput"), "dest", dest.len(), dst, bsize, nblocks);
        in_span(call!("ibput"), "source", len, sst, bsize, nblocks);
        if size_of::<T>() == 0 {
            return;
        }
        let (from, to) = (from.cast::<Plain<T>>(), dest.as_ptr().cast());
        let (dst, sst, call, pe) = (dst as isize, sst as isize, call!("ibput"), number(pe));
        // SAFETY: all blocks lie in both; the source stays where it is until the end of the call.
        unsafe { rma::ibput(call, self.handle(), to, from, dst, sst, bsize, nblocks, pe) }
    }

    /// Copies `nelems` elements of `source` on `pe` to `dest`, each so far from the one before
    /// (`shmem_iget`, §9.6.1.7).
    #[inline]
    #[track_caller]
    pub fn iget<'a, T: Pod>(
        &self,
        dest: impl Destination<T>,
        source: impl AsElements<'a, T>,
        strides: Strides,
        nelems: usize,
        pe: u32,
    ) {
        self.ibget(dest, source, strides, 1, nelems, pe);
    }

    /// Works as [`iget`](Self::iget), of `nblocks` blocks of `bsize` elements (`shmem_ibget`,
    /// §9.6.1.8).
    #[inline]
    #[track_caller]
    pub fn ibget<'a, T: Pod>(
        &self,
        mut dest: impl Destination<T>,
        source: impl AsElements<'a, T>,
        strides: Strides,
        bsize: usize,
        nblocks: usize,
        pe: u32,
    ) {
        let (source, (to, len)) = (source.into(), dest.parts());
        let Strides { dst, sst } = strides;
        in_span(call!("ibget"), "dest", len, dst, bsize, nblocks);
        in_span(call!("ibget"), "source", source.len(), sst, bsize, nblocks);
        if size_of::<T>() == 0 {
            return;
        }
        let (from, to) = (source.as_ptr().cast::<Plain<T>>(), to.cast());
        let (dst, sst, call, pe) = (dst as isize, sst as isize, call!("ibget"), number(pe));
        // SAFETY: all blocks lie in both; the destination is borrowed until the end of the call.
        unsafe { rma::ibget(call, self.handle(), to, from, dst, sst, bsize, nblocks, pe) }
    }
}
