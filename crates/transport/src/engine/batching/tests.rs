//! Unit tests of `batching`.
#![allow(unsafe_code)]

use super::*;
use crate::engine::entries::{BlocksAt, Entry, MAX_RESULTS};
use crate::engine::message::SHORT;
use crate::peers::loss::Violation;
use crate::segments::Segments;
use crate::{AmoOp, AmoWidth, Dest, LocalBuf, Segment, Source, SourceBuf};

const AT: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 8,
};
const PEER: Pe = Pe(1);
const ITSELF: Proxy = Proxy { pe: PEER, place: 0 };
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

fn put_size(nbytes: usize) -> EntrySize {
    EntrySize::of_transfer::<Source>(nbytes)
}

fn get_size(nbytes: usize) -> EntrySize {
    EntrySize::of_transfer::<Dest>(nbytes)
}

/// Adds a put to the batch for the peer, if there is room. Returns whether there is.
fn put(batcher: &mut Batcher, bytes: &[u8]) -> bool {
    let has_room = batcher.has_room(PEER, put_size(bytes.len()));
    if has_room {
        batcher.open(ITSELF).transfer(AT, source(bytes));
    }
    has_room
}

/// Works as [`put`], for a get.
fn get(batcher: &mut Batcher, bytes: &mut [u8]) -> bool {
    let has_room = batcher.has_room(PEER, get_size(bytes.len()));
    if has_room {
        batcher.open(ITSELF).transfer(AT, dest(bytes));
    }
    has_room
}

fn take(batcher: &mut Batcher) -> (Vec<u8>, ReplyDestinations) {
    let mut results = ReplyDestinations::default();

    let entries = batcher.take(PEER, &mut results);
    (entries, results)
}

/// Stores results as they arrive: short ones in the head of the reply.
fn store(results: &mut ReplyDestinations, bytes: &[u8]) -> Result<(), Violation> {
    let mut short = [0; SHORT];
    match short.get_mut(..bytes.len()) {
        Some(start) => start.copy_from_slice(bytes),
        None => return results.store(&short, bytes),
    }
    results.store(&short, &[])
}

#[test]
fn a_batch_leaves_as_it_was_batched_and_its_results_are_stored() {
    let word = [7u8; 8];
    let mut bytes = [0u8; 2];
    let mut old = [0u8; 4];
    let mut batcher = Batcher::new(2, BatchLimits::always(4096), Instant::now);

    assert!(put(&mut batcher, &word) && get(&mut batcher, &mut bytes));
    batcher.open(ITSELF).amo(&ADD, None);
    batcher.open(ITSELF).amo(&ADD, Some(dest(&mut old)));
    assert_eq!((batcher.pes(), batcher.n_operations()), (&[PEER][..], 4));
    assert!(batcher.has_any(PEER) && !batcher.has_any(Pe(0)));

    let (batch, mut results) = take(&mut batcher);
    assert!(batcher.pes().is_empty() && batcher.n_operations() == 0 && !batcher.has_any(PEER));

    let mut left = &batch[..];
    let found: Vec<_> = std::iter::from_fn(|| entries::next(&mut left))
        .map(|(entry, _)| entry)
        .collect();

    let amo = |fetches| Entry::Amo {
        request: ADD,
        fetches,
    };

    let transfers = [Entry::Put(AT, &word), Entry::Get(AT, 2)];
    assert_eq!(found, [&transfers[..], &[amo(false), amo(true)]].concat());
    assert!(left.is_empty() && !results.is_empty() && !results.are_long());

    store(&mut results, &[&[1, 2][..], &5u32.to_ne_bytes()].concat()).expect("all");
    assert!(results.is_empty());
    assert_eq!((bytes, old), ([1, 2], 5u32.to_ne_bytes()));
}

#[test]
fn attached_data_are_the_first_entry() {
    let mut batcher = Batcher::new(2, BatchLimits::always(4096), Instant::now);
    let mut writer = batcher.open(ITSELF);
    writer.attached(AT);
    writer.amo(&ADD, None);

    let (batch, results) = take(&mut batcher);
    assert!(results.is_empty());

    let (at, mut rest) = entries::attached_put(&batch).expect("it is first");
    let amo = Entry::Amo {
        request: ADD,
        fetches: false,
    };
    assert_eq!((at, entries::next(&mut rest)), (AT, Some((amo, 0))));
    assert_eq!(batch.len(), entries::ATTACHED_AND_SIGNAL);
}

#[test]
fn a_batch_and_its_results_are_bounded() {
    let word = [7u8; 8];
    let mut bytes = [0u8; LIMIT - 1];
    let mut batcher = Batcher::new(2, BatchLimits::always(LIMIT), Instant::now);

    assert!(put(&mut batcher, &word) && put(&mut batcher, &word));
    assert!(!put(&mut batcher, &word) && batcher.has_room(Pe(0), put_size(8)));
    assert!(get(&mut batcher, &mut bytes));

    let (batch, _) = take(&mut batcher);
    assert_eq!(batch.len(), LIMIT);

    assert!(get(&mut batcher, &mut bytes));
    assert!(
        !batcher.has_room(PEER, get_size(2)),
        "no room for the result"
    );
    assert!(batcher.has_room(PEER, get_size(1)));
    assert!(
        !batcher.has_room(PEER, put_size(8).and(put_size(9))),
        "both together"
    );
}

#[test]
fn strided_blocks_take_their_bytes_and_their_results_are_scattered() {
    let source = [1u16, 2, 3, 4, 5, 6];
    let mut dest = [0u8; 6];
    let mut batcher = Batcher::new(2, BatchLimits::always(STRIDED_HEAD + 8), Instant::now);

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
    assert!(batcher.has_room(PEER, EntrySize::of_blocks(&puts)));
    batcher.open(ITSELF).strided(&mut puts);

    let mut gets = StridedBlocks {
        remote: AT,
        local: self::dest(&mut dest),
        nbytes: 1,
        remote_stride: 32,
        local_stride: 2,
        n: 3,
    };

    assert!(!batcher.has_room(PEER, EntrySize::of_blocks(&gets)));

    let (batch, _) = take(&mut batcher);
    assert_eq!(batch.len(), STRIDED_HEAD + 6);

    let bytes = [source[0], source[2], source[4]].map(u16::to_ne_bytes);
    let strides = BlocksAt {
        first: AT,
        stride: 32,
        nbytes: 2,
    };
    let put = Entry::PutStrided(strides, bytes.as_flattened());
    assert_eq!(entries::next(&mut &batch[..]), Some((put, 0)));

    assert!(batcher.has_room(PEER, EntrySize::of_blocks(&gets)));
    batcher.open(ITSELF).strided(&mut gets);

    let (_, mut results) = take(&mut batcher);
    store(&mut results, &[7, 8, 9]).expect("all");
    assert_eq!(dest, [7, 0, 8, 0, 9, 0]);
}

#[test]
fn a_target_carries_out_what_a_full_batch_fetches() {
    let mut bytes = [0u8; 60];
    let mut old = [0u8; 4];
    let mut batcher = Batcher::new(2, BatchLimits::always(MAX_RESULTS), Instant::now);

    loop {
        let fetched = dest(&mut old);
        let size = get_size(60).and(EntrySize::of_amo(&ADD, Some(&fetched)));
        if !batcher.has_room(PEER, size) {
            break;
        }
        assert!(get(&mut batcher, &mut bytes));
        batcher.open(ITSELF).amo(&ADD, Some(fetched));
    }

    let (batch, expected) = take(&mut batcher);
    assert_eq!(
        expected.nbytes(),
        MAX_RESULTS,
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

    let mut results = Vec::new();
    assert_eq!(
        entries::carry_out(&batch, &[], &segments, &Nodes, &mut results),
        Ok(())
    );
    assert_eq!(results.len(), expected.nbytes());
}

#[test]
fn only_a_lone_operation_leaves_at_once() {
    let mut batcher = Batcher::new(3, BatchLimits::always(LIMIT), Instant::now);
    assert!(batcher.is_lone(PEER), "the first one");

    let soon = Instant::now().checked_add(Duration::from_secs(60));
    batcher.busy_until = soon;
    assert!(!batcher.is_lone(PEER), "another one has left lately");

    batcher.busy_until = None;
    assert!(put(&mut batcher, &[1; 8]));
    assert!(!batcher.is_lone(PEER), "something is batched");
    assert!(
        batcher.is_lone(Pe(2)),
        "nothing is batched, and nothing left lately"
    );

    batcher.mark_busy();
    assert!(
        Some(Instant::now()) <= soon && batcher.busy_until < soon,
        "the next one may be a lone one soon"
    );
}

/// A host for which PE 1 is the proxy of all PEs; the place of a PE is its number.
struct Nodes;

const PROXIES: [Proxy; 4] = [
    Proxy { pe: PEER, place: 0 },
    Proxy { pe: PEER, place: 1 },
    Proxy { pe: PEER, place: 2 },
    Proxy { pe: PEER, place: 3 },
];

impl Host for Nodes {
    fn proxies(&self) -> &[Proxy] {
        &PROXIES
    }
}

#[test]
fn a_session_batches_more_and_for_proxies() {
    let word = [7u8; 8];
    let heap = [Segment::Heap];
    let mixed = [Segment::Heap, Segment::Static];
    let mut batcher = Batcher::new(
        4,
        BatchLimits {
            outside_session: LIMIT,
            in_session: 2 * LIMIT,
        },
        Instant::now,
    );
    let itself = Proxy::itself(Pe(3));

    assert!(!batcher.uses_proxies(&Nodes) && batcher.proxy(&Nodes, Pe(3), &heap) == itself);

    batcher.session(true);
    batcher.session(true);
    assert!(batcher.uses_proxies(&Nodes) && !batcher.is_lone(PEER));
    assert_eq!(batcher.proxy(&Nodes, Pe(3), &mixed), itself);
    let proxy = batcher.proxy(&Nodes, Pe(3), &heap);
    assert_eq!(proxy, Proxy { pe: PEER, place: 3 });

    for _ in 0..4 {
        assert!(batcher.has_room(PEER, put_size(8)));
        batcher.open(proxy).transfer(AT, source(&word));
    }

    assert!(
        !batcher.has_room(PEER, put_size(8).and(put_size(8))),
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
    assert!(!batcher.in_session() && !batcher.has_room(PEER, put_size(8)) && !batcher.skip_poll());

    let (batch, _) = take(&mut batcher);
    assert_eq!(
        entries::next(&mut &batch[..]),
        Some((Entry::Put(AT, &word), 3))
    );
}

#[test]
fn nothing_is_sent_or_stored_after_a_loss() {
    let mut bytes = [0u8; 8];
    let mut batcher = Batcher::new(2, BatchLimits::always(LIMIT), Instant::now);
    assert!(get(&mut batcher, &mut bytes));

    batcher.forget();
    assert!(batcher.pes().is_empty() && !batcher.has_any(PEER) && batcher.n_operations() == 0);

    assert!(get(&mut batcher, &mut bytes));
    let (_, mut results) = take(&mut batcher);

    results.forget();
    let stored = results.store(&[1; SHORT], &[1; 16]);
    stored.expect_err("nothing is wanted");
    assert_eq!(bytes, [0; 8]);
}

#[test]
fn results_of_another_length_are_refused() {
    for (wanted, nbytes) in [(4, 1), (4, 8), (8, 0), (8, 8), (8, 15), (8, 17)] {
        let mut words = [[0u8; 8]; 2];
        let mut batcher = Batcher::new(2, BatchLimits::always(LIMIT), Instant::now);

        for word in &mut words {
            assert!(get(&mut batcher, &mut word[..wanted]));
        }

        let (_, mut results) = take(&mut batcher);
        let stored = results.store(&[3; SHORT], &vec![3; nbytes]);
        assert_eq!(
            stored,
            Err(Violation::Unrequested),
            "{nbytes} bytes for {wanted}"
        );
        assert!(results.is_empty());
        assert_eq!(words, [[0; 8]; 2]);
    }
}

#[test]
fn the_memory_of_long_batches_is_freed_with_the_last_session() {
    let mut batcher = Batcher::new(
        2,
        BatchLimits {
            outside_session: LIMIT,
            in_session: 4096,
        },
        Instant::now,
    );
    batcher.session(true);
    batcher.session(true);

    assert!(put(&mut batcher, &[7; 8]));
    let batch = take(&mut batcher).0;
    batcher.give_back(batch);

    assert!(batcher.spare.is_empty() && batcher.spare.capacity() >= 4096);
    batcher.give_back(Vec::with_capacity(8));

    batcher.session(false);
    assert!(batcher.spare.capacity() >= 4096, "one goes on");
    batcher.session(false);
    assert_eq!(batcher.spare.capacity(), 0);
}
