//! Dissemination: a sync in which every member does the same, in the fewest rounds.
//!
//! D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International
//! Journal of Parallel Programming 17 (1), 1988.

use crate::Step;
use crate::index::{ahead, behind, powers_below};

/// The plan of a sync in ⌈log2 n⌉ rounds: nobody ends it before everybody has entered it.
pub fn sync(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    powers_below(n).flat_map(move |distance| {
        [
            Step::Signal { peer: ahead(n, me, distance) },
            Step::Wait { peer: behind(n, me, distance) },
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_members_meet_in_two_rounds() {
        let steps: Vec<_> = sync(3, 2).collect();
        assert_eq!(
            steps,
            [
                Step::Signal { peer: 0 },
                Step::Wait { peer: 1 },
                Step::Signal { peer: 1 },
                Step::Wait { peer: 0 },
            ]
        );
    }

    #[test]
    fn one_member_waits_for_nobody() {
        assert_eq!(sync(1, 0).count(), 0);
    }
}
