//! The location of a word of this PE, in terms that a process outside the PE understands.

use crate::job::Job;
use crate::memory::{address, statics};
use rushmem_explain::status::Place;
use rushmem_transport::Segment;

/// The place of the word of `nbytes` bytes at `address`, and its offset in the memory of the node,
/// if it is there.
pub(crate) fn of_word(job: &Job, address: *const u8, nbytes: usize) -> (Place, Option<u64>) {
    match (of_bytes(address.addr(), nbytes), address::place(address.addr(), nbytes)) {
        (Place::Heap { offset, .. }, _) => {
            (Place::Heap { offset, block: block(job, address) }, job.memory.offset(address))
        }
        (place, Some((_, offset))) => {
            let start = statics::remapped().and_then(|remapped| remapped.in_node_memory);
            (place, start.map(|start| start + offset as u64))
        }
        (place, None) => (place, None),
    }
}

/// The place of `nbytes` bytes, without the block around them.
pub(crate) fn of_bytes(address: usize, nbytes: usize) -> Place {
    match address::place(address, nbytes) {
        Some((Segment::Heap, offset)) => Place::Heap { offset: offset as u64, block: None },
        Some((Segment::Static, _)) => {
            Place::Static { address: address.wrapping_sub(statics::own().load_address()) as u64 }
        }
        _ => Place::Other { address: address as u64 },
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
