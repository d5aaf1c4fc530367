//! A block of the symmetric heap: a header, which the PEs use among themselves, and the elements.
//!
//! All PEs allocate and free the same blocks in the same order, which `agreement` proves. The
//! header is the flags of the barriers around an epoch, which are the object's own: those of the
//! team would let a PE in that is at another object.
#![allow(unsafe_code)]

use crate::agreement::{AgreementStep, Barrier, EnteredStep};
use crate::element::Symmetric;
use crate::job::end_if_panicking;
use rushmem_runtime::{Call, DefaultContext, collectives, heap, order, requests, setup, signal};
use std::any::type_name;
use std::marker::PhantomData;

/// Elements begin at a cache line of their own, so that no two objects share one.
const LINE: usize = 64;

/// A block, which is freed when it is dropped. It stays on the thread that may call the library.
pub(crate) struct SymBlock<'s> {
    /// The flags: one for each round of a dissemination barrier.
    header: *mut u64,
    data: *mut u8,
    /// Bytes of the elements.
    nbytes: usize,
    /// Barriers on the flags so far.
    barriers: u64,
    shmem: PhantomData<(&'s (), *const ())>,
}

impl<'s> SymBlock<'s> {
    /// Zero elements, as many on each PE. `None` when there is no room, on all PEs.
    pub(crate) fn allocate<T: Symmetric>(call: Call, len: usize) -> Option<SymBlock<'s>> {
        let n_pes = setup::n_pes(call) as u32;
        let alignment = align_of::<T>().max(LINE);
        // A team of one PE has a block, too, and so has an object of no bytes.
        let words = (rounds(n_pes) as usize).max(1);
        let header_bytes = (words * size_of::<u64>()).next_multiple_of(alignment);
        let nbytes = size_of::<T>().checked_mul(len)?;
        let block_bytes = nbytes.checked_add(header_bytes)?;
        let entered = EnteredStep::new(call);
        let start = heap::zeroed(call, alignment, block_bytes);
        if start.is_null() {
            return None;
        }
        let data = start.cast::<u8>().wrapping_add(header_bytes);
        let (header, shmem) = (start.cast(), PhantomData);
        let block = SymBlock { header, data, nbytes, barriers: 0, shmem };
        let layout = [block.offset(), block_bytes as u64, alignment as u64, digest::<T>(len)];
        entered.compare(
            AgreementStep::Allocate(layout),
            "allocates something else; all PEs allocate objects of the same type and length, in the same order",
        );
        collectives::barrier_all(call);
        Some(block)
    }

    /// Returns its elements, of the type and number that were allocated.
    #[inline(always)]
    pub(crate) fn data<T>(&self) -> *mut T {
        self.data.cast()
    }

    /// Returns where it begins in the heap.
    fn offset(&self) -> u64 {
        heap::offset(call!("offset of an object"), self.header.cast())
    }

    /// Completes what this PE has issued: the non-blocking collectives on this block, of any team,
    /// and every operation of any context. A program may have leaked what would have waited for
    /// them.
    fn complete(&self, call: Call) {
        let start = self.data.addr();
        requests::complete_on(start..start + self.nbytes);
        order::local_complete(call);
    }

    /// Completes what this PE has issued on any context, and waits until all PEs have done so for
    /// this block.
    pub(crate) fn barrier(&mut self, call: Call) {
        self.complete(call);
        order::quiet(call, DefaultContext);
        self.barriers += 1;
        let barrier = Barrier::enter();
        let (n_pes, me) = (setup::n_pes(call) as u32, setup::my_pe(call) as u32);
        for round in 0..rounds(n_pes) {
            let flag = self.header.wrapping_add(round as usize);
            let peer = (u64::from(me) + (1 << round)) % u64::from(n_pes);
            // SAFETY: a word of the header, which nothing else accesses.
            unsafe { signal::set(call, DefaultContext, flag, self.barriers, peer as i32) };
            // SAFETY: a word of the header, to which only a peer writes, atomically.
            unsafe { barrier.wait(call, flag, self.barriers) };
        }
    }
}

impl Drop for SymBlock<'_> {
    fn drop(&mut self) {
        end_if_panicking();
        let call = call!("drop of a symmetric object");
        let entered = EnteredStep::new(call);
        self.complete(call);
        let mistake = "does not drop the same object; all PEs drop their objects in the same order";
        entered.compare(AgreementStep::Drop(self.offset()), mistake);
        let start = self.header;
        // SAFETY: allocated above and freed once; all PEs drop it, as the barrier of this call
        // completes the proof of, so its views have ended everywhere, and what was issued is
        // complete.
        unsafe { heap::free(call, start.cast()) };
    }
}

/// Rounds of a dissemination barrier.
fn rounds(n_pes: u32) -> u32 {
    n_pes.next_power_of_two().trailing_zeros()
}

/// Returns what a block is for.
fn digest<T>(len: usize) -> u64 {
    let name = type_name::<T>().bytes().map(u64::from);
    // FNV-1a.
    name.chain([size_of::<T>() as u64, len as u64])
        .fold(0xcbf2_9ce4_8422_2325, |hash, part| (hash ^ part).wrapping_mul(0x0000_0100_0000_01b3))
}
