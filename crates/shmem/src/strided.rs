//! Transfers of blocks at a constant distance (OpenSHMEM 1.6, §9.6.1.3, §9.6.1.4, §9.6.1.7 and
//! §9.6.1.8).
//!
//! Each call checks once that the blocks are within the source and the destination.
#![allow(unsafe_code)]

use crate::element::{Element, Plain, PlainData};
use crate::panics::mistake;
use crate::peer::Peer;
use crate::remote::Remote;
use crate::rma::{Destination, Source};
use crate::symmetric::view::SymSlice;
use crate::threads::Threads;
use rushmem_runtime::{Call, rma};

/// Blocks of elements at a constant distance, in the source and in the destination of a transfer
/// (§9.6.1.3 to §9.6.1.8, §9.10.6). All numbers are numbers of elements, not bytes.
///
/// A transfer panics if a block is beyond the source or destination, or if blocks overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "strides say what `put_blocks` and `get_blocks` copy"]
#[non_exhaustive]
pub struct Strides {
    /// The number of blocks (`nelems` and `nblocks` of C).
    pub count: usize,
    /// The number of elements of a block: 1 for single elements (`bsize`).
    pub block: usize,
    /// The number of elements from the start of a block to the start of the next one in the
    /// destination: at least the length of a block (`dst`).
    pub dest: usize,
    /// The same in the source (`sst`).
    pub source: usize,
}

impl<T: Element, C: Threads> Remote<'_, SymSlice<T>, Peer<'_, C>> {
    /// Copies blocks of `source` to blocks of these elements (`shmem_iput`, §9.6.1.3, and
    /// `shmem_ibput`, §9.6.1.4).
    ///
    /// ```
    /// # use shmem::Strides;
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(6);
    /// // Every third element goes to every second one.
    /// let strides = Strides::new(3).dest(2).source(3);
    /// inbox.on(shmem.next()).put_blocks(&[0, 1, 2, 3, 4, 5, 6], strides);
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [0, 0, 3, 0, 6, 0]);
    /// ```
    ///
    /// # Panics
    /// If not all blocks are in both, one after the other.
    #[doc(alias = "shmem_iput")]
    #[doc(alias = "shmem_ibput")]
    #[inline]
    #[track_caller]
    pub fn put_blocks(self, source: impl Source<T>, strides: Strides)
    where
        T: PlainData,
    {
        let call = call!("put_blocks");
        let dest = self.view();
        let elements = source.elements();
        strides.require_in_span(call, "destination", dest.len(), strides.dest);
        strides.require_in_span(call, "source", elements.len(), strides.source);
        // Elements without bytes need no transfer.
        if size_of::<T>() == 0 {
            return;
        }

        let (pe, context) = self.target();
        let to = dest.as_ptr().cast();
        let from = elements.cast::<Plain<T>>();
        let dst = strides.dest as isize;
        let sst = strides.source as isize;
        let Strides { count, block, .. } = strides;
        // SAFETY: all blocks are within `dest` and `source`, as just checked. `source` is borrowed
        // until the end of the call.
        unsafe { rma::ibput(call, context, to, from, dst, sst, block, count, pe) }
    }

    /// Copies blocks of these elements to blocks of `dest` (`shmem_iget`, §9.6.1.7, and
    /// `shmem_ibget`, §9.6.1.8).
    ///
    /// ```
    /// # use shmem::Strides;
    /// # let shmem = shmem::init();
    /// let mine = shmem.array::<u64>(6);
    /// mine.copy_from_slice(&[0, 1, 2, 3, 4, 5]);
    /// shmem.barrier_all();
    /// let mut every_second = [0; 3];
    /// let strides = Strides::new(3).source(2);
    /// mine.on(shmem.next()).get_blocks(&mut every_second, strides);
    /// assert_eq!(every_second, [0, 2, 4]);
    /// ```
    ///
    /// # Panics
    /// If not all blocks are in both, one after the other.
    #[doc(alias = "shmem_iget")]
    #[doc(alias = "shmem_ibget")]
    #[inline]
    #[track_caller]
    pub fn get_blocks(self, mut dest: impl Destination<T>, strides: Strides)
    where
        T: PlainData,
    {
        let call = call!("get_blocks");
        let source = self.view();
        let elements = dest.elements();
        strides.require_in_span(call, "destination", elements.len(), strides.dest);
        strides.require_in_span(call, "source", source.len(), strides.source);
        // Elements without bytes need no transfer.
        if size_of::<T>() == 0 {
            return;
        }

        let (pe, context) = self.target();
        let to = elements.cast::<Plain<T>>();
        let from = source.as_ptr().cast();
        let dst = strides.dest as isize;
        let sst = strides.source as isize;
        let Strides { count, block, .. } = strides;
        // SAFETY: all blocks are within `dest` and `source`, as just checked. `dest` is borrowed
        // until the end of the call.
        unsafe { rma::ibget(call, context, to, from, dst, sst, block, count, pe) }
    }
}

impl Strides {
    /// Returns `count` single elements that are adjacent in the source and the destination.
    ///
    /// ```
    /// let three = shmem::Strides::new(3);
    /// assert_eq!((three.count, three.block, three.dest, three.source), (3, 1, 1, 1));
    /// ```
    pub fn new(count: usize) -> Strides {
        Strides {
            count,
            block: 1,
            dest: 1,
            source: 1,
        }
    }

    /// Makes blocks of `len` elements of the single ones. They are adjacent where their distance is
    /// less than that.
    ///
    /// ```
    /// let pairs = shmem::Strides::new(3).block(2);
    /// assert_eq!((pairs.count, pairs.block, pairs.dest, pairs.source), (3, 2, 2, 2));
    /// ```
    pub fn block(mut self, len: usize) -> Strides {
        self.block = len;
        self.dest = self.dest.max(len);
        self.source = self.source.max(len);
        self
    }

    /// Sets the distance of the blocks in the destination, from start to start.
    ///
    /// ```
    /// # use shmem::Strides;
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u8>(5);
    /// inbox.on(shmem.next()).put_blocks(&[7, 8, 9], Strides::new(3).dest(2));
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [7, 0, 8, 0, 9]);
    /// ```
    pub fn dest(mut self, distance: usize) -> Strides {
        self.dest = distance;
        self
    }

    /// Sets the distance of the blocks in the source, from start to start.
    ///
    /// ```
    /// # use shmem::Strides;
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u8>(2);
    /// inbox.on(shmem.next()).put_blocks(&[7, 0, 9], Strides::new(2).source(2));
    /// shmem.barrier_all();
    /// assert_eq!(inbox.to_vec(), [7, 9]);
    /// ```
    pub fn source(mut self, distance: usize) -> Strides {
        self.source = distance;
        self
    }

    /// Panics unless all blocks, which are `stride` elements apart, fit into `len` elements without
    /// overlap.
    #[inline]
    #[track_caller]
    pub(crate) fn require_in_span(self, call: Call, what: &'static str, len: usize, stride: usize) {
        let Strides { count, block, .. } = self;
        if count == 0 || block == 0 {
            return;
        }

        // A sum beyond the maximum becomes the maximum, which fits nowhere. The runtime takes
        // strides as `isize`.
        let end = stride.saturating_mul(count - 1).saturating_add(block);
        if stride < block || stride > isize::MAX as usize || end > len {
            self.beyond(call, what, len, stride);
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn beyond(self, call: Call, what: &'static str, len: usize, stride: usize) -> ! {
        let Strides { count, block, .. } = self;
        mistake!(
            call,
            "the {what} has {len} elements, in which {count} blocks of {block} that are {stride} \
             elements apart do not lie one after the other; make it larger, or the stride at least \
             {block} and fitting"
        )
    }
}
