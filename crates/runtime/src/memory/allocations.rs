//! Where the program has allocated the blocks of the heap, for hang reports, while the last writes
//! are recorded.
//!
//! Blocks that were allocated by the same calls share a stack, which is read when a report names
//! one of them.

use crate::call::stack;
use crate::memory::symmetric_location;
use crate::process;
use rushmem_explain::status::SymmetricLocation;
use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Maximum numbers of stacks, which take a kilobyte each, and of blocks that are known.
const STACKS: usize = 1 << 10;
const BLOCKS: usize = 1 << 16;

struct Allocations {
    /// By a number of the calls.
    stacks: BTreeMap<u64, Arc<Backtrace>>,
    /// The number for each block, by its offset in the heap.
    blocks: BTreeMap<u64, u64>,
}

static ALLOCATIONS: Mutex<Allocations> =
    Mutex::new(Allocations { stacks: BTreeMap::new(), blocks: BTreeMap::new() });

/// Records that this thread allocates a block, or frees it.
pub(crate) fn record(block: usize, is_allocated: bool) {
    let SymmetricLocation::Heap { offset, .. } = symmetric_location::of_bytes(block, 1) else {
        return;
    };
    if !is_allocated {
        process::lock(&ALLOCATIONS).blocks.remove(&offset);
        return;
    }
    let calls = stack::digest();
    let mut allocations = process::lock(&ALLOCATIONS);
    let is_known = allocations.stacks.contains_key(&calls);
    if allocations.blocks.len() < BLOCKS && (is_known || allocations.stacks.len() < STACKS) {
        let stack = || Arc::new(Backtrace::force_capture());
        allocations.stacks.entry(calls).or_insert_with(stack);
        allocations.blocks.insert(offset, calls);
    }
}

/// Returns the stack of the thread that allocated the block at an offset, if it is known.
pub(crate) fn stack_of(block: u64) -> Option<Arc<Backtrace>> {
    let allocations = process::lock(&ALLOCATIONS);
    allocations.stacks.get(allocations.blocks.get(&block)?).cloned()
}
