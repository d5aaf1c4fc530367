//! Direct reductions and scans: combines this PE's share of a vector from the sources of all
//! members and stores the result in the destinations of all members.
//!
//! A reduction reads mapped sources in place, in blocks so small that the result of a block stays
//! in the cache until it is stored on all members. If all members are mapped, it computes the
//! result in this PE's destination, unless that overlaps the source. Sources that are not mapped
//! are fetched first, in blocks so large that they keep a network busy. A scan copies or fetches
//! one member's source after the other, in small blocks. The synchronization is in the plan, not
//! here.

use crate::coll::combine::Combine;
use rushmem_communication::net::copy::CopyBetweenPes;
use rushmem_communication::net::copy::complete_copies;
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::range::{SCRATCH, SymmetricRange};
use rushmem_transport::Pe;
use std::mem::MaybeUninit;

/// Maximum number of bytes that are fetched from a member at a time: many times what a network
/// transfers during a round trip, since this PE may be idle for a round trip between two blocks.
const FETCHED_BLOCK: usize = 512 << 10;
/// Maximum number of bytes that are fetched from all members at a time, unless [`SCRATCH`] bytes
/// from each of them are more. It bounds the memory of this PE that a large team takes.
const FETCHED: usize = 4 << 20;

/// Combines `source` of all members in the order of the team, and stores the result in `dest` of
/// all. `me` is this PE.
pub(crate) fn reduce(
    members: &Members,
    me: Pe,
    source: SymmetricRange,
    dest: SymmetricRange,
    op: &Combine,
) {
    let mut pes = members.world_pes();
    if pes.all(|pe| source.image(pe).is_some() && dest.image(pe).is_some()) {
        let operand = |member| {
            source
                .image(members.world_pe(member))
                .expect("it was just found mapped")
        };
        let store = |at: usize, result: SymmetricRange| {
            let dest = dest.part(at, result.nbytes());
            for pe in members.world_pes() {
                // The result may have been computed in this PE's destination.
                if pe != me || !result.starts_with(dest) {
                    result.copy_to(pe, dest);
                }
            }
        };

        // No other PE accesses this share of the two arrays of this PE.
        let accumulator = (!dest.overlaps(source)).then_some(dest);
        combine(members.n, source.nbytes(), op, accumulator, operand, store);
    } else {
        reduce_unmapped(members, source, dest, op);
    }
}

/// A direct reduction where the memory of some members is not mapped here.
#[cold]
fn reduce_unmapped(members: &Members, source: SymmetricRange, dest: SymmetricRange, op: &Combine) {
    // Each PE begins with the unmapped members behind the first mapped one, which differs from node
    // to node, so that not all PEs access the same PE first.
    let n_before = |range: SymmetricRange| {
        let first_mapped = members.world_pes().position(|pe| range.image(pe).is_some());
        first_mapped.unwrap_or(0)
    };
    let unmapped = |range: SymmetricRange| -> Vec<Pe> {
        let is_unmapped = |pe: &Pe| range.image(*pe).is_none();
        let mut pes: Vec<Pe> = members.world_pes().filter(is_unmapped).collect();
        pes.rotate_left(n_before(range));
        pes
    };
    let sources = unmapped(source);
    let dests = unmapped(dest);
    let n_after = sources.len() - n_before(source);

    let share = FETCHED / sources.len().max(1);
    let max_bytes = share.clamp(SCRATCH, FETCHED_BLOCK) / SCRATCH * SCRATCH;
    let mut room = vec![MaybeUninit::uninit(); sources.len() * max_bytes.min(source.nbytes())];

    for at in (0..source.nbytes()).step_by(max_bytes) {
        let nbytes = max_bytes.min(source.nbytes() - at);
        let source = source.part(at, nbytes);
        let dest = dest.part(at, nbytes);

        // The operands are combined in the order of the team, so the rotation is undone.
        source.fetch(&sources, &mut room);
        let room = SymmetricRange::of_private(&mut room);
        let in_order = (n_after..sources.len()).chain(0..n_after);
        let mut fetched = in_order.map(|i| room.part(i * nbytes, nbytes));
        let operands: Vec<SymmetricRange> = members
            .world_pes()
            .map(|pe| {
                source
                    .image(pe)
                    .or_else(|| fetched.next())
                    .expect("one for each PE")
            })
            .collect();

        // The result is stored in the own destination, too, from where the network takes it.
        let operand = |member| operands[member as usize];
        let store = |at: usize, result: SymmetricRange| {
            let dest = dest.part(at, result.nbytes());
            let mapped = members.world_pes().filter(|&pe| dest.image(pe).is_some());
            mapped.for_each(|pe| result.copy_to(pe, dest));
        };
        combine(members.n, nbytes, op, None, operand, store);
        dests.iter().for_each(|&pe| dest.start_copy_to_image(pe));
    }
    complete_copies();
}

/// Stores in `dest` of each member the combination of `source` of the members up to that one, or of
/// those before it if the scan is `exclusive`; then `dest` of the first member is not written.
pub(crate) fn scan(
    members: &Members,
    source: SymmetricRange,
    dest: SymmetricRange,
    op: &Combine,
    exclusive: bool,
) {
    let is_mapped = members
        .world_pes()
        .all(|pe| source.image(pe).is_some() && dest.image(pe).is_some());

    for at in (0..source.nbytes()).step_by(SCRATCH) {
        let nbytes = SCRATCH.min(source.nbytes() - at);
        let source = source.part(at, nbytes);
        let dest = dest.part(at, nbytes);

        SymmetricRange::with_scratch(nbytes, |prefix| {
            SymmetricRange::with_scratch(nbytes, |operand| {
                let mut fetched = vec![MaybeUninit::uninit(); if is_mapped { 0 } else { nbytes }];
                for (member, pe) in members.world_pes().enumerate() {
                    let theirs = match source.image(pe) {
                        Some(image) => image,
                        None => {
                            source.fetch(&[pe], &mut fetched);
                            SymmetricRange::of_private(&mut fetched)
                        }
                    };
                    // `dest` may be the source, so the source is copied before it is overwritten.
                    theirs.copy_here(operand);

                    if exclusive && member > 0 {
                        prefix.copy_to(pe, dest);
                    }
                    if member == 0 {
                        operand.copy_here(prefix);
                    } else {
                        op.apply(prefix, prefix, operand);
                    }
                    if !exclusive {
                        prefix.copy_to(pe, dest);
                    }
                }
            });
        });
    }

    if !is_mapped {
        // The signal by which a member learns that its result is complete may be another PE's, and
        // so is not ordered after the copies of this one.
        complete_copies();
    }
}

/// An operand on this PE.
pub(crate) struct OwnOperand {
    pub(crate) range: SymmetricRange,
    /// True if it is the left operand.
    pub(crate) is_left: bool,
}

/// Combines `source` of `pe` with an operand of this PE into `dest`, which is on this PE.
pub(crate) fn combine_with(
    pe: Pe,
    source: SymmetricRange,
    own: OwnOperand,
    dest: SymmetricRange,
    op: &Combine,
) {
    let apply = |operand, theirs, dest| {
        if own.is_left {
            op.apply(dest, operand, theirs);
        } else {
            op.apply(dest, theirs, operand);
        }
    };

    if let Some(image) = source.image(pe) {
        return apply(own.range, image, dest);
    }

    let mut room = vec![MaybeUninit::uninit(); FETCHED_BLOCK.min(source.nbytes())];
    for at in (0..source.nbytes()).step_by(FETCHED_BLOCK) {
        let nbytes = FETCHED_BLOCK.min(source.nbytes() - at);
        source.part(at, nbytes).fetch(&[pe], &mut room);
        let theirs = SymmetricRange::of_private(&mut room[..nbytes]);
        apply(own.range.part(at, nbytes), theirs, dest.part(at, nbytes));
    }
}

/// Combines the operands of `n` members, `nbytes` bytes each, block by block. Computes the result
/// of a block in `accumulator` if there is one, otherwise in scratch memory, and calls `store` with
/// the offset of the block and the result. With one member, the result is its operand in place.
pub(crate) fn combine(
    n: u32,
    nbytes: usize,
    op: &Combine,
    accumulator: Option<SymmetricRange>,
    operand: impl Fn(u32) -> SymmetricRange,
    store: impl Fn(usize, SymmetricRange),
) {
    for at in (0..nbytes).step_by(SCRATCH) {
        let block = SCRATCH.min(nbytes - at);
        let operand = |member| operand(member).part(at, block);
        let combine_into = |result: SymmetricRange| {
            let mut left = operand(0);
            for member in 1..n {
                op.apply(result, left, operand(member));
                left = result;
            }
            store(at, left);
        };

        match accumulator {
            Some(accumulator) => combine_into(accumulator.part(at, block)),
            None => SymmetricRange::with_scratch(block, combine_into),
        }
    }
}
