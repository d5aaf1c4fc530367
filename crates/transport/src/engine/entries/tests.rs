//! Unit tests of `entries`.
#![allow(unsafe_code)]

use super::*;
use crate::{Dest, DestBuf, LocalBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The node of a PE. If it has a `heap`, that is the heap of the PE with place 2, and `woken`
/// counts how often that PE is woken.
struct Node {
    heap: Option<Segments>,
    woken: AtomicU32,
}

impl Node {
    const fn new(heap: Option<Segments>) -> Node {
        Node {
            heap,
            woken: AtomicU32::new(0),
        }
    }
}

impl Host for Node {
    fn node_heap(&self, place: u8) -> Option<&Segments> {
        self.heap.as_ref().filter(|_| place == 2)
    }

    fn arrived(&self, place: u8) {
        assert_eq!(place, 2);
        self.woken.fetch_add(1, Relaxed);
    }
}

static ALONE: Node = Node::new(None);

fn heap(offset: u64) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Heap,
        offset,
    }
}

/// Returns an atomic operation with an operand of 5 and a condition of 9.
fn update(op: AmoOp, width: AmoWidth, offset: u64) -> AmoRequest {
    AmoRequest {
        op,
        width,
        dest: heap(offset),
        operand: 5,
        condition: 9,
    }
}

/// The bytes of three blocks.
const DATA: [u8; 24] = *b"block 1.block 2.block 3.";

/// Returns blocks of 8 bytes of the heap, without local memory.
fn blocks(offset: u64, stride: usize, n: usize) -> StridedBlocks<Dest> {
    StridedBlocks {
        remote: heap(offset),
        local: DestBuf::EMPTY,
        nbytes: 8,
        remote_stride: stride,
        local_stride: 8,
        n,
    }
}

fn append_bytes(entries: &mut Vec<u8>, dest: RemoteAddr, place: u8, bytes: &[u8]) {
    append_transfer(entries, true, dest, place, bytes.len());
    entries.extend_from_slice(bytes);
}

fn append_get(entries: &mut Vec<u8>, source: RemoteAddr, place: u8, nbytes: usize) {
    append_transfer(entries, false, source, place, nbytes);
}

/// Appends a put of at most three blocks.
fn append_put_strided(entries: &mut Vec<u8>, blocks: &StridedBlocks<Dest>) {
    append_strided(entries, true, 0, blocks);
    entries.extend_from_slice(&DATA[..8 * blocks.n]);
}

fn append_get_strided(entries: &mut Vec<u8>, place: u8, blocks: &StridedBlocks<Dest>) {
    append_strided(entries, false, place, blocks);
}

/// Carries out entries without attached data, on the memory of a PE that is alone on its node.
fn carry_out_here(
    entries: &[u8],
    segments: &Segments,
    results: &mut Vec<u8>,
) -> Result<(), Violation> {
    carry_out(entries, &[], segments, &ALONE, results)
}

/// An address in another segment than the heap, which is not registered.
const STATIC: RemoteAddr = RemoteAddr {
    segment: Segment::Static,
    offset: u64::MAX,
};

/// Returns a batch with operations of each kind.
fn each() -> Vec<u8> {
    let swap = update(AmoOp::CompareSwap, AmoWidth::Four, 4);
    let add = update(AmoOp::Add, AmoWidth::Eight, 8);

    let mut batch = Vec::new();
    append_bytes(&mut batch, STATIC, 0, &[]);
    append_bytes(&mut batch, heap(8), 0, &[7; MAX_NBYTES]);
    append_get(&mut batch, heap(16), 0, MAX_NBYTES);
    append_put_strided(&mut batch, &blocks(8, 16, 2));
    append_attached(&mut batch, heap(8));
    append_get_strided(&mut batch, 3, &blocks(24, 4, 3));
    append_amo(&mut batch, &swap, 0, true);
    append_amo(&mut batch, &add, 0, false);
    batch
}

/// Returns the memory of `N` words of `value`, and the segments whose heap it is.
fn memory<const N: usize>(value: u64) -> (Box<[u64; N]>, Segments) {
    let mut memory = Box::new([value; N]);
    let segments = Segments::default();
    let whole = LocalBuf {
        base: memory.as_mut_ptr().cast(),
        nbytes: 8 * N,
    };

    // SAFETY: callers keep the memory as long as the segments.
    unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");
    (memory, segments)
}

#[test]
fn operations_come_as_they_were_sent() {
    let strides = |offset, stride| BlocksAt {
        first: heap(offset),
        stride,
        nbytes: 8,
    };
    let swap = Entry::Amo {
        request: update(AmoOp::CompareSwap, AmoWidth::Four, 4),
        fetches: true,
    };
    let add = Entry::Amo {
        // Only a compare-and-swap sends its condition.
        request: AmoRequest {
            condition: 0,
            ..update(AmoOp::Add, AmoWidth::Eight, 8)
        },
        fetches: false,
    };

    let batch = each();
    let mut left = &batch[..];
    for sent in [
        (Entry::Put(STATIC, &[]), 0),
        (Entry::Put(heap(8), &[7; MAX_NBYTES]), 0),
        (Entry::Get(heap(16), MAX_NBYTES), 0),
        (Entry::PutStrided(strides(8, 16), &DATA[..16]), 0),
        (Entry::PutAttached(heap(8)), 0),
        (Entry::GetStrided(strides(24, 4), 3), 3),
        (swap, 0),
        (add, 0),
    ] {
        assert_eq!(next(&mut left), Some(sent));
    }

    assert!(left.is_empty());
    assert_eq!(next(&mut left), None);
}

#[test]
fn a_part_of_an_operation_is_none() {
    let batch = each();
    let mut left = &batch[..];
    while !left.is_empty() {
        let start = left;
        next(&mut left).expect("one more");
        for end in 0..start.len() - left.len() {
            assert_eq!(next(&mut &start[..end]), None);
        }
    }
}

#[test]
fn operations_are_carried_out_in_order() {
    let (memory, segments) = memory::<4>(1);
    let add = update(AmoOp::Add, AmoWidth::Eight, 8);
    let fetch = update(AmoOp::Fetch, AmoWidth::Four, 24);

    let mut batch = Vec::new();
    append_bytes(&mut batch, heap(8), 0, &40u64.to_ne_bytes());
    append_amo(&mut batch, &add, 0, false);
    append_amo(&mut batch, &add, 0, true);
    append_get(&mut batch, heap(0), 0, 16);
    append_amo(&mut batch, &fetch, 0, true);

    let mut results = Vec::new();
    assert_eq!(carry_out_here(&batch, &segments, &mut results), Ok(()));

    let words = [45u64, 1, 50].map(u64::to_ne_bytes);
    let fetched = (memory[3] as u32).to_ne_bytes();
    assert_eq!(results, [words.as_flattened(), &fetched].concat());
}

#[test]
fn strided_blocks_are_scattered_and_gathered_in_order() {
    let (memory, segments) = memory::<6>(1);
    let mut batch = Vec::new();
    append_put_strided(&mut batch, &blocks(8, 24, 2));
    append_bytes(&mut batch, heap(32), 0, b"later on");
    append_get_strided(&mut batch, 0, &blocks(0, 16, 3));
    append_get_strided(&mut batch, 0, &blocks(8, 24, 2));

    let mut results = Vec::new();
    assert_eq!(carry_out_here(&batch, &segments, &mut results), Ok(()));

    let ones = [1u64.to_ne_bytes(); 2];
    assert_eq!(
        results,
        [ones.as_flattened(), b"later on", b"block 1.", b"later on"].concat()
    );
    assert_eq!(
        memory.map(|word| word == 1),
        [true, false, true, true, false, true]
    );
}

#[test]
fn strided_blocks_that_no_pe_sends_do_no_harm() {
    let (memory, segments) = memory::<4>(1);
    let refused = |batch: &[u8]| {
        let mut results = Vec::new();
        let is_refused = carry_out_here(batch, &segments, &mut results).is_err();
        assert!(results.len() <= MAX_RESULTS);
        is_refused
    };

    let both = |offset, stride, n| {
        let mut put = Vec::new();
        let mut get = Vec::new();
        append_put_strided(&mut put, &blocks(offset, stride, n));
        append_get_strided(&mut get, 0, &blocks(offset, stride, n));
        refused(&put) && refused(&get)
    };

    assert!(both(8, 16, 3), "the last one is outside");
    assert!(both(8, usize::MAX, 3), "the distance overflows");
    assert!(both(8, usize::MAX - 7, 2), "the address overflows");

    let mut long = Vec::new();
    append_get_strided(&mut long, 0, &blocks(0, 0, MAX_RESULTS / 8 + 1));
    assert!(refused(&long), "too many results");

    let mut empty = Vec::new();
    append_get_strided(&mut empty, 0, &blocks(0, 8, 3));
    empty[WORD] = 0;
    assert!(next(&mut &empty[..]).is_none(), "blocks of no bytes");

    assert_ne!(memory[1], 1, "what was within has been stored");
}

#[test]
fn what_no_pe_sends_does_no_harm() {
    let (memory, segments) = memory::<4>(1);
    let is_refused = |batch: &[u8]| carry_out_here(batch, &segments, &mut Vec::new()).is_err();

    let mut put_beyond = Vec::new();
    append_bytes(&mut put_beyond, heap(25), 0, &[2; 8]);
    assert!(is_refused(&put_beyond));

    let mut get_beyond = Vec::new();
    append_get(&mut get_beyond, heap(u64::MAX), 0, 8);
    assert!(is_refused(&get_beyond));

    let unaligned = update(AmoOp::Set, AmoWidth::Eight, 4);
    for fetches in [true, false] {
        let mut batch = Vec::new();
        append_amo(&mut batch, &unaligned, 0, fetches);
        assert!(is_refused(&batch));
    }

    let mut of_unknown_kind = Vec::new();
    append_get(&mut of_unknown_kind, heap(0), 0, 8);
    of_unknown_kind[HEAD - 2] = 9 << KIND_SHIFT;
    assert!(is_refused(&of_unknown_kind));

    let mut for_no_pe = Vec::new();
    append_get(&mut for_no_pe, heap(0), 1, 8);
    assert!(is_refused(&for_no_pe));

    assert_eq!(*memory, [1; 4]);
}

#[test]
fn the_first_entry_alone_has_attached_data() {
    let (memory, segments) = memory::<4>(1);
    let carry_out = |entries: &[u8], attached: &[u8]| {
        super::carry_out(entries, attached, &segments, &ALONE, &mut Vec::new())
    };

    let add = update(AmoOp::Add, AmoWidth::Eight, 24);
    let mut put = Vec::new();
    let mut signal = Vec::new();
    append_attached(&mut put, heap(8));
    append_amo(&mut signal, &add, 0, false);

    let both = [&put[..], &signal].concat();
    assert_eq!(carry_out(&both, &[2; 16]), Ok(()));
    let twos = u64::from_ne_bytes([2; 8]);
    assert_eq!(*memory, [1, twos, twos, 6]);

    let damaged = Err(Violation::Entries);
    assert_eq!(carry_out(&signal, &[2; 16]), damaged, "nobody's data");
    assert_eq!(carry_out(&[], &[2; 16]), damaged, "no entries");

    let second = [&signal[..], &put].concat();
    assert_eq!(carry_out(&second, &[3; 16]), damaged, "the second has none");
    assert_eq!(carry_out(&put.repeat(2), &[2; 16]), damaged, "twice");
    assert_eq!(carry_out(&both, &[3; 32]), Err(Violation::Address(8)));

    put[HEAD - 1] = 2;
    assert_eq!(carry_out(&put, &[3; 16]), damaged, "for another PE");
    assert_eq!(memory[1], twos);
}

#[test]
fn a_proxy_carries_out_what_is_for_another_pe_there() {
    let (own, segments) = memory::<2>(1);
    let (others, heap_of_other) = memory::<2>(7);
    let node = Node::new(Some(heap_of_other));
    let add = update(AmoOp::Add, AmoWidth::Eight, 8);

    let mut batch = Vec::new();
    append_bytes(&mut batch, heap(0), 2, &3u64.to_ne_bytes());
    append_amo(&mut batch, &add, 0, false);
    append_amo(&mut batch, &add, 2, true);

    let mut results = Vec::new();
    let done = carry_out(&batch, &[], &segments, &node, &mut results);
    assert_eq!(done, Ok(()));
    assert_eq!(*own, [1, 6]);
    assert_eq!(*others, [3, 12]);
    assert_eq!(results, 7u64.to_ne_bytes());
    assert_eq!(node.woken.load(Relaxed), 1);

    let mut for_no_pe = Vec::new();
    append_bytes(&mut for_no_pe, heap(0), 3, &[9; 8]);
    let done = carry_out(&for_no_pe, &[], &segments, &node, &mut results);
    assert_eq!(done, Err(Violation::Entries));
    assert_eq!(*own, [1, 6]);
    assert_eq!(*others, [3, 12]);
}

#[test]
fn changed_places_are_each_named_once() {
    let mut changed = ChangedPlaces::default();
    for place in [64, 1, 255, 63, 1, 64] {
        changed.add(place);
    }

    assert!(changed.places().eq([1, 63, 64, 255]));
    assert_eq!(ChangedPlaces::default().places().count(), 0);
}

#[test]
fn results_are_bounded() {
    const N: usize = MAX_RESULTS / 64;
    let (_memory, segments) = memory::<N>(1);
    let mut batch = Vec::new();
    for _ in 0..8 {
        append_get(&mut batch, heap(0), 0, 8 * N);
    }

    let mut results = Vec::new();
    assert_eq!(carry_out_here(&batch, &segments, &mut results), Ok(()));
    assert_eq!(results.len(), MAX_RESULTS);

    let fetch = update(AmoOp::Fetch, AmoWidth::Four, 0);
    append_amo(&mut batch, &fetch, 0, true);
    let done = carry_out_here(&batch, &segments, &mut Vec::new());
    assert_eq!(done, Err(Violation::TooMany));
}
