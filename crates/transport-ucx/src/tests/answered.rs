//! Unit tests of the number of messages: one for each request, and an acknowledgment only if a call
//! waits for it.
#![allow(unsafe_code)]

use super::pair::{HEAP, ME, PEER, TestPair, pair};
use crate::shared::SharedState;
use rushmem_system::lock::lock;
use rushmem_transport::engine::driver::Driver;
use rushmem_transport::engine::message::Ack;
use rushmem_transport::{
    AmoOp, AmoRequest, Completion, DestBuf, Endpoint, Get, Put, SignalOrder, SourceBuf,
};
use std::time::Duration;

/// Fewer than half of the requests that may be unacknowledged, so that none is requested for that.
const SIGNALS: u32 = 100;

impl TestPair {
    /// Returns how many of this PE's requests the peer has acknowledged. Each request is a message.
    fn acked(&self) -> u32 {
        lock(&self.issuer.origin).acked(PEER).1
    }

    /// Sends [`SIGNALS`] signals, each after a fence, and polls until the peer has carried them
    /// out.
    fn signal(&mut self) {
        let signal = AmoRequest::of_word(HEAP, AmoOp::Add, 1);
        let put = || Put {
            remote: HEAP,
            local: SourceBuf::EMPTY,
            completion: Completion::Now,
        };
        for _ in 0..SIGNALS {
            self.endpoint.fence().expect("a peer that serves");
            let signalled = self
                .endpoint
                .put_signal(PEER, put(), signal, SignalOrder::AfterAll);
            signalled.expect("a peer that serves");
        }
        self.poll_until_idle();
    }

    fn end(self) {
        let TestPair {
            endpoint,
            issuer,
            progress,
            ..
        } = self;
        drop((endpoint, issuer));
        SharedState::leave(&progress);
    }
}

/// Returns a pair that is connected; `None` if UCX is not here.
fn connected() -> Option<TestPair> {
    let mut pair = pair("tcp,self", Duration::from_secs(30))?;
    pair.connect();
    Some(pair)
}

#[test]
fn a_put_that_is_sent_alone_is_a_request() {
    let Some(mut pair) = connected() else { return };
    let before = pair.acked();

    static WORD: u64 = 7;
    let put = Put {
        remote: HEAP,
        // SAFETY: the static variable is never freed, and nothing writes to it.
        local: unsafe { SourceBuf::new((&raw const WORD).cast(), size_of_val(&WORD)) },
        completion: Completion::AtQuiet,
    };
    pair.endpoint.put(PEER, put).expect("a peer that serves");

    while !pair.endpoint.is_quiet().expect("a peer that serves") {
        pair.peer.poll();
    }
    assert_eq!(
        pair.acked(),
        before + 2,
        "the put, and the message that asks for its acknowledgment"
    );
    pair.end();
}

#[test]
fn signals_are_not_acknowledged_before_a_call_waits() {
    let Some(mut pair) = connected() else { return };

    let before = pair.acked();
    pair.signal();
    assert_eq!(pair.acked(), before, "nobody requested an acknowledgment");

    while !pair.endpoint.is_quiet().expect("a peer that serves") {
        pair.peer.poll();
    }
    assert_eq!(
        pair.acked(),
        before + SIGNALS + 1,
        "one more message asks for all"
    );
    pair.end();
}

#[test]
fn what_rides_on_a_message_is_not_requested() {
    let Some(mut pair) = connected() else { return };

    let before = pair.acked();
    pair.signal();

    // The acknowledgment that the next message of the peer would contain.
    let ack = pair.peer.target.local.acks.for_message_to(ME);
    assert_eq!(
        ack,
        Some(Ack {
            origin: 0,
            count: before + SIGNALS
        })
    );

    let acknowledged = pair
        .progress
        .network()
        .local
        .acks
        .acknowledge(PEER, ack.expect("just seen"));
    assert_eq!(acknowledged, Ok(()));

    assert_eq!(
        pair.endpoint.is_quiet(),
        Ok(true),
        "there is nothing to wait for"
    );

    pair.poll_until_idle();
    assert_eq!(pair.acked(), before + SIGNALS, "no message was sent");
    pair.end();
}

/// The memory of sent replies is kept for reuse, but not that of their answers, which may be long.
#[test]
fn answers_that_were_sent_are_not_kept() {
    // More than one batch, so that the first one is sent when it is full.
    const GETS: usize = 200;
    let Some(mut pair) = connected() else { return };
    pair.endpoint.session(true).expect("nothing to wait for");

    let mut dests = vec![0u8; GETS * 256];
    for dest in dests.chunks_exact_mut(256) {
        let get = Get {
            remote: HEAP,
            // SAFETY: the vector outlives the get.
            local: unsafe { DestBuf::new(dest.as_mut_ptr(), dest.len()) },
            completion: Completion::AtQuiet,
        };
        pair.endpoint.get(PEER, get).expect("a peer that serves");
    }

    pair.poll_until_idle();
    assert_eq!(pair.peer.target.kept_bytes(), 0);

    while !pair.endpoint.is_quiet().expect("a peer that serves") {
        pair.peer.poll();
    }
    assert!(
        dests.chunks_exact(256).all(|dest| dest[255] == 7),
        "the answers have come"
    );
    pair.end();
}
