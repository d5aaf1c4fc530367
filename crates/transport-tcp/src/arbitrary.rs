//! Feeds arbitrary bytes to decoder, target and ledger: millions of frames, no panic, no access
//! outside the segment, and no allocation but for a head and a body that is small
//! or a batch.
#![allow(unsafe_code)]

use crate::proto::{
    Address, Addressed, ExpectedReply, Frame, Head, Ledger, Piece, Reader, ReplyFrame,
};
use crate::target::{LoneHost, Target};
use conformance::Random;
use rushmem_transport::kit::batch::append_update;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::kit::violation::Violation;
use rushmem_transport::{AmoOp, AmoWidth, LocalBuf, RemoteAddr, Segment};
use std::sync::Arc;

/// Words of the segment, and of the memory on either side of it that must stay as it is.
const SEGMENT: usize = 1 << 13;
const GUARD: usize = 1 << 13;
const UNTOUCHED: u64 = 0x5A5A_5A5A_5A5A_5A5A;
/// The kind of a batch.
const BATCH: u8 = 6;

/// A state machine and how many frames it took in.
struct Fuzzed<H> {
    reader: Reader<H>,
    frames: u64,
    refused: u64,
}

/// Returns bytes like those of a peer that is sometimes wrong: mostly a head with a right kind,
/// small fields and its body.
fn noise(random: &mut Random, kinds: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(60) {
        if kinds.contains(&BATCH) && random.below(8) == 0 {
            bytes.extend(batch(random));
            continue;
        }
        let mut head = [random.next_u64().to_le_bytes(), random.next_u64().to_le_bytes()].concat();
        let mut body = random.below(20);
        if random.below(64) != 0 {
            head[0] = kinds[random.below(kinds.len())];
            // Mostly the heap, a known operation, a width, an aligned offset within it.
            head[1] = u8::from(random.below(64) == 0);
            head[2] &= 0x87;
            head[3] = [4, 8][random.below(2)];
            head[8] &= if random.below(64) == 0 { 0xFF } else { 0xF8 };
            head[9] &= if random.below(32) == 0 { 0xFF } else { 0x7F };
            head[10] = u8::from(random.below(64) == 0);
            head[11..16].fill(0);
            let nbytes = match head[0] {
                1 | 0x81 => [1, 8, 16, 60, 64, 65, 100, 300][random.below(8)],
                2 => [0, 8, 16, 5_000][random.below(4)],
                _ => 16,
            };
            head[4..8].copy_from_slice(&u32::to_le_bytes(nbytes));
            body = match head[0] {
                1 | 3 | 0x81 => nbytes as usize + usize::from(random.below(64) == 0),
                _ => 0,
            };
        }
        bytes.extend(head);
        bytes.extend(random.bytes(body));
    }
    bytes
}

/// Returns a batch of updates, of which a bit may be wrong.
fn batch(random: &mut Random) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..random.below(8) {
        let dest = RemoteAddr { segment: Segment::Heap, offset: 8 * random.below(SEGMENT) as u64 };
        let (op, width) = (AmoOp::ALL[random.below(8)], AmoWidth::Eight);
        let (operand, condition) = (random.next_u64(), random.next_u64());
        let update = Update { op, width, dest, operand, condition };
        append_update(&mut body, (&update, 0), random.below(2) == 0);
    }
    let damaged = random.below(16 * (body.len() + 1));
    if let Some(byte) = body.get_mut(damaged) {
        *byte ^= 1 << random.below(8);
    }
    [&Frame::batch(body.len() as u32), &body[..]].concat()
}

/// Handles a reply as an origin does.
fn origin(ledger: &mut Ledger<usize>, piece: Piece<'_, ReplyFrame>) -> Result<(), Violation> {
    match piece {
        Piece::Part { head: ReplyFrame::Data { seq, nbytes }, done, bytes } => {
            let room = *ledger.data(seq, nbytes)?;
            assert!(done + bytes.len() <= room, "within what was requested");
            if done + bytes.len() == room {
                ledger.complete(ReplyFrame::Data { seq, nbytes })?;
            }
            Ok(())
        }
        Piece::Part { .. } => unreachable!("only data has a body"),
        Piece::Whole(head, body) => {
            let room = ledger.complete(head)?;
            assert!(body.len() <= room, "within what was requested");
            Ok(())
        }
    }
}

/// Feeds noise, cut anywhere; what is refused ends the connection and a new one begins.
fn feed<H: Head>(
    fuzzed: &mut Fuzzed<H>,
    random: &mut Random,
    bytes: &[u8],
    mut take: impl FnMut(Piece<'_, H>) -> Result<(), Violation>,
) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(1 + random.below(rest.len()));
        rest = later;
        let frames = &mut fuzzed.frames;
        let fed = fuzzed.reader.feed(now, |piece| {
            *frames += 1;
            take(piece)
        });
        if fed.is_err() {
            fuzzed.refused += 1;
            fuzzed.reader = Reader::new();
            return;
        }
    }
}

fn run(frames: u64) {
    let segments = Segments::default();
    let mut memory = vec![UNTOUCHED; GUARD + SEGMENT + GUARD];
    let base = memory.as_mut_ptr().wrapping_add(GUARD).cast();
    // SAFETY: within `memory`, which is used by nobody else until the target is done.
    unsafe { segments.register(Segment::Heap, LocalBuf { base, nbytes: SEGMENT * 8 }, ()) }
        .expect("the first");
    let mut random = Random::new(11);
    let mut requests: Fuzzed<Frame> = Fuzzed { reader: Reader::new(), frames: 0, refused: 0 };
    let mut replies: Fuzzed<ReplyFrame> = Fuzzed { reader: Reader::new(), frames: 0, refused: 0 };
    while requests.frames + replies.frames < frames {
        let bytes = noise(&mut random, &[1, 1, 2, 3, 3, 4, BATCH]);
        let mut target = Target::new(Arc::new(LoneHost));
        feed(&mut requests, &mut random, &bytes, |piece: Piece<'_, Frame>| {
            match piece.addressed() {
                Addressed::Target(piece) => target.take(&segments, piece),
                Addressed::Batch(nbytes, bytes) => target.take_batch(&segments, nbytes, bytes),
                Addressed::TcpOrigin(_) | Addressed::Bye => Err(Violation::Unknown("request")),
            }
        });
        // Answers that are due, some of them just what the noise will say.
        let mut ledger = Ledger::new();
        for _ in 0..20 {
            let nbytes = [16, 8, 100, 3_000][random.below(4)];
            match random.below(4) {
                0 => ledger.expect(ExpectedReply::Data(nbytes as u32), nbytes),
                1 => ledger.expect(ExpectedReply::Ack, 0),
                _ => ledger.expect(ExpectedReply::Value, 0),
            };
        }
        let bytes = noise(&mut random, &[0x81, 0x82, 0x82, 0x82, 0x83]);
        feed(&mut replies, &mut random, &bytes, |piece| origin(&mut ledger, piece));
        assert!(Address::decode(&bytes).map_or(true, |address| address.sockets.len() <= 16));
    }
    let guards = memory[..GUARD].iter().chain(&memory[GUARD + SEGMENT..]);
    assert!(guards.into_iter().all(|&word| word == UNTOUCHED), "nothing beside the segment");
    assert!(memory[GUARD..GUARD + SEGMENT].iter().any(|&word| word != UNTOUCHED));
    // The noise is worth something: much is taken in, much is refused.
    assert!(requests.frames > frames / 10 && replies.frames > frames / 50);
    assert!(requests.refused > 1_000 && replies.refused > 1_000);
    assert!(size_of::<Reader<Frame>>() < 200, "all that a reader ever holds");
}

#[test]
fn a_million_frames() {
    run(1_000_000);
}

#[test]
#[ignore = "takes a minute"]
fn ten_million_frames() {
    run(10_000_000);
}
