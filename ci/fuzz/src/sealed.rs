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
    refuse_what_is_not_sealed(input);
    receive_what_is_sealed(input);
});

fn refuse_what_is_not_sealed(input: &[u8]) {
    let mut acceptor = Ends::connect().acceptor;
    for part in input.chunks(7) {
        acceptor.received(part);
        match acceptor.take() {
            Ok(None) => {}
            Ok(Some(_)) => panic!("the other end has sealed nothing"),
            Err(_) => break,
        }
    }
}

fn receive_what_is_sealed(input: &[u8]) {
    let Ends {
        mut acceptor,
        mut connector,
    } = Ends::connect();
    let mut arrived = Vec::new();
    for part in connector.seal(input).chunks(1 + input.len() % 50) {
        acceptor.received(part);
        while let Some(piece) = acceptor.take().expect("nothing was changed") {
            arrived.extend(piece);
        }
    }
    assert_eq!(arrived, input);
}

/// Both ends of a session after their handshake.
struct Ends {
    acceptor: Session,
    connector: Session,
}

impl Ends {
    fn connect() -> Ends {
        let secret = Secret::new(b"secret");
        let mut acceptor = Acceptor::new(PROTOCOL, &secret, 0, [1; 32]);
        let mut connector = Connector::new(PROTOCOL, &secret, 1, 0, [2; 32]);
        let claim = connector.claim(&acceptor.greeting()).expect("a greeting");
        acceptor.check(&claim).expect("the same secret");
        Ends {
            acceptor: acceptor.session(),
            connector: connector.session(),
        }
    }
}
