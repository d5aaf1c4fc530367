//! Unit tests of `agreement`.

use super::*;

const REQUEST: AgreementRequest = AgreementRequest {
    tag: 0,
    arguments: 0,
    able: true,
    keeps: false,
    count: 1,
};

/// Returns the slots of a window on which one PE alone agrees.
fn settled(slots: &Slots, window: usize, count: usize) -> Option<Vec<u16>> {
    let proposal = slots.offer(window, REQUEST);
    let settled = slots.take_slots(window, proposal, proposal, count)?;
    Some(settled.iter().map(|slot| slot.number).collect())
}

#[test]
fn what_was_settled_is_not_offered_again_until_it_is_released() {
    let slots = Slots::new(2, 0);
    assert_eq!(settled(&slots, 0, 2), Some(vec![2, 3]));
    assert_eq!(settled(&slots, 0, 1), Some(vec![4]));
    slots.release(Slot {
        number: 3,
        receive_buffers: None,
    });
    assert_eq!(settled(&slots, 0, 1), Some(vec![3]));
    assert_eq!(settled(&slots, 0, 60), None);
    assert_eq!(settled(&slots, 0, 59), Some((5..64).collect()));
}

#[test]
fn a_window_on_offer_is_empty_for_others() {
    let slots = Slots::new(0, 0);
    let first = slots.offer(3, REQUEST);
    assert_eq!(settled(&slots, 3, 1), None);
    let agreed = slots.take_slots(3, first, first, 1);
    assert_eq!(
        agreed,
        Some(vec![Slot {
            number: 3 * WINDOW as u16,
            receive_buffers: None
        }])
    );
}

#[test]
fn no_two_teams_have_a_set_of_receive_buffers() {
    let slots = Slots::new(0, 0b1100);
    let sets = |agreed: Option<Vec<Slot>>| -> Vec<Option<u8>> {
        agreed
            .expect("there are slots")
            .iter()
            .map(|slot| slot.receive_buffers)
            .collect()
    };
    let first = slots.offer(0, REQUEST);
    let beside = slots.offer(1, REQUEST);
    assert_eq!(
        (first.receive_buffers, beside.receive_buffers),
        (0b1100, 0),
        "the other one has them"
    );
    assert_eq!(sets(slots.take_slots(1, beside, beside, 1)), [None]);
    let agreed = Proposal {
        receive_buffers: 0b1000,
        ..first
    };
    assert_eq!(
        sets(slots.take_slots(0, first, agreed, 1)),
        [Some(3)],
        "others lack the second"
    );
    let two = slots.offer(0, REQUEST);
    assert_eq!(sets(slots.take_slots(0, two, two, 2)), [Some(2), None]);
    slots.release(Slot {
        number: 0,
        receive_buffers: Some(3),
    });
    assert_eq!(slots.offer(0, REQUEST).receive_buffers, 0b1000);
}

#[test]
fn what_is_refused_takes_nothing() {
    let slots = Slots::new(0, 0);
    let proposal = slots.offer(
        0,
        AgreementRequest {
            able: false,
            ..REQUEST
        },
    );
    assert_eq!(slots.take_slots(0, proposal, proposal, 1), None);
    let proposal = slots.offer(0, REQUEST);
    assert_eq!(
        slots.take_slots(
            0,
            proposal,
            Proposal {
                alike: false,
                ..proposal
            },
            1
        ),
        None
    );
    assert_eq!(settled(&slots, 0, 1), Some(vec![0]));
}

#[test]
fn messages_carry_all_that_is_proposed() {
    let proposal = Slots::new(7, 5).offer(
        0,
        AgreementRequest {
            arguments: 5,
            ..REQUEST
        },
    );
    for flags in 0..16 {
        let [able, alike, offered, keeps] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
        let proposal = Proposal {
            able,
            alike,
            offered,
            keeps,
            ..proposal
        };
        let message = proposal.message(3);
        assert_eq!(
            (message[0], Proposal::from_message(&message)),
            (3, proposal)
        );
    }
}

#[test]
fn generations_never_return() {
    let slots = Slots::new(0, 0);
    let first = slots.offer(0, REQUEST);
    slots.take_slots(
        0,
        first,
        Proposal {
            generation: 40,
            ..first
        },
        1,
    );
    assert_eq!(slots.offer(0, REQUEST).generation, 41);
    slots.record_generation(50);
    slots.record_generation(49);
    assert_eq!(slots.offer(1, REQUEST).generation, 51);
}

#[test]
fn generations_end() {
    let slots = Slots::new(0, 0);
    slots.record_generation(GENERATIONS - 2);
    assert!(slots.offer(0, REQUEST).able);
    slots.record_generation(GENERATIONS - 1);
    assert!(!slots.offer(1, REQUEST).able);
}
