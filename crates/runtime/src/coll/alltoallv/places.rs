//! The blocks that a PE sends and receives in an all-to-all. `SHMEM_CHECK` checks them, and shows
//! them to observers.

use super::{ArgumentNames, OwnBlocks, TargetBlocks};
use crate::coll::entry::CollectiveEntry;
use crate::coll::executor::Executor;
use rushmem_communication::observers::results::ResultWriters;
use rushmem_communication::observers::{ByteBlocks, CollectiveBlocks};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::memory::range::symmetric;
use std::ops::Range;

/// The blocks that this member sends and receives. Offsets and sizes are in bytes.
pub(super) struct Places<'a> {
    pub(super) names: ArgumentNames,
    pub(super) sent: &'a OwnBlocks,
    pub(super) target: TargetBlocks,
    /// The offset in `target` of the block of each member.
    pub(super) offsets: &'a [u64],
    /// The size of the block of each member.
    pub(super) received: &'a [u64],
}

impl Places<'_> {
    /// Ends the job with an error if blocks go beyond the object in which their array begins, or
    /// have a byte in common. Shows the blocks to observers.
    ///
    /// Then syncs the members, so that a PE which passes a wrong offset reports it before another
    /// one delivers a block there.
    pub(super) fn check(&self, entry: &mut CollectiveEntry<'_>, executor: &mut Executor<'_>) {
        let call = executor.collective.call;
        let job = &executor.links.job;
        let OwnBlocks {
            source,
            offsets,
            sizes,
        } = self.sent;
        let dest_nbytes = end_of_last(self.offsets, self.received);
        let dest = symmetric(
            job,
            call,
            self.names.target,
            self.target.target,
            dest_nbytes,
        );
        let source = symmetric(job, call, "source", *source, end_of_last(offsets, sizes));

        let dest_blocks = sorted(dest.start().addr(), self.offsets, self.received);
        let source_blocks = sorted(source.start().addr(), offsets, sizes);
        self.require_places_apart(call, &dest_blocks);
        self.require_disjoint(call, &source_blocks, &dest_blocks);

        // Where the blocks of other members are is not known, so the result stands for theirs.
        let result = match (dest_blocks.first(), dest_blocks.last()) {
            (Some(first), Some(last)) => {
                let start = first.bytes.start;
                ByteBlocks::one(start, last.bytes.end - start)
            }
            _ => ByteBlocks::NONE,
        };
        // No PE writes to a member that has not sent its offsets.
        entry.check_result(result, ByteBlocks::NONE, ResultWriters::WithMember);
        entry.show_blocks(CollectiveBlocks {
            source: source_blocks.iter().map(PlacedBlock::bytes).collect(),
            dest: dest_blocks.iter().map(PlacedBlock::bytes).collect(),
        });

        executor.sync();
    }

    /// Ends the job with an error if two of the blocks that this member receives have a byte in
    /// common.
    fn require_places_apart(&self, call: Call, blocks: &[PlacedBlock]) {
        for pair in blocks.windows(2) {
            let [one, next] = [pair[0].member, pair[1].member];
            if pair[0].bytes.end > pair[1].bytes.start {
                fail!(
                    call,
                    "the {} bytes of member {one} would go to byte {} of the destination, and those of member {next} to \
                     byte {}, where they overlap; let the offsets be further apart, or the blocks be smaller",
                    self.received[one],
                    self.offsets[one],
                    self.offsets[next]
                );
            }
        }
    }

    /// Ends the job with an error if a block that this member sends has a byte in common with one
    /// that it receives.
    fn require_disjoint(&self, call: Call, sent: &[PlacedBlock], received: &[PlacedBlock]) {
        for block in sent {
            let behind = received.partition_point(|other| other.bytes.end <= block.bytes.start);
            if let Some(other) = received.get(behind)
                && other.bytes.start < block.bytes.end
            {
                fail!(
                    call,
                    "the {} bytes for member {} from byte {} of argument source on overlap those of member {} from byte \
                     {} of argument {} on; use blocks that have no byte in common",
                    self.sent.sizes[block.member],
                    block.member,
                    self.sent.offsets[block.member],
                    other.member,
                    self.offsets[other.member],
                    self.names.target
                );
            }
        }
    }
}

/// A block for a member, or of one, by its addresses on this PE.
struct PlacedBlock {
    member: usize,
    bytes: Range<usize>,
}

impl PlacedBlock {
    fn bytes(&self) -> ByteBlocks {
        ByteBlocks::one(self.bytes.start, self.bytes.len())
    }
}

/// Returns the number of bytes from the start of an array to the end of its last block.
fn end_of_last(offsets: &[u64], sizes: &[u64]) -> usize {
    let blocks = offsets.iter().zip(sizes).filter(|(_, size)| **size > 0);
    let end = blocks
        .map(|(offset, size)| offset.saturating_add(*size))
        .max();
    end.unwrap_or(0) as usize
}

/// Returns the blocks that are not empty, of an array at this address, by ascending addresses.
fn sorted(array: usize, offsets: &[u64], sizes: &[u64]) -> Vec<PlacedBlock> {
    let mut blocks = Vec::new();
    for (member, (offset, size)) in offsets.iter().zip(sizes).enumerate() {
        if *size > 0 {
            let start = array + *offset as usize;
            let bytes = start..start + *size as usize;
            blocks.push(PlacedBlock { member, bytes });
        }
    }
    blocks.sort_unstable_by_key(|block| block.bytes.start);
    blocks
}
