//! Tests of the rounds of recursive doubling, and of the members that are folded.

use super::*;

const COPY_BACK: Step = Step::Copy {
    from: Buffer::Receive(1).at(0),
    to: ACCUMULATOR,
    count: 1,
};

#[test]
fn the_third_of_three_is_alone_in_the_core_and_the_second_is_carried() {
    let first: Vec<_> = all_reduce(3, 0).collect();
    let pair = |index| Partner::exchange(index, 0);
    let fold = |index| Partner::exchange(index, 1);
    let fold_in = [
        Step::Wait { peer: fold(1) },
        Step::Reduce {
            receive_buffer: 1,
            receive_buffer_is_left: false,
        },
    ];
    assert_eq!(first[..2], fold_in);
    assert_eq!(first[2..5], exchange(0, pair(2), 0));
    assert_eq!(first[5..], [put(fold(1), 1)]);

    let second: Vec<_> = all_reduce(3, 1).collect();
    assert_eq!(
        second,
        [put(fold(0), 1), Step::Wait { peer: fold(0) }, COPY_BACK]
    );

    let third: Vec<_> = all_reduce(3, 2).collect();
    assert_eq!(third, exchange(2, pair(0), 0));
}

#[test]
fn a_scan_passes_nothing_around_the_circle() {
    let send = |k| put(to_ahead(3, 1, k), k);
    let wait = |k| Step::Wait {
        peer: from_behind(3, 1, k),
    };

    let inclusive: Vec<_> = inclusive_scan(3, 1).collect();
    let received = Step::Reduce {
        receive_buffer: 0,
        receive_buffer_is_left: true,
    };
    let around = Step::Signal {
        peer: to_ahead(3, 1, 1),
    };
    assert_eq!(inclusive, [send(0), wait(0), received, around, wait(1)]);

    let exclusive: Vec<_> = exclusive_scan(3, 1).collect();
    let shifted = Step::Copy {
        from: Buffer::Receive(2).at(0),
        to: ACCUMULATOR,
        count: 1,
    };
    assert_eq!(exclusive[..inclusive.len()], inclusive);
    assert_eq!(
        exclusive[inclusive.len()..],
        [put(to_ahead(3, 1, 0), 2), wait(0), shifted]
    );
}

#[test]
fn members_hear_from_all_to_whom_they_put() {
    for n in [1, 2, 3, 7, 8, 9] {
        for me in 0..n {
            let steps_of_entry: Vec<Step> = entry(n, me).collect();
            for step in all_reduce(n, me) {
                if let Step::Put { peer, .. } = step {
                    let waits = steps_of_entry.contains(&Step::Wait { peer });
                    assert!(waits, "{me} to {peer:?} of {n}");
                }
            }
        }
    }
}

#[test]
fn one_member_has_its_result() {
    assert_eq!(all_reduce(1, 0).count(), 0);
    assert_eq!(inclusive_scan(1, 0).count(), 0);
    assert_eq!(exclusive_scan(1, 0).count(), 0);
}
