//! Locations of words of this PE in a form that other processes understand, for statuses, traces
//! and messages. Also the stack of the calls that have allocated each block of the heap or
//! registered each buffer, which messages and hang reports show. Stacks are recorded only where the
//! last writes are recorded, too.
//!
//! Objects that the same calls have made share a stack. Its debug information is read only when a
//! message names one of the objects.

use crate::call::{location, stack};
use crate::job::Job;
use crate::memory::{address, statics};
use rushmem_explain::status::{HeapBlock, SymmetricLocation};
use rushmem_locate::Stack;
use rushmem_system::lock::lock;
use rushmem_transport::Segment;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Returns the location of a word of `nbytes` bytes.
pub fn of_word(job: &Job, address: *const u8, nbytes: usize) -> SymmetricLocation {
    let mut location = of_bytes(address.addr(), nbytes);
    if let SymmetricLocation::Heap { block, .. } = &mut location {
        *block = block_around(job, address::own_in_heap(address.addr(), nbytes));
    }
    location
}

/// Returns the offset of a word of `nbytes` bytes in the node's shared memory; `None` if the word
/// is not in that memory.
pub fn in_node_memory(job: &Job, address: *const u8, nbytes: usize) -> Option<u64> {
    let (segment, offset) = address::locate(address.addr(), nbytes)?;
    if segment == Segment::Heap {
        return job.memory.offset(job.memory.heap().wrapping_add(offset));
    }
    let start = statics::remapped()?.in_node_memory?;
    Some(start + offset as u64)
}

/// Returns the location of `nbytes` bytes, without the block around them.
#[inline(always)]
pub fn of_bytes(address: usize, nbytes: usize) -> SymmetricLocation {
    match address::locate(address, nbytes) {
        Some((Segment::Heap, offset)) => SymmetricLocation::Heap {
            offset: offset as u64,
            block: None,
        },
        Some((Segment::Static, _)) => SymmetricLocation::Static {
            address: address.wrapping_sub(statics::own().load_address()) as u64,
        },
        _ => SymmetricLocation::Other {
            address: address as u64,
        },
    }
}

/// Returns the location of a symmetric object as text. The text is the same on all PEs.
pub fn on_all_pes(address: usize) -> String {
    match of_bytes(address, 1) {
        SymmetricLocation::Heap { offset, .. } => format!("at heap offset {offset:#x}"),
        SymmetricLocation::Static { address } => format!("at {address:#x} in the program"),
        SymmetricLocation::Other { address } => format!("at {address:#x}"),
    }
}

/// Returns the location of a symmetric word in a trace: its segment in the highest four bits, and
/// its offset, the same on all PEs. Returns `u64::MAX` for a word that is not symmetric.
#[inline]
pub fn in_trace(address: usize) -> u64 {
    match address::locate(address, 1) {
        Some((segment, offset)) => (segment as u64) << 60 | offset as u64,
        None => u64::MAX,
    }
}

/// Returns the registered buffer or the block around an address in the heap; `None` if there is
/// none, or while another thread uses the allocator.
fn block_around(job: &Job, address: usize) -> Option<HeapBlock> {
    if let Some(buffer) = job.map.buffers().find_in_heap(address) {
        return Some(HeapBlock {
            offset: (buffer.in_heap - job.memory.heap().addr()) as u64,
            nbytes: buffer.nbytes as u64,
            is_buffer: true,
        });
    }
    let allocator = job.allocator.try_lock().ok()?;
    let block = allocator.as_ref()?.block_around(address)?;
    Some(HeapBlock {
        offset: block.start as u64,
        nbytes: block.len() as u64,
        is_buffer: false,
    })
}

/// Maximum number of stacks, which take a kilobyte each.
const STACKS: usize = 1 << 10;
/// Maximum number of objects whose stacks are recorded, which take some twenty bytes each besides.
const OBJECTS: usize = 1 << 16;

/// What a call has allocated or registered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    /// The block at an offset of the heap.
    Block(u64),
    /// The buffer at an address of the program. Its place in the heap may change.
    Buffer(usize),
}

struct Allocations {
    /// The stacks, by a digest of the calls.
    stacks: BTreeMap<u64, Arc<Stack>>,
    /// The digest for each object.
    objects: BTreeMap<Object, u64>,
}

static ALLOCATIONS: Mutex<Allocations> = Mutex::new(Allocations {
    stacks: BTreeMap::new(),
    objects: BTreeMap::new(),
});

/// Records that this thread has allocated the block at an address of the heap.
pub fn record_block(block: usize) {
    if let SymmetricLocation::Heap { offset, .. } = of_bytes(block, 1) {
        record(Object::Block(offset));
    }
}

/// Forgets the block at an address of the heap, which is freed.
pub fn forget_block(block: usize) {
    if let SymmetricLocation::Heap { offset, .. } = of_bytes(block, 1) {
        forget(Object::Block(offset));
    }
}

/// Records that this thread has registered the buffer at an address of the program.
pub fn record_buffer(buffer: usize) {
    record(Object::Buffer(buffer));
}

/// Forgets the buffer at an address of the program, whose registration ends.
pub fn forget_buffer(buffer: usize) {
    forget(Object::Buffer(buffer));
}

/// Records that this thread has made an object. Records none beyond the maximum numbers of objects
/// and stacks.
fn record(object: Object) {
    let digest = stack::digest();
    let mut allocations = lock(&ALLOCATIONS);
    // Without room for the new object, an earlier one at the same address must not stay.
    allocations.objects.remove(&object);
    let is_known = allocations.stacks.contains_key(&digest);
    if allocations.objects.len() < OBJECTS && (is_known || allocations.stacks.len() < STACKS) {
        allocations
            .stacks
            .entry(digest)
            .or_insert_with(|| Arc::new(Stack::capture()));
        allocations.objects.insert(object, digest);
    }
}

fn forget(object: Object) {
    lock(&ALLOCATIONS).objects.remove(&object);
}

/// Returns the stack of the thread that allocated a block of the heap or registered a buffer, if it
/// is known.
pub fn stack_of(job: &Job, block: &HeapBlock) -> Option<Arc<Stack>> {
    if !block.is_buffer {
        return recorded(Object::Block(block.offset));
    }
    let in_heap = job.memory.heap().addr() + block.offset as usize;
    let buffer = job.map.buffers().find_in_heap(in_heap)?;
    recorded(Object::Buffer(buffer.start))
}

/// Returns the clause of a message that says where the program has registered the buffer at an
/// address; empty if that is not known.
pub fn registered_at(buffer: usize) -> String {
    let stack = recorded(Object::Buffer(buffer));
    match stack.and_then(|stack| location::line_on_stack(&stack)) {
        Some(line) => format!(" (registered at {line})"),
        None => String::new(),
    }
}

fn recorded(object: Object) -> Option<Arc<Stack>> {
    let allocations = lock(&ALLOCATIONS);
    let digest = allocations.objects.get(&object)?;
    allocations.stacks.get(digest).cloned()
}
