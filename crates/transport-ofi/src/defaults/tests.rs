//! Unit tests of `defaults`.
#![allow(unsafe_code)]

use super::*;

#[test]
fn what_the_user_says_stays() {
    let mut said =
        [c"A=b".as_ptr().cast_mut(), c"FI_OFI_RXM_MSG_RX_SIZE=7".as_ptr().cast_mut(), null_mut()];
    // SAFETY: a list of strings with a null at the end.
    let entries = unsafe { with_ours(said.as_mut_ptr(), false) };
    let ours = OURS.map(|entry| entry.as_ptr().cast_mut());
    assert_eq!(entries, [said[0], said[1], ours[0], ours[2], null_mut()]);
    // SAFETY: null.
    let entries = unsafe { with_ours(null_mut(), true) };
    let without_cards = WITHOUT_CARDS.as_ptr().cast_mut();
    assert_eq!(entries, [ours[0], ours[1], ours[2], without_cards, null_mut()]);
    said[0] = c"FI_UNIVERSE_SIZE=9".as_ptr().cast_mut();
    // SAFETY: a list of strings with a null at the end.
    let entries = unsafe { with_ours(said.as_mut_ptr(), true) };
    assert!(!entries.contains(&without_cards), "what the user says stays");
}

#[test]
fn it_is_told_and_forgotten() {
    const NAME: &str = "FI_OFI_RXM_BUFFER_SIZE";
    // Another test may open the library, which is told the same; from now on it has been.
    let _ = crate::fabric::library();
    assert_eq!(std::env::var(NAME).ok(), None, "a variable that this test needs unset");
    assert_eq!(told(|| std::env::var(NAME).ok()).as_deref(), Some("1024"));
    assert_eq!(std::env::var(NAME).ok(), None);
}
