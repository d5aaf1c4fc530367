//! Unit tests of `loss`.

use super::*;
use crate::peers::loss::Violation;
use std::sync::Mutex;

#[derive(Default)]
struct Losses(Mutex<Vec<Error>>);

impl Host for Losses {
    fn lost(&self, error: &Error) {
        self.0.lock().expect("no panic holds it").push(error.clone());
    }
}

#[test]
fn the_first_loss_stays_and_is_reported_once() {
    let losses = Arc::new(Losses::default());
    let loss = Loss::new(Pe(0), "here".to_owned(), losses.clone());
    assert_eq!(loss.check(), Ok(()));
    let first = loss.of_peer(Pe(3), Some("there"), "it hung up");
    let text = "PE 3 was lost: the connection from PE 0 on here to PE 3 on there broke: it hung up";
    assert_eq!(first.to_string(), text);
    assert_eq!(loss.of_self("no descriptors"), first);
    assert_eq!(loss.check(), Err(first.clone()));
    assert_eq!(*losses.0.lock().expect("no panic holds it"), [first]);
}

#[test]
fn a_message_that_cannot_be_carried_out_is_the_loss_of_its_sender() {
    let text = |message: RefusedMessage| {
        let loss = Loss::new(Pe(0), "here".to_owned(), Arc::new(Losses::default()));
        let host_of = |pe| (pe == Pe(3)).then(|| "there".to_owned());
        loss.of_message(&message, host_of).to_string()
    };
    let wrong = Violation::Address(99);
    let of_peer = text(RefusedMessage::of(Pe(3), wrong));
    assert_eq!(
        of_peer,
        "PE 3 was lost: the connection from PE 0 on here to PE 3 on there broke: it used an invalid offset 99; see what \
         PE 3 said last"
    );
    for message in [RefusedMessage::of(Pe(7), wrong), RefusedMessage::of_nobody(wrong)] {
        let report = text(message);
        assert!(
            report.starts_with("PE 0 on here cannot use its network: a message came"),
            "{report}"
        );
        assert!(report.ends_with("it used an invalid offset 99"), "{report}");
    }
}

#[test]
fn a_pe_that_leaves_reports_no_loss() {
    let losses = Arc::new(Losses::default());
    let loss = Loss::new(Pe(0), "here".to_owned(), losses.clone());
    loss.leave();
    loss.of_peer(Pe(1), None, "it hung up");
    assert!(loss.check().is_err() && losses.0.lock().expect("no panic holds it").is_empty());
}
