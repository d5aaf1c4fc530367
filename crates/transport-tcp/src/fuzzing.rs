//! Entry points for fuzzers: the wire format and the state machines of both ends, with bytes of the
//! fuzzer's choice.
//!
//! Each allocation is exactly as long as the part of it that may be used, so that a sanitizer
//! detects any access beyond. Unit tests, which have no sanitizer, check the memory on either side
//! of the segment.
#![allow(unsafe_code)]

use crate::addresses::{Address, MAX_ADDRESSES};
use crate::answers::Answers;
use crate::proto::{Frame, HANDSHAKE, Piece, Reader, RequestFrame};
use crate::receiving::ReceivingPe;
use crate::target::Target;
use rushmem_connect::Secret;
use rushmem_connect::handshake::{ANSWER, Acceptor, CLAIM, Connector, GREETING};
use rushmem_transport::engine::message::{AwaitedSlot, Request, Stream, StreamPosition};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{DestBuf, LocalBuf, Pe, Segment};

/// The number of words of the segment.
const WORDS: usize = 512;
/// The number of words of the guard on either side of the segment, which only unit tests have.
const GUARD: usize = if cfg!(test) { WORDS } else { 0 };
/// The number of bytes of an input that say how its stream is cut.
const CUTS: usize = 8;
/// The number of bytes of an input that say which requests await replies.
const REQUESTED: usize = 16;

/// Runs one input: a byte that selects the entry point, and the bytes for it.
pub fn run(input: &[u8]) {
    let Some((&selector, input)) = input.split_first() else {
        return;
    };
    match selector % 4 {
        0 | 1 => drop(requests(input)),
        2 => drop(replies(input)),
        _ => unauthenticated(input),
    }
}

/// Checks that a stream of requests does the same to the target's memory however it is cut. Returns
/// true if it holds no violation; an unfinished last frame is none.
fn requests(input: &[u8]) -> bool {
    let Some((cuts, stream)) = input.split_first_chunk::<CUTS>() else {
        return false;
    };

    let cut = serve(cuts, stream);
    let uncut = serve(&[u8::MAX; CUTS], stream);
    assert!(cut == uncut, "a cut changed what was done");

    cut.accepted.is_ok()
}

/// What a stream of requests has done at a target.
#[derive(PartialEq, Eq)]
struct Served {
    accepted: Result<(), Violation>,
    /// The segment, with the guards.
    memory: Vec<u64>,
}

/// Feeds a stream of requests, cut so, to a new target.
fn serve(cuts: &[u8; CUTS], stream: &[u8]) -> Served {
    let mut memory = vec![0u64; GUARD + WORDS + GUARD];
    let local = ReceivingPe::for_tests().local;
    let segment = LocalBuf {
        base: memory.as_mut_ptr().wrapping_add(GUARD).cast(),
        nbytes: WORDS * 8,
    };
    // SAFETY: `segment` is a part of the vector, which outlives the segments, and which nothing
    // else uses meanwhile.
    unsafe { local.segments.register(Segment::Heap, segment, ()) }.expect("the first");

    let mut target = Target::new(Pe(1));
    let accepted = feed(cuts, stream, |Piece { head, done, bytes }| match head {
        Frame::Request(RequestFrame::Bye) | Frame::Reply(_) => Ok(()),
        Frame::Request(request) => target.take(&local, request, done, bytes),
    });
    drop((target, local));

    let guards = memory[..GUARD].iter().chain(&memory[GUARD + WORDS..]);
    assert!(
        guards.into_iter().all(|word| *word == 0),
        "memory beside the segment was changed"
    );
    Served { accepted, memory }
}

/// Checks that no reply is accepted but those to the requests that the first bytes name. Returns
/// whether all replies were accepted.
fn replies(input: &[u8]) -> bool {
    let Some((cuts, input)) = input.split_first_chunk::<CUTS>() else {
        return false;
    };
    let Some((requested, stream)) = input.split_first_chunk::<REQUESTED>() else {
        return false;
    };

    let receiving = ReceivingPe::for_tests();
    receiving.local.acks.add_origin();
    let _replies = receiving.replies.add();
    let mut answers = Answers::new();
    let mut memory = requested.map(|byte| vec![0u8; usize::from(byte) * 8]);
    for (byte, to) in requested.iter().zip(&mut memory) {
        let is_even = byte.is_multiple_of(2);
        match byte % 3 {
            0 => {
                // SAFETY: the vector outlives the answers, and nothing else uses it meanwhile.
                let dest = unsafe { DestBuf::new(to.as_mut_ptr(), to.len()) };
                answers.expect_data(dest, is_even);
            }
            1 => answers.expect_reply(&awaited(is_even)),
            _ => {}
        }
    }

    // A piece that is refused ends a connection.
    let accepted = feed(cuts, stream, |Piece { head, done, bytes }| match head {
        Frame::Reply(reply) => answers.take(&receiving, Pe(1), reply, done, bytes),
        Frame::Request(_) => Err(Violation::Unrequested),
    });
    drop((answers, memory));
    accepted.is_ok()
}

/// Returns a request of PE 0 whose results are awaited.
fn awaited(is_long: bool) -> Request {
    Request {
        stream: Stream {
            pe: Pe(0),
            origin: 0,
        },
        position: StreamPosition {
            number: 1,
            after: 0,
            asks: false,
        },
        ack: None,
        slot: Some(AwaitedSlot { number: 0, is_long }),
        nbytes: 0,
    }
}

/// Feeds a stream in parts. The length of each is one more than the next number in `cuts`, which
/// repeat; the number 255 stands for the rest of the stream.
fn feed(
    cuts: &[u8; CUTS],
    stream: &[u8],
    mut take: impl FnMut(Piece<'_>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let mut reader = Reader::new();
    let mut rest = stream;
    for &cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let length = if cut == u8::MAX {
            rest.len()
        } else {
            1 + usize::from(cut)
        };

        let (now, later) = rest.split_at(length.min(rest.len()));
        reader.feed(now, &mut take)?;
        rest = later;
    }
    Ok(())
}

/// Checks that forged messages of a handshake are refused, and that addresses decode as encoded.
fn unauthenticated(input: &[u8]) {
    let secret = Secret::from([1; 32]);
    let nonce = [2; 32];

    if let Some(claim) = input.first_chunk::<CLAIM>() {
        assert!(
            Acceptor::new(HANDSHAKE, &secret, 0, nonce)
                .check(claim)
                .is_err(),
            "a forged claim"
        );
    }

    if let Some((greeting, rest)) = input.split_first_chunk::<GREETING>() {
        let mut connector = Connector::new(HANDSHAKE, &secret, 1, 0, nonce);
        if connector.claim(greeting).is_ok()
            && let Some(welcome) = rest.first_chunk::<ANSWER>()
        {
            assert!(connector.check(welcome).is_err(), "a forged welcome");
        }
    }

    if let Ok(address) = Address::decode(input) {
        assert!(address.sockets.len() <= MAX_ADDRESSES);
        let again = Address::decode(&address.encode()).expect("what was encoded");
        assert_eq!(again.sockets, address.sockets);
    }
}

#[cfg(test)]
mod tests;
