//! The registration of a heap in blocks, for networks that lock registered memory: only the blocks
//! that a program has allocated from are locked.
//!
//! The first block is registered at init, and its key is published with those of the segments. The
//! others, the further blocks, are registered in order, when an allocation reaches them. Block
//! sizes grow with the offset, four blocks for each doubling, so that few registrations cover any
//! heap, and at most a fifth of the registered memory is not allocated once the first block is
//! full. If the network refuses a block that is larger than the one before, later blocks keep the
//! size of the one before.
//!
//! The keys of the further blocks are in a table at the end of the internal segment. A peer reads a
//! key at its first operation on the block, which is later than the barrier of the allocation. It
//! computes the bounds of the block from the offset, and from the limit of block sizes, which each
//! entry of the table contains.
#![allow(unsafe_code)]

use super::Segments;
use crate::{Error, LocalBuf, Pe, RemoteAddr, Segment};
use rushmem_system::lock::lock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// Bytes of the first block: 64 MiB. A network locks this much for each PE, however little the
/// program allocates. A smaller first block would need more registrations for the same heap. The
/// value was chosen without a measurement.
pub const FIRST: usize = 1 << FIRST_SHIFT;
const FIRST_SHIFT: u32 = 26;
/// The size of a block is the largest power of two that its offset reaches, divided by two to this
/// power.
const PART_SHIFT: u32 = 2;
/// Maximum number of blocks after the first. Without a limit of block sizes they reach 2^58 bytes,
/// more than any heap has. If a network limits block sizes, they limit the heap, and more of them
/// would make the table longer on every PE.
const MOST: usize = 128;
/// Bytes of an entry of the table.
pub const ENTRY: usize = 256;
/// Bytes of the table.
pub const TABLE: usize = MOST * ENTRY;
/// The offset of the length of the key in an entry. Offset 0 has the [limit](BlockSizes::limit) of
/// block sizes.
const LENGTH: usize = 1;
/// The offset of the key in an entry.
const KEY: usize = 3;

/// The sizes of the blocks of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockSizes {
    /// The first block has two to this power bytes.
    first: u32,
    /// Blocks at offsets of two to this power, and beyond, have equal sizes.
    limit: u32,
}

/// The limit of block sizes where there is none.
const NO_LIMIT: u32 = u64::BITS - 1;

impl BlockSizes {
    /// Block sizes without a limit.
    const UNLIMITED: BlockSizes = BlockSizes {
        first: FIRST_SHIFT,
        limit: NO_LIMIT,
    };

    /// Returns the block that contains an offset.
    fn block(self, offset: u64) -> HeapBlock {
        let Some(doubling) = offset.checked_ilog2().filter(|log| *log >= self.first) else {
            return HeapBlock::first(1 << self.first);
        };

        // Within a doubling all blocks have the same size; beyond the limit, there is one doubling
        // without end.
        let doubling = doubling.min(self.limit);
        let size_shift = doubling - PART_SHIFT;
        let position = offset >> size_shift;

        // Each doubling has `1 << PART_SHIFT` blocks. The positions in this one begin with the same
        // number, since the doubling begins at that many times the size of its blocks.
        let n_before = (doubling - self.first) << PART_SHIFT;
        let index = 1 + u64::from(n_before) + position - (1 << PART_SHIFT);

        HeapBlock {
            index: index as usize,
            start: position << size_shift,
            end: (position + 1) << size_shift,
        }
    }
}

/// A block of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBlock {
    /// The number of the block; the first is 0.
    pub index: usize,
    /// The offset of its start.
    pub start: u64,
    /// The offset of its end, which may be beyond the end of the heap.
    pub end: u64,
}

impl HeapBlock {
    /// Returns the first block, of this many bytes.
    pub fn first(nbytes: u64) -> HeapBlock {
        HeapBlock {
            index: 0,
            start: 0,
            end: nbytes,
        }
    }
}

/// How much of a range a key covers.
pub(crate) enum Covered {
    /// This many bytes from the start of the range, perhaps more than the range has.
    Bytes(usize),
    /// No byte: the key of this block must be [learned](HeapBlocks::learn) first.
    Unknown(HeapBlock),
}

/// A block of a heap, and a provider's data `T` on it.
pub(crate) struct FoundBlock<'a, T> {
    pub(crate) block: HeapBlock,
    /// `None` for the first block, and if the data are unknown.
    pub(crate) data: Option<&'a T>,
}

/// A provider's data `T` on the further blocks of one heap. Threads use it without a lock.
pub struct HeapBlocks<T> {
    /// The first block has two to this power bytes.
    first: u32,
    /// The [limit](BlockSizes::limit) of block sizes. It is lowered with release order before the
    /// data of the first smaller block are recorded, and read with acquire order. A thread that
    /// finds those data and then reads the limit finds the lower one.
    limit: AtomicU32,
    /// Allocated when the first block is recorded.
    known: OnceLock<Box<[OnceLock<T>]>>,
}

impl<T> Default for HeapBlocks<T> {
    fn default() -> HeapBlocks<T> {
        HeapBlocks {
            first: FIRST_SHIFT,
            limit: NO_LIMIT.into(),
            known: OnceLock::new(),
        }
    }
}

impl<T> HeapBlocks<T> {
    /// Returns the blocks of a heap whose first one has this many bytes; `None` if no first block
    /// can have them.
    pub(crate) fn after(first: u64) -> Option<HeapBlocks<T>> {
        if !first.is_power_of_two() || first < 1 << PART_SHIFT {
            return None;
        }
        Some(HeapBlocks {
            first: first.ilog2(),
            ..HeapBlocks::default()
        })
    }

    /// Returns the block that contains an offset.
    pub fn block(&self, offset: u64) -> HeapBlock {
        let sizes = BlockSizes {
            first: self.first,
            limit: self.limit.load(Ordering::Acquire),
        };
        sizes.block(offset)
    }

    /// Returns the data on a further block, if it is known.
    pub fn get(&self, block: HeapBlock) -> Option<&T> {
        let index = block.index.checked_sub(1)?;
        self.known.get()?.get(index)?.get()
    }

    /// Returns the block that contains an offset, with the data on it.
    pub(crate) fn find(&self, offset: u64) -> FoundBlock<'_, T> {
        loop {
            let block = self.block(offset);
            let data = self.get(block);

            // Another thread may have lowered the limit and recorded a smaller block of the same
            // index after the limit was read above. Then the data are not those of `block`.
            if data.is_none() || self.block(offset) == block {
                return FoundBlock { block, data };
            }
        }
    }

    /// Returns the data on all known blocks.
    pub fn known(&self) -> impl Iterator<Item = &T> {
        self.known
            .get()
            .into_iter()
            .flatten()
            .filter_map(OnceLock::get)
    }

    /// Records the data on a further block, unless another thread has done so.
    fn set(&self, block: HeapBlock, data: T) {
        let known = self
            .known
            .get_or_init(|| (0..MOST).map(|_| OnceLock::new()).collect());

        if let Some(index) = block.index.checked_sub(1)
            && let Some(slot) = known.get(index)
        {
            // An error says that another thread has recorded data meanwhile. Both have read the
            // same entry of the table, so the data are the same, and these may be dropped.
            let _ = slot.set(data);
        }
    }

    /// Returns how many bytes from an offset on one key covers, or the block whose key is unknown.
    #[cold]
    pub(crate) fn covered(&self, offset: u64) -> Covered {
        let FoundBlock { block, data } = self.find(offset);
        if block.index == 0 || data.is_some() {
            Covered::Bytes((block.end - offset) as usize)
        } else {
            Covered::Unknown(block)
        }
    }

    /// Records a further block of PE `pe` from its entry in the table of keys. `make` makes the
    /// data on the block from the key. If the entry limits block sizes so that `block` has other
    /// bounds, records only this limit: the caller then [finds the block](HeapBlocks::block) again.
    ///
    /// # Errors
    /// When the entry has no key or is damaged. Also returns the errors of `make`.
    pub fn learn(
        &self,
        pe: Pe,
        block: HeapBlock,
        entry: &[u8; ENTRY],
        make: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<(), Error> {
        let limit = u32::from(entry[0]);
        let length = u16::from_le_bytes([entry[LENGTH], entry[LENGTH + 1]]).into();
        let Some(key) = entry[KEY..].get(..length).filter(|key| !key.is_empty()) else {
            let start = block.start;
            return Err(Error::Invalid(format!(
                "offset {start} of the heap of PE {pe} and those beyond are not allocated"
            )));
        };

        if !(self.first..=NO_LIMIT).contains(&limit) {
            return Err(Error::damaged(pe, "table of keys"));
        }

        // Entries that were written before the network refused a block have a larger limit, so only
        // a smaller one changes anything.
        self.limit.fetch_min(limit, Ordering::AcqRel);
        // Under a smaller limit, the key may be that of another block than the caller meant.
        if self.block(block.start) == block {
            self.set(block, make(key)?);
        }
        Ok(())
    }
}

/// Returns the address of the entry of a block in an internal segment of `internal_bytes` bytes;
/// `None` if the table has no entry for it, as for the first block.
pub fn entry(block: HeapBlock, internal_bytes: u64) -> Option<RemoteAddr> {
    let index = block.index.checked_sub(1).filter(|index| *index < MOST)?;
    let table = internal_bytes.checked_sub(TABLE as u64)?;
    Some(RemoteAddr {
        segment: Segment::Internal,
        offset: table + (index * ENTRY) as u64,
    })
}

/// Returns the end of the block that contains offset `nbytes`, if block sizes are not limited.
pub(crate) fn next_end(nbytes: usize) -> usize {
    BlockSizes::UNLIMITED.block(nbytes as u64).end as usize
}

/// What a table of keys shows of the further blocks.
pub(crate) struct TableSummary {
    pub(crate) n_keys: usize,
    /// The size of the largest further block in bytes, if the network refused a larger one.
    pub(crate) largest_block: Option<u64>,
}

impl TableSummary {
    /// Reads a table.
    pub(crate) fn of(table: &[u8]) -> TableSummary {
        let mut n_keys = 0;
        let mut limit = NO_LIMIT;
        for entry in table.chunks(ENTRY) {
            // An entry without a key has length 0.
            if entry[LENGTH..KEY] != [0, 0] {
                n_keys += 1;
                limit = limit.min(u32::from(entry[0]));
            }
        }

        let largest_block = if limit < NO_LIMIT {
            Some(1 << (limit - PART_SHIFT))
        } else {
            None
        };
        TableSummary {
            n_keys,
            largest_block,
        }
    }
}

/// What a provider has registered: a segment, or a block of a heap. `T` is the provider's data on
/// it.
pub struct Registered<T> {
    /// The provider's data.
    pub extra: T,
    /// The key for peers, in the encoding of the provider.
    pub key: Vec<u8>,
}

/// The heap of this PE, registered in blocks.
pub struct OwnHeap<T> {
    extent: Mutex<Extent>,
    /// The provider's data on the heap's further blocks.
    pub blocks: HeapBlocks<T>,
}

/// The registered bytes of a heap, and all its bytes.
#[derive(Clone, Copy, Default)]
struct Extent {
    registered: usize,
    nbytes: usize,
}

impl<T> Default for OwnHeap<T> {
    fn default() -> OwnHeap<T> {
        OwnHeap {
            extent: Mutex::default(),
            blocks: HeapBlocks::default(),
        }
    }
}

impl<T> OwnHeap<T> {
    /// Sets the size of the heap. Returns the number of bytes of the first block, which the caller
    /// registers.
    pub fn begin(&self, nbytes: usize) -> usize {
        let registered = nbytes.min(FIRST);
        *lock(&self.extent) = Extent { registered, nbytes };
        registered
    }

    /// Makes the first `nbytes` bytes of the heap reachable: registers the missing blocks by
    /// `register`, which returns the data on a block and its key, and writes the keys to the table.
    /// Before the first missing block, calls `prepare` with the number of bytes of the heap that
    /// will be registered afterwards, including those that are registered already.
    ///
    /// # Errors
    /// When the network refuses a block, and smaller ones do not help, or the table has no room for
    /// its key. Also returns the errors of `prepare`.
    pub fn extend<X>(
        &self,
        nbytes: usize,
        segments: &Segments<X>,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
        mut register: impl FnMut(LocalBuf) -> Result<Registered<T>, Error>,
    ) -> Result<(), Error> {
        let mut extent = lock(&self.extent);
        let nbytes = nbytes.min(extent.nbytes);
        if nbytes <= extent.registered {
            return Ok(());
        }

        let last_block = self.blocks.block(nbytes as u64 - 1);
        let last_end = last_block.end.min(extent.nbytes as u64);
        prepare(last_end as usize)?;

        while extent.registered < nbytes {
            let start = extent.registered as u64;
            let block = self.blocks.block(start);
            let end = block.end.min(extent.nbytes as u64);
            let memory = segments
                .bytes(heap_address(start), (end - start) as usize)
                .ok_or_else(not_registered)?;

            let Registered { extra, key } = match register(memory) {
                Ok(registered) => registered,
                Err(refused) => {
                    let may_be_smaller = self.limit_sizes(start);
                    if !may_be_smaller {
                        return Err(refused);
                    }
                    // The same bytes are tried again as smaller blocks.
                    continue;
                }
            };

            // Before the block counts as registered: a peer may read the key once the allocation
            // that needs the block has succeeded.
            let internal_bytes = segments.nbytes(Segment::Internal);
            let addr = entry(block, internal_bytes)
                .ok_or_else(|| too_many_blocks(block.end - start, nbytes))?;
            let is_written = segments.write(addr, &self.encode_entry(&key)?);
            if !is_written {
                return Err(not_registered());
            }

            self.blocks.set(block, extra);
            extent.registered = end as usize;
            rushmem_system::log::debug!(
                start,
                nbytes = memory.nbytes,
                "registered a block of the heap"
            );
        }
        Ok(())
    }

    /// Limits block sizes after the network has refused the block at `start`. Returns false if the
    /// block is not larger than the one before, so that its size is not the reason.
    fn limit_sizes(&self, start: u64) -> bool {
        let doubling = start.ilog2();
        let is_first_of_doubling = start > FIRST as u64 && start.is_power_of_two();
        if !is_first_of_doubling {
            return false;
        }
        // False if the sizes were limited to the same before: then they do not grow here.
        let limit_before = self.blocks.limit.fetch_min(doubling - 1, Ordering::AcqRel);
        limit_before >= doubling
    }

    /// Returns the entry of a block with this key.
    fn encode_entry(&self, key: &[u8]) -> Result<[u8; ENTRY], Error> {
        let mut entry = [0; ENTRY];
        entry[0] = self.blocks.limit.load(Ordering::Acquire) as u8;
        entry[LENGTH..KEY].copy_from_slice(&(key.len() as u16).to_le_bytes());

        let room = entry[KEY..].get_mut(..key.len()).ok_or_else(|| {
            Error::Unavailable(format!(
                "the network's keys have {} bytes, too many",
                key.len()
            ))
        })?;

        room.copy_from_slice(key);
        Ok(entry)
    }
}

fn heap_address(offset: u64) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Heap,
        offset,
    }
}

fn not_registered() -> Error {
    Error::Invalid("a segment is not registered".to_owned())
}

/// Returns the error for a heap of which `nbytes` bytes take more blocks of at most `block_bytes`
/// bytes than the table has entries.
fn too_many_blocks(block_bytes: u64, nbytes: usize) -> Error {
    Error::Unavailable(format!(
        "the network refuses registrations of more than {block_bytes} bytes, and {MOST} of them do \
         not reach {nbytes} bytes of the symmetric heap: allocate less"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment::{Heap, Internal};

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn limited_to(limit: u32) -> BlockSizes {
        BlockSizes {
            limit,
            ..BlockSizes::UNLIMITED
        }
    }

    #[test]
    fn blocks_follow_one_another_and_few_cover_any_heap() {
        for (sizes, largest, most) in [
            (BlockSizes::UNLIMITED, 1 << 40, 64),
            (limited_to(32), GIB, 121),
            (limited_to(26), 16 * MIB, 6400),
        ] {
            let mut offset = 0;
            let mut n_blocks = 0;
            while offset < 100 * GIB {
                let block = sizes.block(offset);
                assert_eq!(block.start, offset, "{sizes:?}");
                assert_eq!(block.index, n_blocks, "{sizes:?}");
                assert_eq!(sizes.block(block.end - 1), block);

                let nbytes = block.end - offset;
                assert!(nbytes <= largest.max(FIRST as u64));
                assert!(n_blocks == 0 || nbytes <= offset / 4);

                offset = block.end;
                n_blocks += 1;
            }
            assert!(n_blocks <= most, "{n_blocks} blocks with {sizes:?}");
        }
    }

    /// Returns a table of segments of zeros, whose memory is never freed.
    fn registered(segments: &[(Segment, usize)]) -> Segments {
        let table = Segments::default();
        for &(segment, nbytes) in segments {
            let memory = LocalBuf {
                base: vec![0u8; nbytes].leak().as_mut_ptr(),
                nbytes,
            };
            // SAFETY: the memory is never freed.
            unsafe { table.register(segment, memory, ()) }.expect("a segment");
        }
        table
    }

    /// Returns the registration of a network that refuses more than `largest` bytes. The key of a
    /// block is its number of bytes.
    fn register_up_to(largest: u64) -> impl FnMut(LocalBuf) -> Result<Registered<()>, Error> {
        move |memory| {
            if memory.nbytes as u64 > largest {
                return Err(Error::Unavailable("too long".to_owned()));
            }
            Ok(Registered {
                extra: (),
                key: memory.nbytes.to_le_bytes().to_vec(),
            })
        }
    }

    /// Finds the block at an offset as a peer does, which reads unknown keys from the table.
    /// Returns the block and its key.
    fn find(
        peer: &HeapBlocks<u64>,
        segments: &Segments,
        offset: u64,
    ) -> Result<(HeapBlock, u64), Error> {
        loop {
            let block = peer.block(offset);
            if let Some(key) = peer.get(block) {
                return Ok((block, *key));
            }

            let addr = entry(block, segments.nbytes(Internal)).expect("a further block");
            let mut bytes = Vec::new();
            assert!(segments.append_to(&mut bytes, addr, ENTRY));
            let bytes = bytes.try_into().expect("an entry");
            peer.learn(Pe(1), block, &bytes, |key| {
                Ok(u64::from_le_bytes(key.try_into().expect("a word")))
            })?;
        }
    }

    #[test]
    fn a_peer_finds_each_key_although_the_network_refuses_large_blocks() {
        let heap_bytes = 700 * MIB as usize;
        let segments = registered(&[(Heap, heap_bytes), (Internal, TABLE + 64)]);
        let own = OwnHeap::default();
        assert_eq!(own.begin(heap_bytes), FIRST);

        let mut prepared = Vec::new();
        let mut extend = |nbytes, largest| {
            let mut prepare = |end| {
                prepared.push(end as u64 / MIB);
                Ok(())
            };
            own.extend(nbytes, &segments, &mut prepare, register_up_to(largest))
        };
        let peer = HeapBlocks::default();

        extend(10, u64::MAX).expect("registered before");
        extend(100 * MIB as usize, u64::MAX).expect("small");
        let (_, nbytes) = find(&peer, &segments, 70 * MIB).expect("allocated");
        assert_eq!(nbytes, 16 * MIB);
        let error = find(&peer, &segments, 200 * MIB).expect_err("not allocated");
        assert!(error.to_string().contains("heap of PE 1"), "{error}");

        extend(usize::MAX, 64 * MIB).expect("a limit that blocks can keep");
        for offset in [70, 300, 511, 512, 575, 576].map(|offset| offset * MIB) {
            let (block, nbytes) = find(&peer, &segments, offset).expect("allocated");
            assert!(block.start <= offset && offset < block.end);
            assert_eq!(nbytes, block.end - block.start);
        }

        let (_, nbytes) = find(&peer, &segments, 700 * MIB - 1).expect("allocated");
        assert_eq!(nbytes, 60 * MIB, "the end of the heap");
        assert_eq!(prepared, [112, 700]);
    }

    #[test]
    fn a_refusal_that_smaller_blocks_cannot_avoid_is_returned() {
        let segments = registered(&[(Heap, 2 * FIRST)]);
        let own = OwnHeap::default();
        own.begin(2 * FIRST);

        let extended = own.extend(2 * FIRST, &segments, &mut |_| Ok(()), register_up_to(0));
        assert_eq!(extended, Err(Error::Unavailable("too long".to_owned())));
    }

    #[test]
    fn nothing_is_registered_that_is_not_prepared() {
        let segments = registered(&[(Heap, 2 * FIRST)]);
        let own = OwnHeap::<()>::default();
        own.begin(2 * FIRST);

        let refused = Error::Unavailable("no more".to_owned());
        let extended = own.extend(2 * FIRST, &segments, &mut |_| Err(refused.clone()), |_| {
            unreachable!("it is not prepared")
        });
        assert_eq!(extended, Err(refused));
    }
}
