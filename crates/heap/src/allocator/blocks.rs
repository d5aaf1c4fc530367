//! Records of the blocks that are allocated, and of the last ones that were freed. Messages about
//! wrong addresses name a block from these records.

use super::guard::GUARD;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;

/// The number of freed blocks that are remembered: some hundred kilobytes of them. An access to a
/// block that was freed earlier is reported without the routine that freed it.
const REMEMBERED: usize = 4096;

/// A block of the heap.
#[derive(Clone, Debug)]
pub struct Block {
    pub(super) start: *mut u8,
    pub(super) nbytes: usize,
    /// Bytes from the start of dlmalloc's block to `start`.
    pub(super) front: usize,
    /// The number of the allocation, counted from 1; the same on every PE.
    pub(super) number: u64,
    /// The name of the routine that allocated the block.
    pub(super) allocated_by: &'static str,
    /// The name of the routine by which this PE has released the block, if it has.
    pub(super) released_by: Option<&'static str>,
}

impl Block {
    pub(super) fn end(&self) -> usize {
        self.start.addr() + self.nbytes
    }

    /// Returns the addresses of its bytes.
    pub fn addresses(&self) -> Range<usize> {
        self.start.addr()..self.end()
    }

    fn has(&self, address: usize) -> bool {
        self.addresses().contains(&address)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Block {
            start,
            nbytes,
            number,
            allocated_by,
            ..
        } = *self;
        write!(
            f,
            "the block of {nbytes} bytes at {start:p} (block {number}, allocated by {allocated_by})"
        )
    }
}

/// The position of bytes that do not lie in one block.
#[derive(Debug)]
pub enum Misplaced {
    /// The bytes begin in a block, and this number of them lie behind its end.
    Beyond(Block, usize),
    /// The bytes begin behind a block, this number of bytes after its end.
    After(Block, usize),
    /// The bytes begin in front of a block, this number of bytes before its start.
    Before(Block, usize),
    /// The bytes begin in a block that this routine has freed.
    Freed(Block, &'static str),
    /// The bytes begin in a block that this PE has released by this routine.
    Released(Block, &'static str),
    /// No block begins before the bytes, or soon behind them.
    Nowhere,
}

/// Formats as the predicate of a sentence whose subject is the bytes.
impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misplaced::Beyond(block, by) => {
                write!(
                    f,
                    "reach {by} bytes past the end of {block}, which ends at {:#x}",
                    block.end()
                )
            }
            Misplaced::After(block, 0) => write!(f, "begin at the end of {block}"),
            Misplaced::After(block, by) => write!(f, "begin {by} bytes past the end of {block}"),
            Misplaced::Before(block, by) => {
                write!(f, "begin {by} bytes before the start of {block}")
            }
            Misplaced::Freed(block, freed_by) => {
                write!(f, "are not allocated: {freed_by} has freed {block}")
            }
            Misplaced::Released(block, released_by) => {
                write!(
                    f,
                    "are in {block}, which this PE has released by {released_by}"
                )
            }
            Misplaced::Nowhere => {
                f.write_str("are not allocated: no block of the symmetric heap is there")
            }
        }
    }
}

/// The allocated blocks, and the last ones that were freed.
#[derive(Default)]
pub(super) struct BlockList {
    /// The allocated blocks, by their starts.
    allocated: BTreeMap<usize, Block>,
    /// The freed blocks, the latest first. Only a guarded allocator records them.
    freed: VecDeque<FreedBlock>,
    /// The number of blocks allocated so far.
    count: u64,
}

struct FreedBlock {
    block: Block,
    /// The name of the routine that freed the block.
    freed_by: &'static str,
}

impl BlockList {
    pub(super) fn len(&self) -> usize {
        self.allocated.len()
    }

    /// Counts a block, and returns its number.
    pub(super) fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(super) fn insert(&mut self, block: Block) {
        self.allocated.insert(block.start.addr(), block);
    }

    /// Returns the block that starts at an address.
    pub(super) fn at(&self, start: usize) -> Option<&Block> {
        self.allocated.get(&start)
    }

    /// Returns the block that starts at an address, to change it.
    pub(super) fn at_mut(&mut self, start: usize) -> Option<&mut Block> {
        self.allocated.get_mut(&start)
    }

    /// Returns the last block that starts at an address or before it.
    pub(super) fn up_to(&self, address: usize) -> Option<&Block> {
        self.allocated
            .range(..=address)
            .next_back()
            .map(|(_, block)| block)
    }

    /// Returns the blocks in the order of their addresses, from the first one that starts at an
    /// address or behind it.
    pub(super) fn from(&self, address: usize) -> impl Iterator<Item = &Block> + Clone {
        self.allocated.range(address..).map(|(_, block)| block)
    }

    pub(super) fn remove(&mut self, start: usize) -> Option<Block> {
        self.allocated.remove(&start)
    }

    /// Remembers a block that was removed.
    pub(super) fn remember(&mut self, block: Block, freed_by: &'static str) {
        self.freed.truncate(REMEMBERED - 1);
        self.freed.push_front(FreedBlock { block, freed_by });
    }

    /// Returns the addresses of the block that contains the `nbytes` bytes at `address`. `nbytes`
    /// is at least 1.
    pub(super) fn holding(&self, address: usize, nbytes: usize) -> Result<Range<usize>, Misplaced> {
        let before = self.up_to(address);
        if let Some(block) = before
            && block.has(address)
        {
            if let Some(released_by) = block.released_by {
                return Err(Misplaced::Released(block.clone(), released_by));
            }
            let beyond = nbytes.saturating_sub(block.end() - address);
            if beyond > 0 {
                return Err(Misplaced::Beyond(block.clone(), beyond));
            }
            return Ok(block.addresses());
        }

        // From here on the bytes begin outside all blocks. Those near a block most likely belong to
        // it, and are an index that is off by a few elements.
        if let Some(block) = before
            && address - block.end() < GUARD
        {
            return Err(Misplaced::After(block.clone(), address - block.end()));
        }
        if let Some(block) = self.from(address).next()
            && block.start.addr() - address <= GUARD
        {
            let by = block.start.addr() - address;
            return Err(Misplaced::Before(block.clone(), by));
        }

        if let Some(freed) = self.freed.iter().find(|freed| freed.block.has(address)) {
            return Err(Misplaced::Freed(freed.block.clone(), freed.freed_by));
        }
        match before {
            Some(block) => Err(Misplaced::After(block.clone(), address - block.end())),
            None => Err(Misplaced::Nowhere),
        }
    }
}
