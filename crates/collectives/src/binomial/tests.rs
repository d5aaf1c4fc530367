//! Tests of the tree: its edges, and the order of its steps.

use super::*;
use crate::{Edge, Partner};

/// Returns the member `index`, as the sender or the receiver of a message from a parent to a child
/// that is 2^`k` places ahead.
fn down(index: u32, k: u8) -> Partner {
    Partner {
        index,
        edge: Edge::Ahead(k),
    }
}

/// Returns the member `index`, as the sender or the receiver of a message from a child to its
/// parent, which is 2^`k` places behind.
fn up(index: u32, k: u8) -> Partner {
    Partner {
        index,
        edge: Edge::Behind(k),
    }
}

fn put(from: Buffer, peer: Partner) -> Step {
    Step::Put {
        peer,
        from: from.at(0),
        to: Buffer::Dest.at(0),
        count: 1,
    }
}

#[test]
fn the_root_serves_the_largest_subtree_first() {
    let steps: Vec<_> = broadcast(6, 1, 1).collect();
    let put = |index, k| put(Buffer::Source, down(index, k));
    assert_eq!(steps, [put(5, 2), put(3, 1), put(2, 0)]);
}

#[test]
fn an_inner_member_passes_on_what_it_received() {
    let steps: Vec<_> = broadcast(6, 5, 1).collect();
    assert_eq!(
        steps,
        [
            Step::Wait { peer: down(1, 2) },
            put(Buffer::Dest, down(0, 0))
        ]
    );
}

#[test]
fn those_that_put_have_heard_from_those_they_put_to() {
    // Miri takes minutes for larger teams.
    for n in 1..40 {
        for root in 0..n {
            for me in 0..n {
                check_arrivals(n, me, root);
            }
        }
    }
}

/// Checks that `me` waits for the arrival of each member to which it puts, and that each member for
/// which it waits signals it once.
fn check_arrivals(n: u32, me: u32, root: u32) {
    let mut awaited: Vec<Partner> = Vec::new();
    for step in arrivals(n, me, root) {
        if let Step::Wait { peer } = step {
            awaited.push(peer);
        }
    }

    for step in broadcast(n, me, root) {
        if let Step::Put { peer, .. } = step {
            assert!(awaited.iter().any(|sender| sender.index == peer.index));
        }
    }
    for peer in awaited {
        let signal = Step::Signal {
            peer: Partner { index: me, ..peer },
        };
        let signals = arrivals(n, peer.index, root).filter(|step| *step == signal);
        assert_eq!(signals.count(), 1);
    }
}

#[test]
fn a_sync_gathers_then_releases() {
    let steps: Vec<_> = gather_sync(8, 4).collect();
    assert_eq!(
        steps,
        [
            Step::Wait { peer: up(5, 0) },
            Step::Wait { peer: up(6, 1) },
            Step::Signal { peer: up(0, 2) },
            Step::Wait { peer: down(0, 2) },
            Step::Signal { peer: down(6, 1) },
            Step::Signal { peer: down(5, 0) },
        ]
    );
}

#[test]
fn one_member_has_nothing_to_do() {
    assert_eq!(broadcast(1, 0, 0).count(), 0);
    assert_eq!(gather_sync(1, 0).count(), 0);
}
