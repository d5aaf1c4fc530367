//! Bruck's all-gather: the fewest rounds for any size of team, good for short blocks.
//!
//! J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all
//! communications in multiport message-passing systems. IEEE Transactions on Parallel and
//! Distributed Systems 8 (11), 1997.
//!
//! The original gathers blocks in the order of arrival and rotates them at the end. Here a block is
//! put at its final place at once, at the price of a second put when the run of blocks wraps.

use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::rounds;
use crate::{Place, Step};

/// The plan of an all-gather in ⌈log2 n⌉ rounds: part 0 of `Source` of member `i` becomes part `i`
/// of `Dest` everywhere. Nobody ends it before everybody has entered it.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let own = Step::Copy { from: Place::Source.at(0), to: Place::Dest.at(me), count: 1 };
    // Before a round a member holds `distance` blocks, its own and those that follow.
    let rounds = rounds(n).flat_map(move |k| {
        let distance = 1 << k;
        let count = distance.min(n - distance);
        let receiver = to_behind(n, me, k);
        let sender = from_ahead(n, me, k);
        let puts = runs(n, me, count).map(move |(first, count)| Step::Put {
            peer: receiver,
            from: Place::Dest.at(first),
            to: Place::Dest.at(first),
            count,
        });
        let waits = runs(n, sender.index, count).map(move |_| Step::Wait { peer: sender });
        puts.chain(waits)
    });
    std::iter::once(own).chain(rounds)
}

/// The plan by which members learn that those to whom they will put in [`all_gather`] have entered it: where its destination
/// is not ready before.
pub fn entry(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let signals = rounds(n).map(move |k| Step::Signal { peer: to_ahead(n, me, k) });
    signals.chain(rounds(n).map(move |k| Step::Wait { peer: from_behind(n, me, k) }))
}

/// The blocks of `count <= n` members from `first` on around the circle, as one or two runs
/// `(first, count)` of parts.
fn runs(n: u32, first: u32, count: u32) -> impl Iterator<Item = (u32, u32)> + Clone {
    let up_to_the_end = count.min(n - first);
    let wrapped = count - up_to_the_end;
    [(first, up_to_the_end), (0, wrapped)].into_iter().filter(|&(_, count)| count > 0)
}

#[cfg(test)]
mod tests;
