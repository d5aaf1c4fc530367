//! Unit tests of `batching`.
#![allow(unsafe_code)]

use super::*;
use crate::engine::batch::BatchEntry;
use crate::segments::Segments;
use crate::{AmoWidth, LocalBuf, Segment};

const AT: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 8,
};
const PEER: Pe = Pe(1);
/// Room for two puts of a word and a get.
const LIMIT: usize = 2 * (HEAD + 8) + HEAD;
const ADD: AmoRequest = AmoRequest {
    op: AmoOp::Add,
    width: AmoWidth::Four,
    dest: AT,
    operand: 3,
    condition: 0,
};

/// Returns the source of a put whose bytes are alive when it is batched.
fn source(bytes: &[u8]) -> SourceBuf {
    // SAFETY: each test batches it while the bytes are borrowed or alive.
    unsafe { SourceBuf::new(bytes.as_ptr(), bytes.len()) }
}

/// Returns the destination of results that each test stores while the bytes are alive.
fn dest(bytes: &mut [u8]) -> DestBuf {
    // SAFETY: each test stores results while the bytes are alive.
    unsafe { DestBuf::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Adds operations to the batch for the peer. Returns false if there is no room.
fn add(batcher: &mut Batcher, operations: &mut [SmallOperation<'_>]) -> bool {
    let has_room = batcher.has_room(PEER, operations);
    if has_room {
        batcher.add(Proxy::itself(PEER), operations);
    }
    has_room
}

fn take(batcher: &mut Batcher) -> (Vec<u8>, ReplyDestinations) {
    let (mut batch, mut answers) = (Vec::new(), ReplyDestinations::default());
    batcher.take(PEER, &mut batch, &mut answers);
    (batch, answers)
}

#[test]
fn a_batch_leaves_as_it_was_batched_and_its_answers_are_stored() {
    let (word, mut bytes, mut old) = ([7u8; 8], [0u8; 2], [0u8; 4]);
    let mut batcher = Batcher::new(2, (4096, 4096), Instant::now);
    let all = &mut [
        SmallOperation::Put(AT, &mut source(&word)),
        SmallOperation::Get(AT, &mut dest(&mut bytes)),
        SmallOperation::Amo(ADD, &mut None),
        SmallOperation::Amo(ADD, &mut Some(dest(&mut old))),
    ];
    assert!(add(&mut batcher, all));
    assert_eq!((batcher.pes(), batcher.n_operations()), (&[PEER][..], 4));
    assert!(batcher.has_any(PEER) && !batcher.has_any(Pe(0)));
    let (batch, mut answers) = take(&mut batcher);
    assert!(batcher.pes().is_empty() && batcher.n_operations() == 0 && !batcher.has_any(PEER));
    let mut left = &batch[..];
    let entries: Vec<_> = std::iter::from_fn(|| batch::next(&mut left))
        .map(|(entry, _)| entry)
        .collect();
    let [first, second] = [BatchEntry::Put(AT, &word), BatchEntry::Get(AT, 2)];
    assert_eq!(
        entries,
        [
            first,
            second,
            BatchEntry::Update(ADD),
            BatchEntry::Fetch(ADD)
        ]
    );
    assert!(left.is_empty() && !answers.is_empty());
    answers
        .store(&[&[1, 2][..], &5u32.to_ne_bytes()].concat())
        .expect("all");
    assert!(answers.is_empty());
    assert_eq!((bytes, old), ([1, 2], 5u32.to_ne_bytes()));
}

#[test]
fn a_batch_and_its_answers_are_bounded() {
    let (word, mut bytes) = ([7u8; 8], [0u8; LIMIT - 1]);
    let mut batcher = Batcher::new(2, (LIMIT, LIMIT), Instant::now);
    assert!(add(
        &mut batcher,
        &mut [
            SmallOperation::Put(AT, &mut source(&word)),
            SmallOperation::Put(AT, &mut source(&word))
        ]
    ));
    assert!(
        !batcher.has_room(PEER, &[SmallOperation::Put(AT, &mut source(&word))])
            && batcher.has_room(Pe(0), &[SmallOperation::Put(AT, &mut source(&word))])
    );
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::Get(AT, &mut dest(&mut bytes))]
    ));
    let (batch, _) = take(&mut batcher);
    assert_eq!(batch.len(), LIMIT);
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::Get(AT, &mut dest(&mut bytes))]
    ));
    assert!(
        !batcher.has_room(PEER, &[SmallOperation::Get(AT, &mut dest(&mut [0; 2]))]),
        "no room for the answer"
    );
    assert!(batcher.has_room(PEER, &[SmallOperation::Get(AT, &mut dest(&mut [0; 1]))]));
}

#[test]
fn strided_blocks_take_their_bytes_and_their_answers_are_scattered() {
    let (source, mut dest) = ([1u16, 2, 3, 4, 5, 6], [0u8; 6]);
    let mut batcher = Batcher::new(2, (STRIDED_HEAD + 8, STRIDED_HEAD + 8), Instant::now);
    assert_eq!((batcher.most_blocks(2), batcher.most_blocks(9)), (4, 0));
    // SAFETY: the words outlive the batch.
    let local = unsafe { SourceBuf::new(source.as_ptr().cast(), size_of_val(&source)) };
    let mut puts = StridedBlocks {
        remote: AT,
        local,
        nbytes: 2,
        remote_stride: 32,
        local_stride: 4,
        n: 3,
    };
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::PutStrided(&mut puts)]
    ));
    let mut gets = StridedBlocks {
        remote: AT,
        local: self::dest(&mut dest),
        nbytes: 1,
        remote_stride: 32,
        local_stride: 2,
        n: 3,
    };
    assert!(!batcher.has_room(PEER, &[SmallOperation::GetStrided(&mut gets)]));
    let (batch, _) = take(&mut batcher);
    assert_eq!(batch.len(), STRIDED_HEAD + 6);
    let bytes = [source[0], source[2], source[4]].map(u16::to_ne_bytes);
    let strides = batch::BlocksAt {
        first: AT,
        stride: 32,
        nbytes: 2,
    };
    let put = BatchEntry::PutStrided(strides, bytes.as_flattened());
    assert_eq!(batch::next(&mut &batch[..]), Some((put, 0)));
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::GetStrided(&mut gets)]
    ));
    let (_, mut answers) = take(&mut batcher);
    answers.store(&[7, 8, 9]).expect("all");
    assert_eq!(dest, [7, 0, 8, 0, 9, 0]);
}

#[test]
fn a_target_carries_out_what_a_full_batch_fetches() {
    let (mut bytes, mut old) = ([0u8; 60], [0u8; 4]);
    let mut batcher = Batcher::new(2, (MAX_ANSWERS, MAX_ANSWERS), Instant::now);
    while add(
        &mut batcher,
        &mut [
            SmallOperation::Get(AT, &mut dest(&mut bytes)),
            SmallOperation::Amo(ADD, &mut Some(dest(&mut old))),
        ],
    ) {}
    let (batch, expected) = take(&mut batcher);
    assert_eq!(
        expected.nbytes, MAX_ANSWERS,
        "no room is left for a word of 8 bytes"
    );
    let mut memory = [1u64; 16];
    let segments: Segments = Segments::default();
    let whole = LocalBuf {
        base: memory.as_mut_ptr().cast(),
        nbytes: size_of_val(&memory),
    };
    // SAFETY: the memory outlives the segments.
    unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");
    let mut answers = Vec::new();
    assert_eq!(
        batch::carry_out(&batch, &segments, &Nodes, &mut answers),
        Ok(())
    );
    assert_eq!(answers.len(), expected.nbytes);
}

#[test]
fn only_a_lone_operation_leaves_at_once() {
    let mut batcher = Batcher::new(3, (LIMIT, LIMIT), Instant::now);
    assert!(batcher.begin_lone(PEER), "the first one");
    assert!(!batcher.begin_lone(PEER), "the first one may be leaving");
    batcher.busy_until = None;
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::Put(AT, &mut source(&[1; 8]))]
    ));
    assert!(!batcher.begin_lone(PEER), "something is batched");
    assert!(
        batcher.begin_lone(Pe(2)),
        "nothing is batched, and nothing left lately"
    );
    take(&mut batcher);
    let leaving = batcher.busy_until;
    batcher.mark_busy();
    assert!(
        batcher.busy_until < leaving,
        "the next one may be a lone one soon"
    );
}

/// A host for which PE 1 is the proxy of all PEs; the place of a PE is its number.
struct Nodes;

impl Host for Nodes {
    fn has_proxies(&self) -> bool {
        true
    }

    fn proxy(&self, pe: Pe) -> Proxy {
        Proxy {
            pe: PEER,
            place: pe.0 as u8,
        }
    }
}

#[test]
fn a_session_batches_more_and_for_proxies() {
    let (word, heap, mixed) = ([7u8; 8], [Segment::Heap], [Segment::Heap, Segment::Static]);
    let mut batcher = Batcher::new(4, (LIMIT, 2 * LIMIT), Instant::now);
    let itself = Proxy::itself(Pe(3));
    assert!(!batcher.uses_proxies(&Nodes) && batcher.proxy(&Nodes, Pe(3), &heap) == itself);
    batcher.session(true);
    batcher.session(true);
    assert!(batcher.uses_proxies(&Nodes) && !batcher.begin_lone(PEER));
    assert_eq!(batcher.proxy(&Nodes, Pe(3), &mixed), itself);
    let proxy = batcher.proxy(&Nodes, Pe(3), &heap);
    assert_eq!(proxy, Proxy { pe: PEER, place: 3 });
    for _ in 0..4 {
        assert!(batcher.has_room(PEER, &[SmallOperation::Put(AT, &mut source(&word))]));
        batcher.add(proxy, &mut [SmallOperation::Put(AT, &mut source(&word))]);
    }
    assert!(
        !batcher.has_room(
            PEER,
            &[
                SmallOperation::Put(AT, &mut source(&word)),
                SmallOperation::Put(AT, &mut source(&word))
            ]
        ),
        "twice the usual limit"
    );
    let looks: Vec<bool> = (0..2 * LOOKS)
        .map(|_| {
            batcher.has_grown = true;
            batcher.skip_poll()
        })
        .collect();
    let leaves = (1..=2 * LOOKS).map(|look| look.is_multiple_of(LOOKS));
    assert!(
        looks.into_iter().eq(leaves.map(|leaves| !leaves)),
        "it leaves now and then"
    );
    assert!(!batcher.skip_poll(), "nothing was added since");
    batcher.session(false);
    assert!(batcher.in_session(), "another context is");
    batcher.session(false);
    batcher.has_grown = true;
    assert!(
        !batcher.in_session()
            && !batcher.has_room(PEER, &[SmallOperation::Put(AT, &mut source(&word))])
            && !batcher.skip_poll()
    );
    let (batch, _) = take(&mut batcher);
    assert_eq!(
        batch::next(&mut &batch[..]),
        Some((BatchEntry::Put(AT, &word), 3))
    );
}

#[test]
fn nothing_is_sent_or_stored_after_a_loss() {
    let mut bytes = [0u8; 8];
    let mut batcher = Batcher::new(2, (LIMIT, LIMIT), Instant::now);
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::Get(AT, &mut dest(&mut bytes))]
    ));
    batcher.forget();
    assert!(batcher.pes().is_empty() && !batcher.has_any(PEER) && batcher.n_operations() == 0);
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::Get(AT, &mut dest(&mut bytes))]
    ));
    let (_, mut answers) = take(&mut batcher);
    answers.forget();
    answers.store(&[1; 8]).expect_err("nothing is wanted");
    assert_eq!(bytes, [0; 8]);
}

#[test]
fn answers_of_another_length_are_refused() {
    for nbytes in [0, 4, 7, 9] {
        let mut words = [[0u8; 4]; 2];
        let [first, second] = &mut words;
        let mut batcher = Batcher::new(2, (LIMIT, LIMIT), Instant::now);
        assert!(add(
            &mut batcher,
            &mut [
                SmallOperation::Get(AT, &mut dest(first)),
                SmallOperation::Get(AT, &mut dest(second))
            ]
        ));
        let (_, mut answers) = take(&mut batcher);
        let stored = answers.store(&vec![3; nbytes]);
        assert_eq!(stored, Err(Violation::Unrequested), "{nbytes} bytes");
        assert!(answers.is_empty());
        assert_eq!(words, [[0; 4]; 2]);
    }
}

#[test]
fn the_memory_of_long_batches_is_freed_with_the_last_session() {
    let word = [7u8; 8];
    let mut batcher = Batcher::new(2, (LIMIT, 4096), Instant::now);
    batcher.session(true);
    batcher.session(true);
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::Put(AT, &mut source(&word))]
    ));
    let mut batch = take(&mut batcher).0;
    batch.clear();
    assert!(add(
        &mut batcher,
        &mut [SmallOperation::Put(AT, &mut source(&word))]
    ));
    batcher.take(PEER, &mut batch, &mut ReplyDestinations::default());
    let capacity = |batcher: &Batcher| batcher.by_pe[PEER].batch.capacity();
    batcher.session(false);
    assert!(capacity(&batcher) >= 4096, "one goes on");
    batcher.session(false);
    assert_eq!(capacity(&batcher), 0);
}
