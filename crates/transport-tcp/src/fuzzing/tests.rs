//! Frames such as a PE sends, of which some are damaged: there is no panic, and no access outside
//! the segment.

use super::*;
use conformance::Random;
use rushmem_transport::kit::batch::append_update;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::{AmoOp, AmoWidth, RemoteAddr};

/// Returns a batch of updates; one of 8 is damaged.
fn batch(random: &mut Random) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..random.below(8) {
        let (op, width) = (AmoOp::ALL[random.below(8)], AmoWidth::Eight);
        let (operand, condition) = (random.next_u64(), random.next_u64());
        let update = Update { op, width, dest: address(random), operand, condition };
        append_update(&mut body, (&update, 0), random.below(2) == 0);
    }
    if !body.is_empty() && random.below(8) == 0 {
        let at = random.below(body.len());
        body[at] ^= 1 << random.below(8);
    }
    body
}

/// Returns a word of the segment.
fn address(random: &mut Random) -> RemoteAddr {
    RemoteAddr { segment: Segment::Heap, offset: 8 * random.below(WORDS) as u64 }
}

/// Returns a request and its body.
fn request(random: &mut Random) -> Vec<u8> {
    let (at, flag) = (address(random), random.below(2) == 0);
    let nbytes = [0, 8, 16, 60, 64, 65, 100, 300][random.below(8)];
    let (request, body) = match random.below(6) {
        0 | 1 => (
            RequestFrame::Put { dest: at, nbytes: nbytes as u32, in_parts: flag },
            random.bytes(nbytes),
        ),
        2 => (RequestFrame::Get { source: at, nbytes: nbytes as u32, in_parts: flag }, Vec::new()),
        3 => {
            let op = AmoOp::ALL[random.below(8)];
            let amo = RequestFrame::Amo { dest: at, op, width: AmoWidth::Eight, fetch: flag };
            (amo, random.bytes(16))
        }
        4 => (RequestFrame::Sync, Vec::new()),
        _ => {
            let body = batch(random);
            (RequestFrame::Batch { nbytes: body.len() as u32 }, body)
        }
    };
    frame(random, request.encode(), &body)
}

/// Returns the answer to the request number `seq` that this byte names, if it has one.
fn reply(random: &mut Random, seq: u64, byte: u8) -> Vec<u8> {
    let nbytes = usize::from(byte) * 8;
    let (reply, body) = match byte % 4 {
        0 => (ReplyFrame::Data { seq, nbytes: nbytes as u32 }, random.bytes(nbytes)),
        1 => (ReplyFrame::Value(random.next_u64()), Vec::new()),
        2 => (ReplyFrame::Ack { seq }, Vec::new()),
        _ => return Vec::new(),
    };
    frame(random, reply.encode(), &body)
}

/// Returns the bytes of a frame, with one of 64 heads damaged.
fn frame(random: &mut Random, mut head: [u8; 16], body: &[u8]) -> Vec<u8> {
    if random.below(64) == 0 {
        head[random.below(16)] ^= 1 << random.below(8);
    }
    [&head, body].concat()
}

/// Checks that many streams are carried out and many are refused.
fn run(streams: u32) {
    let (mut random, mut done) = (Random::new(11), [0; 2]);
    for _ in 0..streams {
        let stream = (0..1 + random.below(60)).flat_map(|_| request(&mut random));
        let stream: Vec<u8> = stream.collect();
        done[0] += u32::from(requests(&[&random.bytes(CUTS), &stream[..]].concat()));
        let requested = random.bytes(REQUESTED);
        let answers = requested.iter().zip(1..);
        let stream = answers.flat_map(|(byte, seq)| reply(&mut random, seq, *byte));
        let stream: Vec<u8> = stream.collect();
        done[1] += u32::from(replies(&[&random.bytes(CUTS), &requested, &stream[..]].concat()));
    }
    for done in done {
        assert!((streams / 20..streams - streams / 20).contains(&done), "{done} of {streams}");
    }
    assert!(size_of::<Reader>() < 200, "all that a reader ever holds");
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
