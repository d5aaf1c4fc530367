//! libFuzzer on the requests and replies that travel as messages, and on the order in which a
//! target carries requests out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_transport::Pe;
use rushmem_transport::kit::acks::Acks;
use rushmem_transport::kit::message::{REPLY, REQUEST, Reply, Request};
use rushmem_transport::kit::streams::Streams;

fuzz_target!(|input: &[u8]| {
    let acks = Acks::new(4);
    acks.origin();
    let mut streams = Streams::new(Pe(0));
    for bytes in input.chunks(REQUEST) {
        let Some(request) = Request::decode(bytes) else { continue };
        assert_eq!(Request::decode(&request.encode()), Some(request));
        streams.arrived(&acks, &request, || ());
        streams.take_early(request.stream);
    }
    for bytes in input.chunks(REPLY) {
        let Some(reply) = Reply::decode(bytes) else { continue };
        assert_eq!(Reply::decode(&reply.encode()), Some(reply));
    }
});
