//! libFuzzer on what the meeting of a job and its PEs receive from each other: bytes that the other
//! end has not sealed are refused, and those that it has arrive however they are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_connect::Secret;
use rushmem_connect::handshake::{Acceptor, Connector, Protocol};
use rushmem_connect::sealed::Session;

const PROTOCOL: Protocol = Protocol {
    magic: *b"fuzzing",
    version: 1,
};

fuzz_target!(|input: &[u8]| {
    let (mut here, mut there) = ends();
    for part in input.chunks(7) {
        here.received(part);
        match here.take() {
            Ok(None) => {}
            Ok(Some(_)) => panic!("the other end has sealed nothing"),
            Err(_) => break,
        }
    }
    let (mut here, mut arrived) = (ends().0, Vec::new());
    for part in there.seal(input).chunks(1 + input.len() % 50) {
        here.received(part);
        while let Some(piece) = here.take().expect("nothing was changed") {
            arrived.extend(piece);
        }
    }
    assert_eq!(arrived, input);
});

/// Returns both ends of a session after their handshake.
fn ends() -> (Session, Session) {
    let secret = Secret::new(b"secret");
    let mut acceptor = Acceptor::new(PROTOCOL, &secret, 0, [1; 32]);
    let mut connector = Connector::new(PROTOCOL, &secret, 1, 0, [2; 32]);
    let claim = connector.claim(&acceptor.greeting()).expect("a greeting");
    acceptor.check(&claim).expect("the same secret");
    (acceptor.session(), connector.session())
}
