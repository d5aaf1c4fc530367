//! Dissemination: a sync in the fewest rounds, in which every member sends the same number of
//! signals.
//!
//! D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International
//! Journal of Parallel Programming 17 (1), 1988.

use crate::edge::{from_behind, to_ahead};
use crate::index;
use crate::{Partner, Step};

/// Returns the plan of a sync in ⌈log2 n⌉ rounds: no member leaves it before all have entered it.
pub fn sync(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    rounds(n, me).flat_map(|(receiver, sender)| {
        [Step::Signal { peer: receiver }, Step::Wait { peer: sender }]
    })
}

/// Returns the rounds of a [`sync`]: the member that is signaled in each, and the one whose signal
/// is awaited then.
pub fn rounds(n: u32, me: u32) -> impl Iterator<Item = (Partner, Partner)> + Clone {
    index::rounds(n).map(move |k| (to_ahead(n, me, k), from_behind(n, me, k)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Edge;

    #[test]
    fn three_members_meet_in_two_rounds() {
        let steps: Vec<_> = sync(3, 2).collect();
        let signal = |index, k| Step::Signal {
            peer: Partner {
                index,
                edge: Edge::Ahead(k),
            },
        };
        let wait = |index, k| Step::Wait {
            peer: Partner {
                index,
                edge: Edge::Ahead(k),
            },
        };
        assert_eq!(steps, [signal(0, 0), wait(1, 0), signal(1, 1), wait(0, 1)]);
    }

    #[test]
    fn one_member_waits_for_nobody() {
        assert_eq!(sync(1, 0).count(), 0);
    }
}
