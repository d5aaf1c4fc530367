//! A handshake succeeds only if both ends know the secret and the claim names the accepting PE.

use crate::proto::{Acceptor, CLAIM, Connector, HandshakeAnswer, HandshakeViolation};
use proptest::prelude::*;

const SECRET: [u8; 32] = [7; 32];

fn acceptor() -> Acceptor {
    Acceptor::new(SECRET, 3, 8, [1; 32])
}

#[test]
fn both_sides_with_the_secret_agree() {
    let mut target = acceptor();
    let mut origin = Connector::new(SECRET, 5, 3, [2; 32]);
    let claim = origin.claim(&target.greeting()).expect("the same version");
    assert_eq!(target.check(&claim), Ok(5));
    for answer in [HandshakeAnswer::Welcome, HandshakeAnswer::Deferral] {
        assert_eq!(origin.check(&target.answer(answer)), Ok(answer));
    }
}

#[test]
fn another_secret_is_refused_by_either_side() {
    let mut target = acceptor();
    let mut origin = Connector::new([8; 32], 5, 3, [2; 32]);
    let claim = origin.claim(&target.greeting()).expect("the same version");
    assert_eq!(target.check(&claim), Err(HandshakeViolation::Secret));
    // A target that accepts any claim still cannot prove itself.
    let mut target = Acceptor::new([9; 32], 3, 8, [1; 32]);
    let mut origin = Connector::new([9; 32], 5, 3, [2; 32]);
    let claim = origin.claim(&target.greeting()).expect("the same version");
    target.check(&claim).expect("the same secret");
    let welcome = target.answer(HandshakeAnswer::Welcome);
    let mut other = Connector::new(SECRET, 5, 3, [2; 32]);
    other.claim(&target.greeting()).expect("the same version");
    assert_eq!(other.check(&welcome), Err(HandshakeViolation::Secret));
}

#[test]
fn a_claim_counts_once_and_for_one_pe() {
    let mut origin = Connector::new(SECRET, 5, 3, [2; 32]);
    let claim = origin
        .claim(&acceptor().greeting())
        .expect("the same version");
    // The claim is repeated to a target with another nonce, and to another PE.
    let mut later = Acceptor::new(SECRET, 3, 8, [4; 32]);
    assert_eq!(later.check(&claim), Err(HandshakeViolation::Secret));
    let mut elsewhere = Acceptor::new(SECRET, 4, 8, [1; 32]);
    assert_eq!(elsewhere.check(&claim), Err(HandshakeViolation::WrongPe));
    let mut smaller_job = Acceptor::new(SECRET, 3, 5, [1; 32]);
    assert_eq!(smaller_job.check(&claim), Err(HandshakeViolation::WrongPe));
}

#[test]
fn a_proof_cannot_be_sent_back() {
    // A process answers a claim with the claim's own proof.
    let mut origin = Connector::new(SECRET, 3, 3, [1; 32]);
    let claim = origin
        .claim(&acceptor().greeting())
        .expect("the same version");
    let own = claim[CLAIM - 32..].try_into().expect("32 bytes");
    assert_eq!(origin.check(&own), Err(HandshakeViolation::Secret));
}

#[test]
fn another_version_is_named() {
    let mut greeting = acceptor().greeting();
    greeting[7] = 9;
    let mut origin = Connector::new(SECRET, 5, 3, [2; 32]);
    assert_eq!(origin.claim(&greeting), Err(HandshakeViolation::Version(9)));
}

proptest! {
    #[test]
    fn a_changed_bit_is_noticed(bit in 0..CLAIM * 8) {
        let mut target = acceptor();
        let mut origin = Connector::new(SECRET, 5, 3, [2; 32]);
        let mut claim = origin.claim(&target.greeting()).expect("the same version");
        claim[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(target.check(&claim).is_err());
    }

    #[test]
    fn bytes_that_nobody_meant_are_refused(
        claim in any::<[[u8; 8]; CLAIM / 8]>(),
        greeting in any::<[[u8; 8]; 5]>(),
    ) {
        let claim = claim.concat().try_into().expect("as many bytes");
        prop_assert!(acceptor().check(&claim).is_err());
        let greeting = greeting.concat().try_into().expect("as many bytes");
        prop_assert!(Connector::new(SECRET, 5, 3, [2; 32]).claim(&greeting).is_err());
    }
}
