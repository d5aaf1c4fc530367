//! libFuzzer on the encoding of requests, their entries and replies, and on the order in which a
//! target carries requests out.
#![no_main]
#![allow(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use rushmem_transport::engine::acks::Acks;
use rushmem_transport::engine::entries;
use rushmem_transport::engine::message::{REPLY, REQUEST, Reply, Request};
use rushmem_transport::engine::target::{ArrivalOrder, Streams};
use rushmem_transport::segments::Segments;
use rushmem_transport::{Host, LocalBuf, Pe, Segment};

/// A node whose first PE is a proxy for another one with this heap.
struct Node(Segments);

impl Host for Node {
    fn node_heap(&self, place: u8) -> Option<&Segments> {
        (place == 1).then_some(&self.0)
    }
}

fuzz_target!(|input: &[u8]| {
    let acks = Acks::new(4);
    acks.add_origin();
    let mut streams = Streams::new(Pe(0));
    for bytes in input.chunks(REQUEST) {
        let Ok(request) = Request::decode(bytes) else {
            continue;
        };
        assert_eq!(Request::decode(&request.encode()), Ok(request));
        match streams.accept(&acks, &request) {
            Ok(ArrivalOrder::Next) => {
                drop(streams.mark_carried_out(&acks, &request, &mut vec![1; bytes.len()]))
            }
            Ok(ArrivalOrder::Early) => streams.keep(&request, ()),
            Err(_) => continue,
        }
        // A request that was carried out or kept is refused the second time.
        assert!(streams.accept(&acks, &request).is_err());
        streams.take_ready(request.stream);
    }
    for bytes in input.chunks(REPLY) {
        let Ok(reply) = Reply::decode(bytes) else {
            continue;
        };
        assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }
    let mut heaps = [[0u64; 64]; 2];
    let [own, other] = heaps.each_mut().map(|heap| {
        let segments = Segments::default();
        let whole = LocalBuf {
            base: heap.as_mut_ptr().cast(),
            nbytes: size_of_val(heap),
        };
        // SAFETY: the memory outlives the table.
        unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");
        segments
    });
    let mut results = Vec::new();
    let (nbytes, message) = input.split_first().unwrap_or((&0, &[]));
    let nbytes = message.len().min(usize::from(*nbytes) * 8);
    let (listed, attached) = message.split_at(nbytes);
    let carried_out = entries::carry_out(listed, attached, &own, &Node(other), &mut results);
    assert!(
        listed.is_empty() && attached.is_empty() || listed.len() >= 12 || carried_out.is_err(),
        "a part of a head"
    );
    assert!(results.len() <= entries::MAX_RESULTS);
});
