//! How many messages requests take: one each, and no answers but those that somebody waits for.
#![allow(unsafe_code)]

use crate::pair::{HEAP, ME, PEER, Pair, pair};
use rushmem_transport::kit::answers::Answer;
use rushmem_transport::kit::lock::lock;
use rushmem_transport::{AmoOp, Completion, Endpoint, Follows, LocalBuf, Put, Signal};
use std::time::Duration;

/// Fewer than fill half of a window.
const SIGNALS: u32 = 100;

impl Pair {
    /// How many of this PE's requests the peer has told to have carried out. Each is a message.
    fn told(&self) -> u32 {
        lock(&self.issuer.origin).told(PEER)
    }

    /// Signals, each behind a fence, all of which have come and are carried out afterwards.
    fn signal(&mut self) {
        let signal = Signal { dest: HEAP, op: AmoOp::Add, value: 1, follows: Follows::All };
        let put = Put { dest: HEAP, source: LocalBuf::EMPTY, completion: Completion::Now };
        for _ in 0..SIGNALS {
            self.endpoint.fence().expect("a peer that serves");
            // SAFETY: there are no data.
            let signalled = unsafe { self.endpoint.put_signal(PEER, put, signal) };
            signalled.expect("a peer that serves");
        }
        self.settle();
    }

    fn end(self) {
        let Pair { endpoint, issuer, progress, .. } = self;
        drop((endpoint, issuer));
        progress.leave();
    }
}

#[test]
fn signals_are_not_answered_before_somebody_waits() {
    let Some(mut pair) = pair("tcp,self", Duration::from_secs(30)) else { return };
    pair.connect();
    let before = pair.told();
    pair.signal();
    assert_eq!(pair.told(), before, "nobody asked for an answer");
    while !pair.endpoint.is_quiet().expect("a peer that serves") {
        pair.peer.poll();
    }
    assert_eq!(pair.told(), before + SIGNALS + 1, "one more message asks for all");
    pair.end();
}

#[test]
fn what_a_peer_tells_by_the_way_is_not_asked_for() {
    let Some(mut pair) = pair("tcp,self", Duration::from_secs(30)) else { return };
    pair.connect();
    let before = pair.told();
    pair.signal();
    // What the next message of the peer's would bring.
    let news = pair.peer.answers().for_message_to(ME);
    assert_eq!(news, Some(Answer { origin: 0, count: before + SIGNALS }));
    pair.progress.shared.answers.tell(PEER, news.expect("just seen"));
    assert_eq!(pair.endpoint.is_quiet(), Ok(true), "there is nothing to wait for");
    pair.settle();
    assert_eq!(pair.told(), before + SIGNALS, "no message was sent");
    pair.end();
}
