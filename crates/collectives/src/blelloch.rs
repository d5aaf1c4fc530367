//! Blelloch's scan: up and down a tree, with 2 n messages in all instead of n log2 n, but twice as
//! many rounds as recursive doubling.
//!
//! G. E. Blelloch: Prefix sums and their applications. Technical report CMU-CS-90-190, Carnegie
//! Mellon University, 1990.
//!
//! A member whose index is one less than an odd multiple of 2^k is at level k of the tree. On the
//! way up it combines what comes from the members 2^j places before it, for each j below k, and
//! sends the result 2^k places ahead. On the way down it gets what is to be put before that from
//! 2^k places before it, and sends its own result to the members 2^j places ahead.

use crate::Step;
use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::recursive_doubling::{put, shifted};

/// The plan of an inclusive scan in 2 ⌊log2 n⌋ rounds at most: the accumulator holds the own
/// contribution at the start, those of the indices `0..=me` combined at the end. Credits keep
/// landings as in [`recursive_doubling`](crate::recursive_doubling::inclusive_scan).
pub fn inclusive_scan(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let level = (u64::from(me) + 1).trailing_zeros() as u8;
    let has_before = move |k: u8| me >> k != 0;
    let has_after = move |k: u8| (n - 1 - me) >> k != 0;
    let receive = move |k: u8| {
        let peer = from_behind(n, me, k);
        [Step::Wait { peer }, Step::Reduce { landing: k, landing_is_left: true }]
    };
    let send = move |k: u8| [Step::Wait { peer: from_ahead(n, me, k) }, put(to_ahead(n, me, k), k)];

    let credits = (0..=level).filter(move |&k| has_before(k));
    let credits = credits.map(move |k| Step::Signal { peer: to_behind(n, me, k) });
    let up = (0..level)
        .flat_map(receive)
        .chain(has_after(level).then(|| send(level)).into_iter().flatten());
    let before = has_before(level).then(|| receive(level)).into_iter().flatten();
    let down = (0..level).rev().filter(move |&k| has_after(k)).flat_map(send);
    credits.chain(up).chain(before).chain(down)
}

/// The plan of an exclusive scan: an [`inclusive_scan`] whose results move up by one index, as in
/// [`recursive_doubling`](crate::recursive_doubling::exclusive_scan).
pub fn exclusive_scan(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    inclusive_scan(n, me).chain(shifted(n, me))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_at_level_one_combines_once_on_the_way_up_and_once_on_the_way_down() {
        let receive = |k| {
            let peer = from_behind(8, 5, k);
            [Step::Wait { peer }, Step::Reduce { landing: k, landing_is_left: true }]
        };
        let send = |k| [Step::Wait { peer: from_ahead(8, 5, k) }, put(to_ahead(8, 5, k), k)];
        let steps: Vec<_> = inclusive_scan(8, 5).collect();
        let credits = [0, 1].map(|k| Step::Signal { peer: to_behind(8, 5, k) });
        assert_eq!(steps, [credits, receive(0), send(1), receive(1), send(0)].concat());
    }

    #[test]
    fn one_member_has_its_result() {
        assert_eq!(inclusive_scan(1, 0).count(), 0);
        assert_eq!(exclusive_scan(1, 0).count(), 0);
    }
}
