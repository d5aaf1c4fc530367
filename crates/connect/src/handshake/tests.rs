//! A handshake succeeds only if both ends know the secret, and the claim names the accepting
//! process and its address.

use super::*;
use proptest::prelude::*;

const PROTOCOL: Protocol = Protocol {
    magic: *b"testing",
    version: 3,
};

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes())
}

fn acceptor() -> Acceptor {
    Acceptor::new(PROTOCOL, &secret("secret"), 3, [1; NBYTES])
}

fn connector() -> Connector {
    Connector::new(PROTOCOL, &secret("secret"), 5, 3, [2; NBYTES])
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn both_ends_with_the_secret_agree() {
    let mut target = acceptor();
    let mut origin = connector();
    let claim = origin.claim(&target.greeting()).expect("a greeting");
    assert_eq!(target.check(&claim), Ok(5));

    for answer in [Answer::Welcome, Answer::Deferral] {
        assert_eq!(origin.check(&target.answer(answer)), Ok(answer));
    }
    assert_eq!(origin.check(&REFUSAL), Err(Violation::Secret));

    let mut there = target.session();
    let mut here = origin.session();
    here.received(&there.seal(b"records"));
    assert_eq!(here.take(), Ok(Some(b"records".to_vec())));
    there.received(&here.seal(b"an answer"));
    assert_eq!(there.take(), Ok(Some(b"an answer".to_vec())));
}

#[test]
fn another_secret_is_refused_by_either_end() {
    let mut target = acceptor();
    let mut origin = Connector::new(PROTOCOL, &secret("another"), 5, 3, [2; NBYTES]);
    let claim = origin.claim(&target.greeting()).expect("a greeting");
    assert_eq!(target.check(&claim), Err(Violation::Secret));

    // A process that accepts any claim still cannot prove itself.
    let mut target = Acceptor::new(PROTOCOL, &secret("another"), 3, [1; NBYTES]);
    let claim = origin.claim(&target.greeting()).expect("a greeting");
    target.check(&claim).expect("the same secret");

    let mut other = connector();
    other.claim(&target.greeting()).expect("a greeting");
    let welcome = target.answer(Answer::Welcome);
    assert_eq!(other.check(&welcome), Err(Violation::Secret));
}

#[test]
fn a_claim_counts_once_and_for_one_process() {
    let claim = connector().claim(&acceptor().greeting());
    let claim = claim.expect("a greeting");

    // It is sent again to the same process, with another nonce, and to another process.
    let mut later = Acceptor::new(PROTOCOL, &secret("secret"), 3, [4; NBYTES]);
    assert_eq!(later.check(&claim), Err(Violation::Secret));
    let mut elsewhere = Acceptor::new(PROTOCOL, &secret("secret"), 4, [1; NBYTES]);
    assert_eq!(elsewhere.check(&claim), Err(Violation::WrongPe));
}

#[test]
fn a_proof_cannot_be_sent_back() {
    // A process answers a claim with the claim's own proof.
    let mut origin = Connector::new(PROTOCOL, &secret("secret"), 3, 3, [1; NBYTES]);
    let claim = origin.claim(&acceptor().greeting()).expect("a greeting");
    let own = claim[CLAIM - ANSWER..].try_into().expect("its size");
    assert_eq!(origin.check(&own), Err(Violation::Secret));

    // Nor can it send back what this end has sealed.
    let mut session = origin.session();
    let sealed = session.seal(b"records");
    session.received(&sealed);
    assert!(session.take().is_err());
}

#[test]
fn a_relay_at_another_address_is_noticed() {
    let relay = address("172.17.0.1:5000");
    let real = address("10.0.0.1:5000");
    let mut origin = connector().bound_to(relay);
    let mut target = acceptor().bound_to(real);

    let claim = origin.claim(&target.greeting()).expect("a greeting");
    assert_eq!(target.check(&claim), Err(Violation::Secret));

    // One end alone binds it.
    assert_eq!(acceptor().check(&claim), Err(Violation::Secret));

    // A socket of IPv6 that accepts a connection of IPv4 shows the address in another form.
    let mut mapped = acceptor().bound_to(address("[::ffff:172.17.0.1]:5000"));
    assert_eq!(mapped.check(&claim), Ok(5));
}

#[test]
fn a_relay_can_neither_read_nor_change_what_is_sealed() {
    // It has passed on the whole handshake, and knows all of it.
    let mut target = acceptor();
    let mut origin = connector();
    let claim = origin.claim(&target.greeting()).expect("a greeting");
    target.check(&claim).expect("the secret");

    let sealed = target.session().seal(b"the secret of the transport");
    assert!(!sealed.windows(6).any(|six| six == b"secret"));

    // The nonces without the secret are not enough.
    let mut relay = Connector {
        facts: Facts {
            secret: secret("a guess"),
            ..origin.facts.clone()
        },
    }
    .session();
    relay.received(&sealed);
    assert!(relay.take().is_err());
}

#[test]
fn another_program_and_another_version_are_named() {
    let mut greeting = acceptor().greeting();
    greeting[MAGIC] = 9;
    assert_eq!(connector().claim(&greeting), Err(Violation::Version(9)));
    greeting[0] = 9;
    assert_eq!(connector().claim(&greeting), Err(Violation::Greeting));
}

proptest! {
    #[test]
    fn a_changed_bit_is_noticed(bit in 0..CLAIM * 8) {
        let mut target = acceptor();
        let mut claim = connector().claim(&target.greeting()).expect("a greeting");
        claim[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(target.check(&claim).is_err());
    }

    #[test]
    fn bytes_that_nobody_meant_are_refused(
        claim in any::<[[u8; 8]; CLAIM / 8]>(),
        greeting in any::<[[u8; 8]; GREETING / 8]>(),
        answer in any::<[u8; ANSWER]>(),
    ) {
        let claim = claim.concat().try_into().expect("as many bytes");
        prop_assert!(acceptor().check(&claim).is_err());
        let greeting = greeting.concat().try_into().expect("as many bytes");
        prop_assert!(connector().claim(&greeting).is_err());
        prop_assert!(connector().check(&answer).is_err());
    }
}
