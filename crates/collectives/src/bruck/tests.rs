//! Unit tests of `bruck`.

use super::*;
use crate::{Edge, Peer};

fn peer(index: u32, k: u8) -> Peer {
    Peer { index, edge: Edge::Behind(k) }
}

fn put(peer: Peer, first: u32, count: u32) -> Step {
    Step::Put { peer, from: Place::Dest.at(first), to: Place::Dest.at(first), count }
}

#[test]
fn a_run_that_wraps_takes_two_puts_and_two_waits() {
    let own = |me| Step::Copy { from: Place::Source.at(0), to: Place::Dest.at(me), count: 1 };
    let last: Vec<_> = all_gather(4, 3).collect();
    assert_eq!(
        last,
        [
            own(3),
            put(peer(2, 0), 3, 1),
            Step::Wait { peer: peer(0, 0) },
            put(peer(1, 1), 3, 1),
            put(peer(1, 1), 0, 1),
            Step::Wait { peer: peer(1, 1) },
        ]
    );
    let second: Vec<_> = all_gather(4, 1).collect();
    assert_eq!(
        second,
        [
            own(1),
            put(peer(0, 0), 1, 1),
            Step::Wait { peer: peer(2, 0) },
            put(peer(3, 1), 1, 2),
            Step::Wait { peer: peer(3, 1) },
            Step::Wait { peer: peer(3, 1) },
        ]
    );
}

#[test]
fn one_member_copies_its_block() {
    assert_eq!(all_gather(1, 0).count(), 1);
}
