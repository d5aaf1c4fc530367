//! Unit tests of `loss`.

use super::*;
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
fn a_pe_that_leaves_reports_no_loss() {
    let losses = Arc::new(Losses::default());
    let loss = Loss::new(Pe(0), "here".to_owned(), losses.clone());
    loss.leave();
    loss.of_peer(Pe(1), None, "it hung up");
    assert!(loss.check().is_err() && losses.0.lock().expect("no panic holds it").is_empty());
}
