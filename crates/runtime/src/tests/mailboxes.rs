//! Messages in mailboxes, and waits for a flag that a peer raises: what agreements consist of.

use super::kit::{CALL, Shape, TestPe, job};
use rushmem_communication::sync::mailbox::message_wait;
use rushmem_communication::sync::waits;
use rushmem_pe::memory::areas::MESSAGE;
use rushmem_transport::Pe;

/// Returns the other PE of two.
fn other(pe: TestPe) -> Pe {
    Pe(1 - pe.job().me.0)
}

fn send(pe: TestPe, tag: u64, first_word: u64) {
    let message = [first_word; MESSAGE];
    pe.links()
        .send_message(&message_wait(CALL), other(pe), tag, &message);
}

fn receive(pe: TestPe, tag: u64) -> Option<u64> {
    let message = pe
        .links()
        .receive_message(&message_wait(CALL), other(pe), tag);
    message.map(|words| words[0])
}

#[test]
fn messages_of_other_tags_are_kept_in_their_order() {
    let received = job(&Shape::of(&[2]).threads(), |pe| match pe.job().me {
        Pe(0) => {
            send(pe, 7, 70);
            send(pe, 7, 71);
            send(pe, 8, 80);
            Vec::new()
        }
        _ => [8, 7, 7].map(|tag| receive(pe, tag)).to_vec(),
    });
    assert_eq!(received[1], [Some(80), Some(70), Some(71)]);
}

/// A mailbox has room for one message, so each PE waits while the other one sends, too.
#[test]
fn both_send_before_they_receive() {
    let received = job(&Shape::of(&[2]).threads(), |pe| {
        for word in 0..100 {
            send(pe, 7, word);
        }
        (0..100).map(|_| receive(pe, 7)).collect::<Vec<_>>()
    });
    let all: Vec<_> = (0..100).map(Some).collect();
    assert_eq!(received, [all.clone(), all]);
}

#[test]
fn a_message_of_another_agreement_ends_the_wait_unless_there_are_threads() {
    let received = job(&Shape::of(&[2]), |pe| {
        send(pe, u64::from(pe.job().me.0), 70);
        receive(pe, u64::from(pe.job().me.0))
    });
    assert_eq!(received, [None, None]);
}

/// Each PE raises a flag of the other one, in turn.
#[test]
fn a_wait_ends_when_the_other_pe_raises_the_flag() {
    job(&Shape::of(&[2]), |pe| {
        let flag = pe.area().areas().pair_flag(other(pe));
        let on_other = pe.area().areas().pair_flag(pe.job().me);
        let describe = || message_wait(CALL)(other(pe));
        for turn in 1..=100 {
            if pe.job().me == Pe(0) {
                pe.area().raise(other(pe), on_other, turn);
            }

            waits::until_rung(pe.links(), &[], describe, || pe.area().flag(flag) >= turn);
            assert_eq!(
                pe.area().flag(flag),
                turn,
                "the other PE waits for this one"
            );

            if pe.job().me == Pe(1) {
                pe.area().raise(other(pe), on_other, turn);
            }
        }
    });
}
