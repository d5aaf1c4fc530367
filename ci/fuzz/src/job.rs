//! libFuzzer on the job protocol: frames of PEs to oshrun, and of oshrun to a PE.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_bootstrap::proto::{self, Decoder, FromLauncher, FromPe, MAX_FROM_PE};
use rushmem_bootstrap::server::Server;
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
    let messages = |parts: &mut dyn Iterator<Item = &[u8]>| {
        let (mut decoder, mut messages) = (Decoder::new(MAX_FROM_PE), Vec::<M>::new());
        for part in parts {
            decoder.push(part);
            while let Ok(Some(message)) = decoder.take() {
                messages.push(message);
            }
        }
        messages
    };
    let whole = messages(&mut std::iter::once(stream));
    assert_eq!(whole, messages(&mut stream.chunks(3)));
    let written: Vec<Vec<u8>> = whole.iter().map(proto::encode).collect();
    assert_eq!(whole, messages(&mut written.iter().map(Vec::as_slice)));
}

/// Passes frames of 4 PEs to a server. The input has the number of the PE, the size of the body and
/// the body for each; an empty body stands for the end of the PE.
fn serve(mut input: &[u8]) {
    let nodes = NodeMap::from_runs([(0, 2), (1, 2)]).expect("two nodes");
    let mut server = Server::new(nodes, vec!["a".into(), "b".into()]);
    while let [pe, nbytes, rest @ ..] = input {
        let (body, later) = rest.split_at(rest.len().min((*nbytes).into()));
        let pe = u32::from(pe % N_PES);
        if body.is_empty() {
            server.exited(pe, Exit::Status(0));
        } else {
            let mut frame = u32::try_from(body.len())
                .expect("a byte")
                .to_le_bytes()
                .to_vec();
            frame.push(proto::VERSION);
            frame.extend(body);
            server.received(pe, &frame);
        }
        input = later;
    }
}
