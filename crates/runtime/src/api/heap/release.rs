//! Deferred frees (an extension): a PE releases a block by itself, in any order and on any thread,
//! and a collective call frees the blocks that all PEs have released.
//!
//! The allocator records which blocks this PE has released. All PEs have the same blocks in the
//! same order of addresses. So a PE says by one bit for each block what it has released, and the
//! AND of the bits of all PEs says what can be freed. All free it in the same order, so that their
//! allocators stay alike.

use super::{fail_unusable, free_block, require_no_buffer, with_allocator};
use crate::coll::collectives::heap_barrier;
use crate::coll::combine::Combine;
use crate::coll::heap_change::HeapChange;
use crate::coll::private::{self, ReductionKind};
use crate::own_pe::{self, Caller, OwnPe};
use core::ffi::c_void;
use rushmem_communication::access::order;
use rushmem_pe::call::{Call, thread};
use rushmem_pe::job::Job;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::memory::checks;
use rushmem_pe::process;
use std::ptr::with_exposed_provenance_mut;

/// The operator that keeps the bits that all PEs have.
static ALL_HAVE: Combine = Combine::and::<u64>();

/// `shmemx_release`: this PE does not use a block any more. Other PEs may use their copies, and
/// this PE's, until they release it, too. Waits for no PE. Does nothing for a null pointer, and
/// unless the library is initialized: an object may outlive the library, or be destroyed in a child
/// of `fork`.
pub fn release(call: Call, ptr: *mut c_void) {
    if process::inits() == 0 || ptr.is_null() {
        return;
    }

    let pe = own_pe::require(call);
    require_no_buffer(pe, call, ptr);
    release_block(pe.job(), call, ptr);
}

/// Releases a block of the PE that has this job.
pub(crate) fn release_block(job: &Job, call: Call, ptr: *mut c_void) {
    let released = match &mut *job.allocator() {
        Some(allocator) => allocator.release(call.name(), ptr.cast()),
        None => return,
    };
    checks::forget_blocks();
    released.unwrap_or_else(|why| fail_unusable(call, job, ptr, why));
}

/// `shmemx_reclaim`: frees the blocks that all PEs have released. Returns the sum of their sizes in
/// bytes. Collective.
pub fn reclaim(caller: impl Caller) -> usize {
    let (pe, call) = caller.enter();
    free_released(pe, call, HeapChange::Reclaim(0))
}

/// Frees the blocks that all PEs have released, since there is no room for `nbytes` bytes.
/// Collective: the heaps of all PEs are alike, so none has room.
pub(super) fn make_room(pe: &'static OwnPe, call: Call, nbytes: usize) {
    free_released(pe, call, HeapChange::Reclaim(nbytes as u64));
}

fn free_released(pe: &'static OwnPe, call: Call, change: HeapChange) -> usize {
    let mut starts = Vec::new();
    let mut released = Vec::new();
    with_allocator(pe.job(), |allocator| {
        for (block, is_released) in allocator.releases() {
            if is_released {
                released.push((starts.len(), block.clone()));
            }
            starts.push(block.start);
        }
    });

    let mut bits = vec![0_u64; starts.len().div_ceil(64)];
    for (number, block) in &released {
        bits[number / 64] |= 1 << (number % 64);
        if thread::has_requests() {
            pe.requests.complete_on(block.clone());
        }
    }
    if !released.is_empty() {
        // What this PE has issued may be on its way to the blocks.
        order::complete_all_of(pe.links, call);
    }

    let n_blocks = [("blocks", starts.len() as u64)];
    heap_barrier((pe, call), change, &n_blocks);
    let memory = bytemuck::cast_slice_mut(&mut bits);
    let kind = ReductionKind::AllReduce;
    private::combine((pe, call), TeamHandle::WORLD, memory, &ALL_HAVE, kind);

    let mut nbytes = 0;
    for (number, start) in starts.into_iter().enumerate() {
        if bits[number / 64] >> (number % 64) & 1 != 0 {
            nbytes += free_block(call, pe.links, with_exposed_provenance_mut(start));
        }
    }
    nbytes
}
