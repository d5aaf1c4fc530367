//! Frames such as a PE sends, of which some are damaged: there is no panic, and no access outside
//! the segment.

use super::*;
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
        let at = random.below(entries.len());
        entries[at] ^= 1 << random.below(8);
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
    let at = address(random);
    let flag = random.below(2) == 0;
    let nbytes = [0, 8, 16, 60, 64, 65, 100, 300][random.below(8)];

    let (request, body) = match random.below(6) {
        0 | 1 => (
            RequestFrame::Put {
                dest: at,
                nbytes: nbytes as u32,
                in_parts: flag,
            },
            random.bytes(nbytes),
        ),
        2 => (
            RequestFrame::Get {
                source: at,
                nbytes: nbytes as u32,
                in_parts: flag,
            },
            Vec::new(),
        ),
        3 => (RequestFrame::Sync, Vec::new()),
        _ => message(random, number),
    };

    frame(random, request.encode(), &body)
}

/// Returns the answer to request number `seq`, whose kind this byte selects; empty if the request
/// has no answer.
fn reply(random: &mut Random, seq: u64, byte: u8) -> Vec<u8> {
    let nbytes = usize::from(byte) * 8;
    let (reply, body) = match byte % 4 {
        0 => (
            ReplyFrame::Data {
                seq,
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
        2 => (ReplyFrame::Ack { seq }, Vec::new()),
        _ => return Vec::new(),
    };

    frame(random, reply.encode(), &body)
}

/// Returns the bytes of a frame. One of 64 heads is damaged.
fn frame(random: &mut Random, mut head: [u8; 16], body: &[u8]) -> Vec<u8> {
    if random.below(64) == 0 {
        head[random.below(16)] ^= 1 << random.below(8);
    }
    [&head, body].concat()
}

/// Checks that at least a twentieth of the streams are carried out, and a twentieth refused.
fn run(streams: u32) {
    let mut random = Random::new(11);
    let mut done = [0; 2];
    for _ in 0..streams {
        let n = 1 + random.below(60);
        let mut number = 0;
        let stream = (0..n).flat_map(|_| request(&mut random, &mut number));
        let stream: Vec<u8> = stream.collect();
        done[0] += u32::from(requests(&[&random.bytes(CUTS), &stream[..]].concat()));

        let requested = random.bytes(REQUESTED);
        let answers = requested.iter().zip(1..);
        let stream = answers.flat_map(|(byte, seq)| reply(&mut random, seq, *byte));
        let stream: Vec<u8> = stream.collect();
        done[1] += u32::from(replies(
            &[&random.bytes(CUTS), &requested, &stream[..]].concat(),
        ));
    }

    for done in done {
        assert!(
            (streams / 20..streams - streams / 20).contains(&done),
            "{done} of {streams}"
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
