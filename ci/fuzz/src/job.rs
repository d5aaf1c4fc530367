//! libFuzzer on the job protocol: frames of PEs to oshrun, and of oshrun to a PE.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_bootstrap::launcher::Server;
use rushmem_bootstrap::proto::{self, Decoder, FromLauncher, FromPe, MAX_FROM_PE};
use rushmem_bootstrap::{Exit, NodeMap};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

const N_PES: u8 = 4;

fuzz_target!(|input: &[u8]| {
    check_round_trip::<FromPe>(input);
    check_round_trip::<FromLauncher>(input);
    serve(input);
});

/// Checks that a stream has the same messages however it is cut, and that they are the same after
/// encoding and decoding.
fn check_round_trip<M: DeserializeOwned + Serialize + PartialEq + Debug>(stream: &[u8]) {
    let messages: Vec<M> = decoded([stream]);
    assert_eq!(messages, decoded(stream.chunks(3)));

    let encoded: Vec<Vec<u8>> = messages.iter().map(proto::encode).collect();
    assert_eq!(messages, decoded(encoded.iter().map(Vec::as_slice)));
}

/// Returns the messages of a stream that arrives in these parts.
fn decoded<'a, M: DeserializeOwned>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<M> {
    let mut decoder = Decoder::new(MAX_FROM_PE);
    let mut messages = Vec::new();
    for part in parts {
        decoder.push(part);
        while let Ok(Some(message)) = decoder.take() {
            messages.push(message);
        }
    }
    messages
}

/// Passes frames of 4 PEs to a server. The input has the number of the PE, the size of the body and
/// the body for each; an empty body stands for the end of the PE.
fn serve(mut input: &[u8]) {
    let nodes = NodeMap::from_runs([(0, 2), (1, 2)]).expect("two nodes");
    let mut server = Server::new(nodes, vec!["a".into(), "b".into()]);
    while let [pe, nbytes, rest @ ..] = input {
        let pe = u32::from(pe % N_PES);
        let nbytes = usize::from(*nbytes).min(rest.len());
        let (body, later) = rest.split_at(nbytes);
        input = later;

        if body.is_empty() {
            server.exited(pe, Exit::Status(0));
        } else {
            let mut frame = Vec::new();
            frame.extend((nbytes as u32).to_le_bytes());
            frame.push(proto::VERSION);
            frame.extend(body);
            server.received(pe, &frame);
        }
    }
}
