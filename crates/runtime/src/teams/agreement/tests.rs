//! Unit tests of `agreement`.

use super::*;
use crate::tests::kit::{CALL, Shape, TestPe, job};
use rushmem_communication::sync::mailbox::message_wait;

const REQUEST: AgreementRequest = AgreementRequest {
    tag: 0,
    arguments: 0,
    able: true,
    keeps: false,
    count: 1,
};

/// Returns a slot without receive buffers.
fn slot(number: u16) -> Slot {
    Slot {
        number,
        receive_buffers: None,
    }
}

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

    slots.release(slot(3));
    assert_eq!(settled(&slots, 0, 1), Some(vec![3]));

    // The slots 5 to 63 of the window are left.
    assert_eq!(settled(&slots, 0, 60), None);
    assert_eq!(settled(&slots, 0, 59), Some((5..64).collect()));
}

#[test]
fn a_window_on_offer_is_empty_for_others() {
    let slots = Slots::new(0, 0);
    let first = slots.offer(3, REQUEST);
    assert_eq!(settled(&slots, 3, 1), None);
    let agreed = slots.take_slots(3, first, first, 1);
    assert_eq!(agreed, Some(vec![slot(3 * WINDOW as u16)]));
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

    // The first agreement proposes all sets, so the second one proposes none.
    let first = slots.offer(0, REQUEST);
    let second = slots.offer(1, REQUEST);
    assert_eq!(first.receive_buffers, 0b1100);
    assert_eq!(second.receive_buffers, 0);
    assert_eq!(sets(slots.take_slots(1, second, second, 1)), [None]);

    // Set 2 is not free on another member.
    let agreed = Proposal {
        receive_buffers: 0b1000,
        ..first
    };
    assert_eq!(sets(slots.take_slots(0, first, agreed, 1)), [Some(3)]);

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
    let unable = AgreementRequest {
        able: false,
        ..REQUEST
    };
    let proposal = slots.offer(0, unable);
    assert_eq!(slots.take_slots(0, proposal, proposal, 1), None);

    let proposal = slots.offer(0, REQUEST);
    let unlike = Proposal {
        alike: false,
        ..proposal
    };
    assert_eq!(slots.take_slots(0, proposal, unlike, 1), None);

    assert_eq!(settled(&slots, 0, 1), Some(vec![0]));
}

#[test]
fn messages_carry_all_that_is_proposed() {
    let request = AgreementRequest {
        arguments: 5,
        ..REQUEST
    };
    let proposal = Slots::new(7, 5).offer(0, request);

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
        assert_eq!(message[0], 3);
        assert_eq!(Proposal::from_message(&message), proposal);
    }
}

#[test]
fn generations_never_return() {
    let slots = Slots::new(0, 0);
    let first = slots.offer(0, REQUEST);
    let agreed = Proposal {
        generation: 40,
        ..first
    };
    slots.take_slots(0, first, agreed, 1);
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

/// Makes an agreement with the other PE.
fn agreed_with_other(pe: TestPe, slots: &Slots, request: AgreementRequest) -> Agreed {
    let describe = message_wait(CALL);
    let member = AgreeingMember {
        links: pe.links(),
        slots,
        describe: &describe,
    };
    member.agree(&Members::world(2), request)
}

#[test]
fn two_pes_agree_on_a_slot_that_is_free_on_both() {
    let agreed = job(&Shape::of(&[2]), |pe| {
        let slots = Slots::new(0, 0);
        let me = pe.job().me.0;
        // PE 0 has taken the slots 0 and 1, PE 1 only slot 2.
        let taken = settled(&slots, 0, 2 + me as usize).expect("all are free");
        if me == 1 {
            for &number in &taken[..2] {
                slots.release(slot(number));
            }
        }
        slots.record_generation(40 + u64::from(me));
        agreed_with_other(pe, &slots, REQUEST)
    });

    let expected = Agreed::Slots {
        slots: vec![slot(3)],
        generation: 42,
        all_keep: false,
    };
    assert_eq!(agreed, [expected.clone(), expected]);
}

#[test]
fn two_pes_go_on_to_the_next_window() {
    let agreed = job(&Shape::of(&[2]), |pe| {
        let slots = Slots::new(0, 0);
        // Together they have no slot of the first window free, but each has half of them.
        let taken = settled(&slots, 0, WINDOW).expect("all are free");
        let half = &taken[pe.job().me.index() * WINDOW / 2..][..WINDOW / 2];
        for &number in half {
            slots.release(slot(number));
        }
        agreed_with_other(pe, &slots, REQUEST)
    });

    for agreed in agreed {
        assert_eq!(first_slot(&agreed), Some(WINDOW as u16), "{agreed:?}");
    }
}

#[test]
fn different_arguments_are_found_on_both_pes() {
    let agreed = job(&Shape::of(&[2]), |pe| {
        let slots = Slots::new(0, 0);
        let arguments = u64::from(pe.job().me.0);
        let unlike = AgreementRequest {
            arguments,
            ..REQUEST
        };
        [unlike, REQUEST].map(|request| agreed_with_other(pe, &slots, request))
    });
    for [unlike, next] in agreed {
        assert_eq!(unlike, Agreed::Unlike);
        // The refused agreement has taken nothing.
        assert_eq!(first_slot(&next), Some(0));
    }
}

/// Returns the number of the first slot, if the members have agreed on slots.
fn first_slot(agreed: &Agreed) -> Option<u16> {
    match agreed {
        Agreed::Slots { slots, .. } => Some(slots[0].number),
        _ => None,
    }
}

#[test]
fn two_pes_in_different_agreements_do_not_wait_for_each_other() {
    let agreed = job(&Shape::of(&[2]), |pe| {
        let slots = Slots::new(0, 0);
        let tag = u64::from(pe.job().me.0);
        agreed_with_other(pe, &slots, AgreementRequest { tag, ..REQUEST })
    });
    assert_eq!(agreed, [Agreed::Elsewhere(Pe(1)), Agreed::Elsewhere(Pe(0))]);
}
