//! Frames such as a PE sends, of which some are damaged: there is no panic, and no access outside
//! the segment.

use super::*;
use crate::proto::ReplyFrame;
use conformance::Random;
use rushmem_transport::engine::entries::{append_amo, append_attached};
use rushmem_transport::engine::message::{
    Ack, Answer, AwaitedSlot, REPLY, Reply, Request, Stream, StreamPosition,
};
use rushmem_transport::{AmoOp, AmoRequest, AmoWidth, RemoteAddr};

/// Returns the entries of a request and the data that the first attaches, if it does. One of 8
/// requests is damaged.
fn entries(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let mut entries = Vec::new();
    let mut attached = Vec::new();

    if random.below(3) == 0 {
        append_attached(&mut entries, address(random));
        let nbytes = [0, 8, 100][random.below(3)];
        attached = random.bytes(nbytes);
    }

    for _ in 0..random.below(8) {
        let op = AmoOp::ALL[random.below(8)];
        let operand = random.next_u64();
        let condition = random.next_u64();
        let request = AmoRequest {
            op,
            width: AmoWidth::Eight,
            dest: address(random),
            operand,
            condition,
        };
        append_amo(&mut entries, &request, 0, random.below(2) == 0);
    }

    if !entries.is_empty() && random.below(8) == 0 {
        let damaged = random.below(entries.len());
        entries[damaged] ^= 1 << random.below(8);
    }
    (entries, attached)
}

/// Returns a word of the segment.
fn address(random: &mut Random) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Heap,
        offset: 8 * random.below(WORDS) as u64,
    }
}

/// Returns the next message of the stream, and its body.
fn message(random: &mut Random, number: &mut u32) -> (RequestFrame, Vec<u8>) {
    *number += 1;
    let (entries, attached) = entries(random);
    let request = Request {
        stream: Stream {
            pe: Pe(1),
            origin: 0,
        },
        position: StreamPosition {
            number: *number,
            after: *number - 1,
            asks: random.below(2) == 0,
        },
        ack: None,
        slot: (random.below(2) == 0).then_some(AwaitedSlot {
            number: 3,
            is_long: random.below(2) == 0,
        }),
        nbytes: entries.len() as u16,
    };

    let body = [&request.encode()[..], &entries, &attached].concat();
    (
        RequestFrame::Message {
            nbytes: body.len() as u32,
        },
        body,
    )
}

/// Returns the bytes of a random request with its body.
fn request(random: &mut Random, number: &mut u32) -> Vec<u8> {
    let address = address(random);
    let in_parts = random.below(2) == 0;
    let nbytes = [0, 8, 16, 60, 64, 65, 100, 300][random.below(8)];

    let (request, body) = match random.below(6) {
        0 | 1 => (
            RequestFrame::Put {
                dest: address,
                nbytes: nbytes as u32,
                in_parts,
            },
            random.bytes(nbytes),
        ),
        2 => (
            RequestFrame::Get {
                source: address,
                nbytes: nbytes as u32,
                in_parts,
            },
            Vec::new(),
        ),
        _ => message(random, number),
    };

    frame(random, request.encode(), &body)
}

/// Returns the answer to a request whose kind this byte selects, or no bytes if it has none.
fn reply(random: &mut Random, byte: u8) -> Vec<u8> {
    let nbytes = usize::from(byte) * 8;
    let (reply, body) = match byte % 3 {
        0 => (
            ReplyFrame::Data {
                nbytes: nbytes as u32,
            },
            random.bytes(nbytes),
        ),
        1 => {
            let reply = Reply {
                pe: Pe(1),
                ack: Ack {
                    origin: 0,
                    count: 1,
                },
                answer: Some(Answer {
                    slot: 0,
                    short: random.next_u64().to_le_bytes(),
                }),
            };

            let body = [&reply.encode()[..], &random.bytes(nbytes)].concat();
            (
                ReplyFrame::Message {
                    nbytes: (REPLY + nbytes) as u32,
                },
                body,
            )
        }
        _ => return Vec::new(),
    };

    frame(random, reply.encode(), &body)
}

/// Returns the bytes of a frame. One of 40 heads is damaged.
fn frame(random: &mut Random, mut head: [u8; 16], body: &[u8]) -> Vec<u8> {
    if random.below(40) == 0 {
        head[random.below(16)] ^= 1 << random.below(8);
    }
    [&head, body].concat()
}

/// Runs random streams of requests and of replies. Checks that at least a twentieth of either are
/// accepted, and a twentieth refused.
fn run(streams: u32) {
    let mut random = Random::new(11);
    let mut accepted_requests = 0;
    let mut accepted_replies = 0;
    for _ in 0..streams {
        let n = 1 + random.below(60);
        let mut number = 0;
        let mut stream = Vec::new();
        for _ in 0..n {
            stream.extend(request(&mut random, &mut number));
        }
        let input = [random.bytes(CUTS), stream].concat();
        accepted_requests += u32::from(requests(&input));

        let requested = random.bytes(REQUESTED);
        let mut stream = Vec::new();
        for &byte in &requested {
            stream.extend(reply(&mut random, byte));
        }
        let input = [random.bytes(CUTS), requested, stream].concat();
        accepted_replies += u32::from(replies(&input));
    }

    for accepted in [accepted_requests, accepted_replies] {
        assert!(
            (streams / 20..streams - streams / 20).contains(&accepted),
            "{accepted} of {streams}"
        );
    }

    assert!(size_of::<Reader>() < 250, "all that a reader ever holds");
}

#[test]
fn many_frames() {
    run(5_000);
}

#[test]
#[ignore = "takes minutes"]
fn ten_million_frames() {
    run(300_000);
}
