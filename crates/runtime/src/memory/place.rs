//! Where a word of this PE is, in terms that a process outside the PE understands.

use crate::base::job::Job;
use crate::memory::{address, statics};
use rushmem_explain::status::Place;
use rushmem_transport::Segment;

/// The place of the word of `nbytes` bytes at `address`, and its offset in the memory of the node,
/// if it is there.
pub(crate) fn of_word(job: &Job, address: *const u8, nbytes: usize) -> (Place, Option<u64>) {
    match address::place(address.addr(), nbytes) {
        Some((Segment::Heap, offset)) => {
            let place = Place::Heap { offset: offset as u64, block: block(job, address) };
            (place, job.memory.offset(address))
        }
        Some((Segment::Static, offset)) => {
            let in_file = address.addr().wrapping_sub(statics::own().load_address());
            let in_memfd = statics::at().map(|at| at + offset as u64);
            (Place::Static { address: in_file as u64 }, in_memfd)
        }
        _ => (Place::Other { address: address.addr() as u64 }, None),
    }
}

/// The place of a symmetric word in a trace: its segment and offset, so that it is the same on all
/// PEs. A word that is not symmetric has the last place.
pub(crate) fn in_trace(address: usize) -> u64 {
    let place = address::place(address, 1);
    place.map_or(u64::MAX, |(segment, offset)| (segment as u64) << 60 | offset as u64)
}

/// The offset and size of the block around an address in the heap, unless a thread of this PE uses
/// the allocator.
fn block(job: &Job, address: *const u8) -> Option<(u64, u64)> {
    let allocator = job.allocator.try_lock().ok()?;
    let (offset, nbytes) = allocator.as_ref()?.block_around(address.addr())?;
    Some((offset as u64, nbytes as u64))
}
