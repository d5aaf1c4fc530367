//! A block of the symmetric heap: a header, which only this crate accesses, and the elements.
//!
//! All PEs allocate the same blocks in the same order, which `agreement` checks, and drop them in
//! any order. A drop releases the block and waits for no PE: a program may drop its objects when it
//! returns from `main` because of an error, while the other PEs are in another call. So the next
//! allocation frees the blocks that all PEs have dropped. The header has the flags of the barriers
//! around an epoch. Each object has flags of its own: a PE in a barrier of another object must not
//! count as one in this barrier.
#![allow(unsafe_code)]

use crate::agreement::{AgreementStep, Barrier, EnteredStep};
use crate::element::Element;
use crate::panics::end_if_panicking;
use rushmem_runtime::{
    Call, DefaultContext, collectives, digest_of_bytes, heap, order, requests, setup, signal,
};
use std::any::type_name;
use std::marker::PhantomData;
use std::ops::Range;

/// What the message says of another PE that is not in the same allocation.
const ALLOCATES_ELSE: &str = "allocates something else, or finalizes; all PEs allocate objects \
    of the same type and length, in the same order";

/// The minimum alignment of elements in bytes: a cache line, so that no two objects share one.
const LINE: usize = 64;

/// A block, which an allocation frees after all PEs have dropped it. It stays on its thread, since
/// its barrier calls the library.
pub(crate) struct SymBlock<'s> {
    /// The flags: one for each round of a dissemination barrier.
    header: *mut u64,
    /// The address of the elements.
    data: *mut u8,
    /// The number of bytes of the elements.
    nbytes: usize,
    /// The number of barriers on the flags so far. A barrier sets the flags to its number, so that
    /// they need not be reset.
    barriers: u64,
    shmem: PhantomData<(&'s (), *const ())>,
}

impl<'s> SymBlock<'s> {
    /// Allocates zero elements, the same number on each PE, for an object that has `whole_len`, the
    /// same number on each PE, too. Returns `None` if there is no room, on all PEs.
    pub(crate) fn allocate<T: Element>(
        call: Call,
        len: usize,
        whole_len: usize,
    ) -> Option<SymBlock<'s>> {
        let n_pes = setup::n_pes(call) as u32;
        let alignment = align_of::<T>().max(LINE);

        // At least one word, so that an object of no bytes in a job of one PE has a block, too.
        let words = (rounds(n_pes) as usize).max(1);
        let header_bytes = (words * size_of::<u64>()).next_multiple_of(alignment);
        let nbytes = size_of::<T>().checked_mul(len)?;
        let block_bytes = nbytes.checked_add(header_bytes)?;

        // First, what all PEs have dropped is freed: the new block may need the room. After the
        // barrier in `reclaim` all PEs have compared their steps, so all reclaim.
        EnteredStep::new(call).compare(AgreementStep::Reclaim, ALLOCATES_ELSE, ALLOCATES_ELSE);
        heap::reclaim(call);

        let entered = EnteredStep::new(call);
        let start = heap::zeroed(call, alignment, block_bytes);
        if start.is_null() {
            return None;
        }
        let block = SymBlock {
            header: start.cast(),
            data: start.cast::<u8>().wrapping_add(header_bytes),
            nbytes,
            barriers: 0,
            shmem: PhantomData,
        };

        let step = AgreementStep::Allocate {
            offset: block.offset(),
            nbytes: block_bytes as u64,
            alignment: alignment as u64,
            digest: digest_of_type::<T>(whole_len),
        };
        entered.compare(step, ALLOCATES_ELSE, ALLOCATES_ELSE);
        // No PE accesses the block of another one before that PE has compared.
        collectives::barrier_all(call);
        Some(block)
    }

    /// Returns the address of the elements, which have the type that was allocated.
    #[inline(always)]
    pub(crate) fn data<T>(&self) -> *mut T {
        self.data.cast()
    }

    /// Returns the offset of the block in the heap.
    fn offset(&self) -> u64 {
        heap::offset(call!("offset of an object"), self.header.cast())
    }

    /// Completes the operations that this PE has issued on any context, and waits until all PEs
    /// have called this for the same block.
    pub(crate) fn barrier(&mut self, call: Call) {
        let start = self.data.addr();
        complete(call, start..start + self.nbytes);
        order::quiet(call, DefaultContext);

        // In each round a PE sets the flag of the peer that is twice as far away as in the round
        // before, and waits for its own. After the last round it has heard of all PEs, directly or
        // through others. A peer that is already in the next barrier has set a larger value, so
        // the wait accepts that, too.
        self.barriers += 1;
        let barrier = Barrier::enter();
        let n_pes = setup::n_pes(call) as u32;
        let me = setup::my_pe(call) as u32;
        for round in 0..rounds(n_pes) {
            let flag = self.header.wrapping_add(round as usize);
            let peer = (u64::from(me) + (1 << round)) % u64::from(n_pes);
            // SAFETY: `flag` is a word of the header, which has one for each round, and which only
            // these signals access.
            unsafe { signal::set(call, DefaultContext, flag, self.barriers, peer as i32) };
            // SAFETY: `flag` is an aligned word of the header, which is in the symmetric heap.
            unsafe { barrier.wait(call, flag, self.barriers) };
        }
    }
}

impl Drop for SymBlock<'_> {
    fn drop(&mut self) {
        end_if_panicking();
        heap::release(call!("the drop of an object"), self.header.cast());
    }
}

/// Completes what this PE has issued: the non-blocking collectives on these addresses, of any team,
/// and all operations of any context. Usually they are complete already, but the program may have
/// leaked the object whose drop completes them.
pub(crate) fn complete(call: Call, elements: Range<usize>) {
    requests::complete_on(elements);
    order::complete_all(call);
}

/// Returns the number of rounds of a dissemination barrier.
fn rounds(n_pes: u32) -> u32 {
    n_pes.next_power_of_two().trailing_zeros()
}

/// Returns a digest of the type and the number of an object's elements. The name of a type need not
/// be unique, so its size is in the digest, too.
pub(crate) fn digest_of_type<T>(len: usize) -> u64 {
    let name = type_name::<T>().bytes();
    let size = size_of::<T>().to_le_bytes();
    let len = len.to_le_bytes();
    digest_of_bytes(name.chain(size).chain(len))
}
