//! Direct reductions and scans: combines a share of a vector, or all of it, from the sources of all
//! members and stores the result in the destinations of all members.
//!
//! A reduction reads mapped sources in place, in blocks so small that the result of a block stays
//! in the cache until it is stored on its receivers. If all members are mapped, it computes the
//! result in this PE's destination, unless that overlaps the source or belongs to no receiver.
//! Sources that are not mapped are fetched first, in blocks so large that they keep a network busy.
//! A scan copies or fetches one member's source after the other, in small blocks. The
//! synchronization is in the plan, not here.

use crate::coll::combine::Combine;
use rushmem_communication::access::endpoints::Endpoints;
use rushmem_communication::net::copy::{CopyBetweenPes, Fetch, complete_copies, fetch};
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
/// the receivers. `me` is this PE.
pub(crate) fn reduce(
    endpoints: &Endpoints,
    members: &Members,
    me: Pe,
    source: SymmetricRange,
    dest: ReducedTo,
    op: &Combine,
) {
    let are_mapped = members.world_pes().all(|pe| source.image(pe).is_some())
        && dest
            .receivers(members)
            .all(|pe| dest.range.image(pe).is_some());
    if !are_mapped {
        reduce_unmapped(endpoints, members, source, dest, op);
        return;
    }

    // No other PE accesses this share of the two arrays of this PE: each has another one, or waits.
    let is_free = dest.only.is_none_or(|only| only == me) && !dest.range.overlaps(source);
    let accumulator = is_free.then_some(dest.range);
    let image_of = |member| {
        source
            .image(members.world_pe(member))
            .expect("it was just found mapped")
    };
    combine(
        members.n,
        source.nbytes(),
        op,
        accumulator,
        image_of,
        |offset, result| {
            let part = dest.range.part(offset, result.nbytes());
            for pe in dest.receivers(members) {
                // The result may have been computed in this PE's destination.
                if pe != me || !result.starts_with(part) {
                    result.copy_to(endpoints, pe, part);
                }
            }
        },
    );
}

/// Where the result of a direct reduction is stored.
#[derive(Clone, Copy)]
pub(crate) struct ReducedTo {
    /// The range that gets the result, as long as the source.
    pub(crate) range: SymmetricRange,
    /// The only receiver; `None` if all members receive the result.
    pub(crate) only: Option<Pe>,
}

impl ReducedTo {
    fn receivers(self, members: &Members) -> impl Iterator<Item = Pe> {
        members
            .world_pes()
            .filter(move |&pe| self.only.is_none_or(|only| only == pe))
    }
}

/// A direct reduction where the memory of some members is not mapped here.
#[cold]
fn reduce_unmapped(
    endpoints: &Endpoints,
    members: &Members,
    source: SymmetricRange,
    dest: ReducedTo,
    op: &Combine,
) {
    let sources = UnmappedMembers::new(members, source);
    let dests = UnmappedMembers::new(members, dest.range);

    let share = FETCHED / sources.pes.len().max(1);
    let max_bytes = share.clamp(SCRATCH, FETCHED_BLOCK) / SCRATCH * SCRATCH;
    let room = sources.pes.len() * max_bytes.min(source.nbytes());
    let mut room = vec![MaybeUninit::uninit(); room];

    for offset in (0..source.nbytes()).step_by(max_bytes) {
        let nbytes = max_bytes.min(source.nbytes() - offset);
        let source = source.part(offset, nbytes);
        let range = dest.range.part(offset, nbytes);

        let room = SymmetricRange::of_private(&mut room);
        let copies = sources.pes.iter().enumerate().map(|(index, &pe)| Fetch {
            pe,
            source,
            dest: room.part(index * nbytes, nbytes),
        });
        fetch(endpoints, copies);
        let mut fetched = sources.indices_in_order();
        let mut operands: Vec<SymmetricRange> = Vec::new();
        for pe in members.world_pes() {
            operands.push(match source.image(pe) {
                Some(image) => image,
                None => {
                    let index = fetched.next().expect("one for each unmapped member");
                    room.part(index * nbytes, nbytes)
                }
            });
        }

        combine(
            members.n,
            nbytes,
            op,
            None,
            |member| operands[member as usize],
            |offset, result| {
                // For several receivers also in the destination of this PE, from where the network
                // takes the result.
                let part = range.part(offset, result.nbytes());
                for pe in dest.receivers(members) {
                    if dest.only.is_some() || part.image(pe).is_some() {
                        result.copy_to(endpoints, pe, part);
                    }
                }
            },
        );
        if dest.only.is_none() {
            for &pe in &dests.pes {
                range.start_copy_to_image(endpoints, pe);
            }
        }
    }
    complete_copies(endpoints);
}

/// The members of a team on which a range is not mapped here.
struct UnmappedMembers {
    /// In the order of the team, but beginning behind the first member that is mapped. That member
    /// differs from node to node, so not all PEs access the same PE first.
    pes: Vec<Pe>,
    /// The number of these members that are before the first mapped one, which come last.
    n_before: usize,
}

impl UnmappedMembers {
    fn new(members: &Members, range: SymmetricRange) -> UnmappedMembers {
        let first_mapped = members.world_pes().position(|pe| range.image(pe).is_some());
        let n_before = first_mapped.unwrap_or(0);

        let mut pes: Vec<Pe> = members
            .world_pes()
            .filter(|&pe| range.image(pe).is_none())
            .collect();
        pes.rotate_left(n_before);
        UnmappedMembers { pes, n_before }
    }

    /// Returns the indices of `pes` in the order of the team, in which operands are combined.
    fn indices_in_order(&self) -> impl Iterator<Item = usize> {
        let n_after = self.pes.len() - self.n_before;
        (n_after..self.pes.len()).chain(0..n_after)
    }
}

/// Stores in `dest` of each member the combination of `source` of the members up to that one, or of
/// those before it if the scan is `exclusive`; then `dest` of the first member is not written.
pub(crate) fn scan(
    endpoints: &Endpoints,
    members: &Members,
    source: SymmetricRange,
    dest: SymmetricRange,
    op: &Combine,
    exclusive: bool,
) {
    let is_mapped = members
        .world_pes()
        .all(|pe| source.image(pe).is_some() && dest.image(pe).is_some());

    // Sources that are not mapped are fetched to this memory.
    let fetched_bytes = if is_mapped {
        0
    } else {
        SCRATCH.min(source.nbytes())
    };
    let mut fetched = vec![MaybeUninit::uninit(); fetched_bytes];

    for offset in (0..source.nbytes()).step_by(SCRATCH) {
        let nbytes = SCRATCH.min(source.nbytes() - offset);
        let source = source.part(offset, nbytes);
        let dest = dest.part(offset, nbytes);

        SymmetricRange::with_scratch(nbytes, |prefix| {
            SymmetricRange::with_scratch(nbytes, |operand| {
                for (member, pe) in members.world_pes().enumerate() {
                    let theirs = match source.image(pe) {
                        Some(image) => image,
                        None => {
                            let theirs = SymmetricRange::of_private(&mut fetched[..nbytes]);
                            theirs.copy_from(endpoints, pe, source);
                            theirs
                        }
                    };
                    // `dest` may be the source, so the source is copied before it is overwritten.
                    theirs.copy_here(operand);

                    // An exclusive result is stored before the member's own operand is added.
                    if exclusive && member > 0 {
                        prefix.copy_to(endpoints, pe, dest);
                    }
                    if member == 0 {
                        operand.copy_here(prefix);
                    } else {
                        op.apply(prefix, prefix, operand);
                    }
                    if !exclusive {
                        prefix.copy_to(endpoints, pe, dest);
                    }
                }
            });
        });
    }

    if !is_mapped {
        // The signal by which a member learns that its result is complete may be another PE's, and
        // so is not ordered after the copies of this one.
        complete_copies(endpoints);
    }
}

/// An operand on this PE.
#[derive(Clone, Copy)]
pub(crate) struct OwnOperand {
    pub(crate) range: SymmetricRange,
    /// True if it is the left operand.
    pub(crate) is_left: bool,
}

/// Combines `source` of `pe` with an operand of this PE into `dest`, which is on this PE.
pub(crate) fn combine_with(
    endpoints: &Endpoints,
    pe: Pe,
    source: SymmetricRange,
    own: OwnOperand,
    dest: SymmetricRange,
    op: &Combine,
) {
    if let Some(image) = source.image(pe) {
        own.apply(op, image, dest);
        return;
    }

    let mut room = vec![MaybeUninit::uninit(); FETCHED_BLOCK.min(source.nbytes())];
    for offset in (0..source.nbytes()).step_by(FETCHED_BLOCK) {
        let nbytes = FETCHED_BLOCK.min(source.nbytes() - offset);
        let theirs = SymmetricRange::of_private(&mut room[..nbytes]);
        theirs.copy_from(endpoints, pe, source.part(offset, nbytes));

        let own = OwnOperand {
            range: own.range.part(offset, nbytes),
            ..own
        };
        own.apply(op, theirs, dest.part(offset, nbytes));
    }
}

impl OwnOperand {
    /// Combines this operand with `other` into `dest`.
    fn apply(self, op: &Combine, other: SymmetricRange, dest: SymmetricRange) {
        if self.is_left {
            op.apply(dest, self.range, other);
        } else {
            op.apply(dest, other, self.range);
        }
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
    for offset in (0..nbytes).step_by(SCRATCH) {
        let block = SCRATCH.min(nbytes - offset);
        let combine_into = |result: SymmetricRange| {
            let mut left = operand(0).part(offset, block);
            for member in 1..n {
                op.apply(result, left, operand(member).part(offset, block));
                left = result;
            }
            store(offset, left);
        };

        match accumulator {
            Some(accumulator) => combine_into(accumulator.part(offset, block)),
            None => SymmetricRange::with_scratch(block, combine_into),
        }
    }
}
