//! Unit tests of `agreement`.

use super::*;

const REQUEST: AgreementRequest =
    AgreementRequest { tag: 0, arguments: 0, able: true, keeps: false, count: 1 };

/// What one PE alone agrees on in a window.
fn settled(slots: &Slots, window: usize, count: usize) -> Option<Vec<u16>> {
    let (proposal, mine) = slots.offer(window, REQUEST);
    slots.settle(window, mine, proposal, count)
}

#[test]
fn what_was_settled_is_not_offered_again_until_it_is_released() {
    let slots = Slots::new(2);
    assert_eq!(settled(&slots, 0, 2), Some(vec![2, 3]));
    assert_eq!(settled(&slots, 0, 1), Some(vec![4]));
    slots.release(3);
    assert_eq!(settled(&slots, 0, 1), Some(vec![3]));
    assert_eq!(settled(&slots, 0, 60), None);
    assert_eq!(settled(&slots, 0, 59), Some((5..64).collect()));
}

#[test]
fn a_window_on_offer_is_empty_for_others() {
    let slots = Slots::new(0);
    let (first, mine) = slots.offer(3, REQUEST);
    assert_eq!(settled(&slots, 3, 1), None);
    let agreed = slots.settle(3, mine, first, 1);
    assert_eq!(agreed, Some(vec![3 * WINDOW as u16]));
}

#[test]
fn what_is_refused_takes_nothing() {
    let slots = Slots::new(0);
    let (proposal, mine) = slots.offer(0, AgreementRequest { able: false, ..REQUEST });
    assert_eq!(slots.settle(0, mine, proposal, 1), None);
    let (proposal, mine) = slots.offer(0, REQUEST);
    assert_eq!(slots.settle(0, mine, Proposal { alike: false, ..proposal }, 1), None);
    assert_eq!(settled(&slots, 0, 1), Some(vec![0]));
}

#[test]
fn messages_carry_all_that_is_proposed() {
    let proposal = Slots::new(7).offer(0, AgreementRequest { arguments: 5, ..REQUEST }).0;
    for flags in 0..16 {
        let [able, alike, offered, keeps] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
        let proposal = Proposal { able, alike, offered, keeps, ..proposal };
        let message = proposal.message(3);
        assert_eq!((message[0], Proposal::from_message(&message)), (3, proposal));
    }
}

#[test]
fn generations_never_return() {
    let slots = Slots::new(0);
    let (first, mine) = slots.offer(0, REQUEST);
    slots.settle(0, mine, Proposal { generation: 40, ..first }, 1);
    assert_eq!(slots.offer(0, REQUEST).0.generation, 41);
    slots.reached(50);
    slots.reached(49);
    assert_eq!(slots.offer(1, REQUEST).0.generation, 51);
}

#[test]
fn generations_end() {
    let slots = Slots::new(0);
    slots.reached(GENERATIONS - 2);
    assert!(slots.offer(0, REQUEST).0.able);
    slots.reached(GENERATIONS - 1);
    assert!(!slots.offer(1, REQUEST).0.able);
}
