//! Entry points for fuzzers: the wire format and the state machines of both ends, with bytes of the
//! fuzzer's choice.
//!
//! Each allocation is exactly as long as the part of it that may be used, so that a sanitizer
//! detects any access beyond.
#![allow(unsafe_code)]

use crate::proto::{
    Acceptor, Address, Addressed, CLAIM, Connector, ExpectedReply, Frame, GREETING, Head, Ledger,
    Piece, Reader, ReplyFrame, WELCOME,
};
use crate::target::{LoneHost, Target};
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::violation::Violation;
use rushmem_transport::{LocalBuf, Segment};
use std::sync::Arc;

/// Words of the segment.
const WORDS: usize = 512;
/// Bytes that say how a stream is cut.
const CUTS: usize = 8;

/// One input: what it is for, how it is cut, and the bytes themselves.
pub fn run(input: &[u8]) {
    let Some((&what, input)) = input.split_first() else {
        return;
    };
    match what % 4 {
        0 | 1 => requests(input),
        2 => replies(input),
        _ => unauthenticated(input),
    }
}

/// However a stream of requests is cut, it does the same to the target's memory.
fn requests(input: &[u8]) {
    let Some((cuts, stream)) = input.split_first_chunk::<CUTS>() else {
        return;
    };
    let cut = target(cuts, stream);
    assert!(cut == target(&[u8::MAX; CUTS], stream), "a cut changed what was done");
}

fn target(cuts: &[u8; CUTS], stream: &[u8]) -> (Result<(), Violation>, Vec<u64>) {
    let mut memory = vec![0u64; WORDS];
    let segments = Segments::default();
    let whole = LocalBuf { base: memory.as_mut_ptr().cast(), nbytes: WORDS * 8 };
    // SAFETY: the vector outlives the segments, and nothing else uses it meanwhile.
    unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");
    let mut served = Target::new(Arc::new(LoneHost));
    let fed = feed(cuts, stream, |piece: Piece<'_, Frame>| match piece.addressed() {
        Addressed::Target(piece) => served.take(&segments, piece),
        Addressed::Batch(nbytes, bytes) => served.take_batch(&segments, nbytes, bytes),
        Addressed::TcpOrigin(_) | Addressed::Bye => Ok(()),
    });
    drop((served, segments));
    (fed, memory)
}

/// Replies to the requests that the first bytes name: nothing is accepted that was not requested.
fn replies(input: &[u8]) {
    let Some((cuts, input)) = input.split_first_chunk::<CUTS>() else {
        return;
    };
    let Some((requested, stream)) = input.split_first_chunk::<16>() else {
        return;
    };
    let mut ledger = Ledger::new();
    for &byte in requested {
        let nbytes = usize::from(byte) * 8;
        match byte % 4 {
            0 => ledger.expect(ExpectedReply::Data(nbytes as u32), vec![0u8; nbytes]),
            1 => ledger.expect(ExpectedReply::Value, Vec::new()),
            2 => ledger.expect(ExpectedReply::Ack, Vec::new()),
            _ => ledger.issue(),
        };
    }
    let mut answered = 0;
    // A piece that is refused ends a connection.
    let _ = feed(cuts, stream, |piece| {
        let before = ledger.n_unanswered();
        take(&mut ledger, piece)?;
        answered += before - ledger.n_unanswered();
        assert!(ledger.acked() <= requested.len() as u64 && answered <= requested.len());
        Ok(())
    });
}

fn take(ledger: &mut Ledger<Vec<u8>>, piece: Piece<'_, ReplyFrame>) -> Result<(), Violation> {
    match piece {
        Piece::Part { head: head @ ReplyFrame::Data { seq, nbytes }, done, bytes } => {
            let room = ledger.data(seq, nbytes)?.len();
            assert!(done + bytes.len() <= room, "within what was requested");
            if done + bytes.len() == room {
                ledger.complete(head)?;
            }
            Ok(())
        }
        Piece::Part { .. } => unreachable!("only data has a body"),
        Piece::Whole(head, body) => {
            let room = ledger.complete(head)?.len();
            assert_eq!(body.len(), room, "what was requested");
            Ok(())
        }
    }
}

/// Feeds a stream in parts, whose lengths are those in `cuts`, in turn.
fn feed<H: Head>(
    cuts: &[u8; CUTS],
    stream: &[u8],
    mut take: impl FnMut(Piece<'_, H>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let mut reader = Reader::new();
    let mut rest = stream;
    for &cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let length = if cut == u8::MAX { rest.len() } else { 1 + usize::from(cut) };
        let (now, later) = rest.split_at(length.min(rest.len()));
        reader.feed(now, &mut take)?;
        rest = later;
    }
    Ok(())
}

/// Handshakes whose answers cannot be known, and addresses.
fn unauthenticated(input: &[u8]) {
    let (secret, nonce) = ([1; 32], [2; 32]);
    if let Some(claim) = input.first_chunk::<CLAIM>() {
        assert!(Acceptor::new(secret, 0, 4, nonce).check(claim).is_err(), "a forged claim");
    }
    if let Some((greeting, rest)) = input.split_first_chunk::<GREETING>() {
        let mut connector = Connector::new(secret, 1, 0, nonce);
        if connector.claim(greeting).is_ok()
            && let Some(welcome) = rest.first_chunk::<WELCOME>()
        {
            assert!(connector.check(welcome).is_err(), "a forged welcome");
        }
    }
    if let Ok(address) = Address::decode(input) {
        assert!(address.sockets.len() <= 16);
        let again = Address::decode(&address.encode()).expect("what was encoded");
        assert_eq!(again.sockets, address.sockets);
    }
}
