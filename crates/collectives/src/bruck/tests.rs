//! Unit tests of `bruck`.

use super::*;

fn put(peer: u32, first: u32, count: u32) -> Step {
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
            put(2, 3, 1),
            Step::Wait { peer: 0 },
            put(1, 3, 1),
            put(1, 0, 1),
            Step::Wait { peer: 1 },
        ]
    );
    let second: Vec<_> = all_gather(4, 1).collect();
    assert_eq!(
        second,
        [
            own(1),
            put(0, 1, 1),
            Step::Wait { peer: 2 },
            put(3, 1, 2),
            Step::Wait { peer: 3 },
            Step::Wait { peer: 3 },
        ]
    );
}

#[test]
fn one_member_copies_its_block() {
    assert_eq!(all_gather(1, 0).count(), 1);
}
