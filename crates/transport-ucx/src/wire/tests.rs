//! Unit tests of malformed requests, each of which the target refuses with the reason, and the
//! sender if the header has it; and of how often a thread that waits serves peers.
#![allow(unsafe_code)]

use super::*;
use crate::tests::pair::{HEAP, ME, NBYTES, PEER, TestPair, pair};
use rushmem_system::lock::lock;
use rushmem_transport::engine::entries::{append_amo, append_attached};
use rushmem_transport::engine::message::{REQUEST, Request, Stream, StreamPosition};
use rushmem_transport::peers::loss::RefusedMessage;
use rushmem_transport::{AmoOp, RemoteAddr};
use std::mem::ManuallyDrop;
use std::time::Duration;
use testkit::eventually;

const BEYOND: RemoteAddr = RemoteAddr {
    offset: NBYTES as u64 - 4,
    ..HEAP
};
/// Data of this many bytes are fetched by UCX after the target has given their destination.
const LONG: usize = 1 << 20;

/// Returns the refusal of the message that `send` sends; `None` if UCX is absent.
fn refusal(
    send: impl FnOnce(&mut UcxWire, &SharedState) -> Result<(), Error>,
) -> Option<RefusedMessage> {
    // A request that is refused is never complete.
    let mut pair = ManuallyDrop::new(pair("tcp,self", Duration::from_secs(30))?);
    pair.connect();
    let TestPair {
        issuer,
        progress,
        peer,
        ..
    } = &*pair;

    let mut origin = lock(&issuer.origin);
    send(origin.wire(), progress.network()).expect("a peer that serves");

    let mut refused = None;
    eventually("it is refused", || {
        origin.wire().worker().progress();
        peer.poll();
        refused = peer.target.take_refused();
        refused.is_some()
    });
    refused
}

/// Sends a request whose entries these are, and that has `nbytes` bytes of attached data.
fn refusal_of(mut entries: Vec<u8>, nbytes: usize) -> Option<RefusedMessage> {
    let request = Request {
        stream: Stream { pe: ME, origin: 0 },
        position: StreamPosition {
            number: 1,
            after: 0,
            asks: false,
        },
        ack: None,
        slot: None,
        nbytes: entries.len() as u16,
    };
    // SAFETY: the vector is never freed, and nothing writes to it.
    let mut attached = unsafe { SourceBuf::new(vec![1u8; nbytes].leak().as_ptr(), nbytes) };
    refusal(|wire, shared| {
        let message = SentMessage {
            request: &request,
            entries: &mut entries,
            attached: &mut attached,
            awaited: false,
        };
        wire.send(shared, PEER, message).map(|_| ())
    })
}

/// Returns an atomic operation on a word, whose offset lies at the start of its entry.
fn add(dest: RemoteAddr) -> Vec<u8> {
    let request = AmoRequest::of_word(dest, AmoOp::Add, 1);
    let mut entries = Vec::new();
    append_amo(&mut entries, &request, 0, false);
    entries
}

/// Returns a put of attached data.
fn put_attached(dest: RemoteAddr) -> Vec<u8> {
    let mut entries = Vec::new();
    append_attached(&mut entries, dest);
    entries
}

#[test]
fn what_lies_beyond_a_segment_is_refused() {
    let many = [add(HEAP).repeat(10), add(BEYOND)].concat();
    for (entries, nbytes) in [
        (add(BEYOND), 0),
        (many, 0),
        (put_attached(BEYOND), 8),
        (put_attached(BEYOND), LONG),
    ] {
        let Some(refused) = refusal_of(entries, nbytes) else {
            return;
        };
        let why = format!("it used an invalid offset {}", BEYOND.offset);
        assert_eq!(
            refused,
            RefusedMessage::of(ME, why),
            "{nbytes} bytes of data"
        );
    }
}

#[test]
fn data_that_no_entry_attaches_are_refused() {
    for nbytes in [8, LONG] {
        let Some(refused) = refusal_of(add(HEAP), nbytes) else {
            return;
        };
        let why = "it sent a damaged batch of operations";
        assert_eq!(refused, RefusedMessage::of(ME, why), "{nbytes} bytes");
    }
}

#[test]
fn a_part_of_a_header_is_refused() {
    for (nbytes, from) in [(REQUEST - 1, Some(ME)), (4, None)] {
        let refused = refusal(|wire, _| {
            let endpoint = wire.open_route(PEER)?.endpoint.handle;
            let header = [0u8; REQUEST].to_vec().leak().as_ptr();
            let mut params = plain_params();
            params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
            params.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;

            let params = &raw const params;
            let nothing = std::ptr::null();
            // SAFETY: `endpoint` is a live one of the wire's worker, and `header` points to
            // `REQUEST` bytes that are never freed.
            let begun = unsafe {
                wire.ucp().ucp_am_send_nbx(
                    endpoint,
                    REQUEST_KIND,
                    header.cast(),
                    nbytes,
                    nothing,
                    0,
                    params,
                )
            };
            assert!(started(begun).is_ok());
            Ok(())
        });
        let Some(refused) = refused else { return };
        assert_eq!(
            (refused.from, &*refused.why),
            (from, "it sent an unknown request")
        );
    }
}
