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

fuzz_target!(|input: &[u8]| {
    accept_requests(input);
    decode_replies(input);
    carry_out_entries(input);
});

/// Passes requests to the streams of a target, which carries them out in their order.
fn accept_requests(input: &[u8]) {
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
                let mut results = vec![1; bytes.len()];
                // The reply, which would be sent.
                let _ = streams.mark_carried_out(&acks, &request, &mut results);
            }
            Ok(ArrivalOrder::Early) => streams.keep(&request, ()),
            Err(_) => continue,
        }
        // A request that was carried out or kept is refused the second time.
        assert!(streams.accept(&acks, &request).is_err());
        streams.take_ready(request.stream);
    }
}

fn decode_replies(input: &[u8]) {
    for bytes in input.chunks(REPLY) {
        if let Ok(reply) = Reply::decode(bytes) {
            assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
    }
}

/// Carries out the entries of one request. The first byte of the input is the number of words of
/// the list of entries; the rest is data that the list may refer to.
fn carry_out_entries(input: &[u8]) {
    let mut own_heap = [0u64; 64];
    let mut other_heap = [0u64; 64];
    // SAFETY: the heap outlives the table, and nothing else accesses it meanwhile.
    let own = unsafe { segments(&mut own_heap) };
    // SAFETY: the same is true of this heap.
    let node = Node(unsafe { segments(&mut other_heap) });

    let (n_words, message) = input.split_first().unwrap_or((&0, &[]));
    let nbytes = message.len().min(usize::from(*n_words) * 8);
    let (listed, attached) = message.split_at(nbytes);
    let mut results = Vec::new();
    let carried_out = entries::carry_out(listed, attached, &own, &node, &mut results);

    let is_empty = listed.is_empty() && attached.is_empty();
    assert!(
        is_empty || listed.len() >= 12 || carried_out.is_err(),
        "a part of a head"
    );
    assert!(results.len() <= entries::MAX_RESULTS);
}

/// A node whose first PE is a proxy for another one with this heap.
struct Node(Segments);

impl Host for Node {
    fn node_heap(&self, place: u8) -> Option<&Segments> {
        if place == 1 { Some(&self.0) } else { None }
    }
}

/// Returns a table whose heap is this memory.
///
/// # Safety
/// The memory outlives the table, and nothing else accesses it meanwhile.
unsafe fn segments(heap: &mut [u64; 64]) -> Segments {
    let segments = Segments::default();
    let whole = LocalBuf {
        base: heap.as_mut_ptr().cast(),
        nbytes: size_of_val(heap),
    };
    // SAFETY: the buffer is the memory of a reference, and the caller promises that it outlives
    // the table.
    unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");
    segments
}
