//! Bruck's all-gather and all-to-all: the fewest rounds for any size of team, good for short
//! blocks.
//!
//! J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all
//! communications in multiport message-passing systems. IEEE Transactions on Parallel and
//! Distributed Systems 8 (11), 1997.
//!
//! The original all-gather stores blocks in the order of arrival and rotates them at the end. Here
//! a block is put to its final location at once, at the cost of a second put if the run of blocks
//! wraps around.

use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::{ahead, behind, rounds};
use crate::own_block::with_own_block;
use crate::{Buffer, Span, Step};
use std::ops::Range;

/// Returns the plan of an all-gather in ⌈log2 n⌉ rounds: part 0 of `Source` of member `i` becomes
/// part `i` of `Dest` everywhere. No member leaves it before all have entered it.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    // Before a round a member has `distance` blocks: its own and those of the next members.
    let rounds = rounds(n).flat_map(move |k| {
        let distance = 1 << k;
        let count = distance.min(n - distance);
        let receiver = to_behind(n, me, k);
        let sender = from_ahead(n, me, k);

        let puts = runs(n, me, count).map(move |run| Step::Put {
            peer: receiver,
            from: Buffer::Dest.at(run.start),
            to: Buffer::Dest.at(run.start),
            count: run.end - run.start,
        });
        let waits = runs(n, sender.index, count).map(move |_| Step::Wait { peer: sender });

        puts.chain(waits)
    });

    with_own_block(me, rounds)
}

/// Returns the plan by which members learn that the members to which they will put in
/// [`all_gather`] have entered it. It is needed if a destination may not be ready before its member
/// enters.
pub fn entry(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let signals = rounds(n).map(move |k| Step::Signal {
        peer: to_ahead(n, me, k),
    });
    let waits = rounds(n).map(move |k| Step::Wait {
        peer: from_behind(n, me, k),
    });
    signals.chain(waits)
}

/// Returns the plan of an all-to-all in ⌈log2 n⌉ rounds: part `j` of `Source` of member `i` becomes
/// part `i` of `Dest` of member `j`. In each round a member puts up to [`receive_buffer_parts`]
/// parts to a receive buffer. No member leaves it before all have entered it.
///
/// A block whose receiver is `distance` places ahead is sent 2^k places ahead in round k if bit k
/// of the distance is set. For each round a member packs the blocks to send, in the order of
/// distances, from its source and from the receive buffers of earlier rounds.
pub fn all_to_all(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let own = Step::Copy {
        from: Buffer::Source.at(me),
        to: Buffer::Dest.at(me),
        count: 1,
    };

    let rounds = rounds(n).flat_map(move |k| {
        let pack = (1..n)
            .filter(move |distance| (distance >> k) & 1 == 1)
            .map(move |distance| Step::Copy {
                from: after(n, me, distance, distance & ((1 << k) - 1)),
                to: Buffer::Accumulator.at(below(distance, k)),
                count: 1,
            });

        let put = Step::Put {
            peer: to_ahead(n, me, k),
            from: Buffer::Accumulator.at(0),
            to: Buffer::Receive(k).at(0),
            count: below(n, k),
        };
        pack.chain([
            put,
            Step::Wait {
                peer: from_behind(n, me, k),
            },
        ])
    });

    let unpack = (1..n).map(move |distance| Step::Copy {
        from: after(n, me, distance, distance),
        to: Buffer::Dest.at(behind(n, me, distance)),
        count: 1,
    });

    std::iter::once(own).chain(rounds).chain(unpack)
}

/// Returns the plan by which members learn that the members to which they will put in
/// [`all_to_all`] have entered it, so that their receive buffers are free.
pub fn all_to_all_entry(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let signals = rounds(n).map(move |k| Step::Signal {
        peer: to_behind(n, me, k),
    });
    let waits = rounds(n).map(move |k| Step::Wait {
        peer: from_ahead(n, me, k),
    });
    signals.chain(waits)
}

/// Returns the maximum number of parts that an [`all_to_all`] puts to a receive buffer.
pub fn receive_buffer_parts(n: u32) -> u32 {
    rounds(n).map(|k| below(n, k)).max().unwrap_or(0)
}

/// Returns where a block lies, at the member that has it, once it has traveled `gone` of the
/// `distance` places to its receiver: in the source, or in the receive buffer of the round of the
/// highest bit of `gone`.
fn after(n: u32, me: u32, distance: u32, gone: u32) -> Span {
    match gone.checked_ilog2() {
        None => Buffer::Source.at(ahead(n, me, distance)),
        Some(k) => Buffer::Receive(k as u8).at(below(distance, k as u8)),
    }
}

/// Returns how many numbers below `n` have bit `k` set.
const fn below(n: u32, k: u8) -> u32 {
    // Of each 2^(k + 1) numbers, the second half has the bit.
    let n = n as u64;
    let half = 1 << k;
    let rest = (n & (2 * half - 1)).saturating_sub(half);
    ((n >> (k + 1) << k) + rest) as u32
}

/// Returns the blocks of `count <= n` members from `first` on around the circle, as one or two runs
/// of parts.
fn runs(n: u32, first: u32, count: u32) -> impl Iterator<Item = Range<u32>> + Clone {
    let up_to_the_end = count.min(n - first);
    let wrapped = count - up_to_the_end;
    [first..first + up_to_the_end, 0..wrapped]
        .into_iter()
        .filter(|run| !run.is_empty())
}

#[cfg(test)]
mod tests;
