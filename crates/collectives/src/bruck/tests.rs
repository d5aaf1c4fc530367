//! Tests of the rounds of Bruck's algorithms, and of the blocks that are sent in each.

use super::*;
use crate::{Edge, Partner};

fn peer(index: u32, k: u8) -> Partner {
    Partner {
        index,
        edge: Edge::Behind(k),
    }
}

fn put(peer: Partner, first: u32, count: u32) -> Step {
    Step::Put {
        peer,
        from: Buffer::Dest.at(first),
        to: Buffer::Dest.at(first),
        count,
    }
}

fn own_put(peer: Partner, me: u32) -> Step {
    Step::Put {
        peer,
        from: Buffer::Source.at(0),
        to: Buffer::Dest.at(me),
        count: 1,
    }
}

fn own_copy(me: u32) -> Step {
    Step::Copy {
        from: Buffer::Source.at(0),
        to: Buffer::Dest.at(me),
        count: 1,
    }
}

#[test]
fn a_run_that_wraps_takes_two_puts_and_two_waits() {
    let last: Vec<_> = all_gather(4, 3).collect();
    assert_eq!(
        last,
        [
            own_put(peer(2, 0), 3),
            own_copy(3),
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
            own_put(peer(0, 0), 1),
            own_copy(1),
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

#[test]
fn a_block_takes_the_bits_of_its_distance_in_turn() {
    // Among 4 members, a block for the member 3 places ahead is sent 1 place, from the source, then
    // 2 places, from the receive buffer of the first round.
    use Buffer::{Accumulator, Dest, Receive, Source};

    let copies: Vec<_> = all_to_all(4, 1)
        .filter(|step| matches!(step, Step::Copy { .. }))
        .collect();
    let copy = |from, to| Step::Copy { from, to, count: 1 };
    assert_eq!(
        copies,
        [
            copy(Source.at(1), Dest.at(1)),
            copy(Source.at(2), Accumulator.at(0)),
            copy(Source.at(0), Accumulator.at(1)),
            copy(Source.at(3), Accumulator.at(0)),
            copy(Receive(0).at(1), Accumulator.at(1)),
            copy(Receive(0).at(0), Dest.at(0)),
            copy(Receive(1).at(0), Dest.at(3)),
            copy(Receive(1).at(1), Dest.at(2)),
        ]
    );
}

#[test]
fn numbers_with_a_bit_are_counted() {
    for n in 0..70 {
        for k in 0..8 {
            let numbers = (0..n).filter(|number| number >> k & 1 == 1);
            assert_eq!(below(n, k), numbers.count() as u32);
        }
    }
    assert_eq!(below(u32::MAX, 31), (1 << 31) - 1);
    assert_eq!([1, 2, 3, 6, 8].map(receive_buffer_parts), [0, 1, 1, 3, 4]);
}
