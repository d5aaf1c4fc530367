//! Unit tests of `batch`.
#![allow(unsafe_code)]

use super::*;
use crate::{Buffer, DestBuf, LocalBuf};
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

    fn arrived_at(&self, place: u8) {
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

/// Returns blocks of 8 bytes of the heap, from or to the successive blocks of `local`.
fn blocks<Way>(offset: u64, stride: usize, n: usize, local: Buffer<Way>) -> StridedBlocks<Way> {
    StridedBlocks {
        remote: heap(offset),
        local,
        nbytes: 8,
        remote_stride: stride,
        local_stride: 8,
        n,
    }
}

/// Returns a put of at most three blocks.
fn puts(offset: u64, stride: usize, n: usize) -> StridedBlocks<Source> {
    // SAFETY: a constant, which the put reads.
    let source = unsafe { SourceBuf::new(const { &DATA }.as_ptr(), 8 * n) };
    blocks(offset, stride, n, source)
}

/// Returns a get of blocks, whose destination is not used.
fn gets(offset: u64, stride: usize, n: usize) -> StridedBlocks<Dest> {
    blocks(offset, stride, n, DestBuf::EMPTY)
}

fn append_bytes(batch: &mut Vec<u8>, at: (RemoteAddr, u8), bytes: &[u8]) {
    // SAFETY: the bytes are borrowed during the call, which copies them.
    let source = unsafe { SourceBuf::new(bytes.as_ptr(), bytes.len()) };
    append_put(batch, at, &source);
}

/// Returns a batch with operations of each kind.
fn each() -> Vec<u8> {
    let mut batch = Vec::new();
    let at = RemoteAddr {
        segment: Segment::Static,
        offset: u64::MAX,
    };
    append_bytes(&mut batch, (at, 0), &[]);
    append_bytes(&mut batch, (heap(8), 0), &[7; MAX_NBYTES]);
    append_get(&mut batch, (heap(16), 0), MAX_NBYTES);
    append_put_strided(&mut batch, 0, &puts(8, 16, 2));
    append_get_strided(&mut batch, 3, &gets(24, 4, 3));
    append_amo(
        &mut batch,
        (&update(AmoOp::CompareSwap, AmoWidth::Four, 4), 0),
        true,
    );
    append_amo(
        &mut batch,
        (&update(AmoOp::Add, AmoWidth::Eight, 8), 0),
        false,
    );
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
    let batch = each();
    let mut left = &batch[..];
    let at = RemoteAddr {
        segment: Segment::Static,
        offset: u64::MAX,
    };
    assert_eq!(next(&mut left), Some((BatchEntry::Put(at, &[]), 0)));
    assert_eq!(
        next(&mut left),
        Some((BatchEntry::Put(heap(8), &[7; MAX_NBYTES]), 0))
    );
    assert_eq!(
        next(&mut left),
        Some((BatchEntry::Get(heap(16), MAX_NBYTES), 0))
    );
    let strides = |offset, stride| BlocksAt {
        first: heap(offset),
        stride,
        nbytes: 8,
    };
    assert_eq!(
        next(&mut left),
        Some((BatchEntry::PutStrided(strides(8, 16), &DATA[..16]), 0))
    );
    assert_eq!(
        next(&mut left),
        Some((BatchEntry::GetStrided(strides(24, 4), 3), 3))
    );
    let swap = update(AmoOp::CompareSwap, AmoWidth::Four, 4);
    assert_eq!(next(&mut left), Some((BatchEntry::Fetch(swap), 0)));
    let add = AmoRequest {
        condition: 0,
        ..update(AmoOp::Add, AmoWidth::Eight, 8)
    };
    assert_eq!(next(&mut left), Some((BatchEntry::Update(add), 0)));
    assert!(left.is_empty() && next(&mut left).is_none());
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
    let (mut batch, mut answers) = (Vec::new(), Vec::new());
    append_bytes(&mut batch, (heap(8), 0), &40u64.to_ne_bytes());
    append_amo(
        &mut batch,
        (&update(AmoOp::Add, AmoWidth::Eight, 8), 0),
        false,
    );
    append_amo(
        &mut batch,
        (&update(AmoOp::Add, AmoWidth::Eight, 8), 0),
        true,
    );
    append_get(&mut batch, (heap(0), 0), 16);
    append_amo(
        &mut batch,
        (&update(AmoOp::Fetch, AmoWidth::Four, 24), 0),
        true,
    );
    assert_eq!(carry_out(&batch, &segments, &ALONE, &mut answers), Ok(()));
    let words = [45u64, 1, 50].map(u64::to_ne_bytes);
    let four = |word: u64| (word as u32).to_ne_bytes();
    assert_eq!(
        answers,
        [words.as_flattened(), &four(u64::from(memory[3] as u32))].concat()
    );
}

#[test]
fn strided_blocks_are_scattered_and_gathered_in_order() {
    let (memory, segments) = memory::<6>(1);
    let (mut batch, mut answers) = (Vec::new(), Vec::new());
    append_put_strided(&mut batch, 0, &puts(8, 24, 2));
    append_bytes(&mut batch, (heap(32), 0), b"later on");
    append_get_strided(&mut batch, 0, &gets(0, 16, 3));
    append_get_strided(&mut batch, 0, &gets(8, 24, 2));
    assert_eq!(carry_out(&batch, &segments, &ALONE, &mut answers), Ok(()));
    let ones = [1u64.to_ne_bytes(); 2];
    assert_eq!(
        answers,
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
        let mut answers = Vec::new();
        let is_refused = carry_out(batch, &segments, &ALONE, &mut answers) == Err(Violation::Batch);
        assert!(answers.len() <= MAX_ANSWERS);
        is_refused
    };
    let both = |offset, stride, n| {
        let (mut put, mut get) = (Vec::new(), Vec::new());
        append_put_strided(&mut put, 0, &puts(offset, stride, n));
        append_get_strided(&mut get, 0, &gets(offset, stride, n));
        refused(&put) && refused(&get)
    };
    assert!(both(8, 16, 3), "the last one is outside");
    assert!(both(8, usize::MAX, 3), "the distance overflows");
    assert!(both(8, usize::MAX - 7, 2), "the address overflows");
    let mut long = Vec::new();
    append_get_strided(&mut long, 0, &gets(0, 0, MAX_ANSWERS / 8 + 1));
    assert!(refused(&long), "too many answers");
    let mut empty = Vec::new();
    append_get_strided(&mut empty, 0, &gets(0, 8, 3));
    empty[WORD] = 0;
    assert!(next(&mut &empty[..]).is_none(), "blocks of no bytes");
    assert_ne!(memory[1], 1, "what was within has been stored");
}

#[test]
fn what_no_pe_sends_does_no_harm() {
    let (memory, segments) = memory::<4>(1);
    let refused = |batch: &[u8]| carry_out(batch, &segments, &ALONE, &mut Vec::new()).is_err();
    let one = |append: &dyn Fn(&mut Vec<u8>)| {
        let mut batch = Vec::new();
        append(&mut batch);
        batch
    };
    assert!(refused(&one(&|batch| append_bytes(
        batch,
        (heap(25), 0),
        &[2; 8]
    ))));
    assert!(refused(&one(&|batch| append_get(
        batch,
        (heap(u64::MAX), 0),
        8
    ))));
    let unaligned = update(AmoOp::Set, AmoWidth::Eight, 4);
    assert!(refused(&one(&|batch| append_amo(
        batch,
        (&unaligned, 0),
        true
    ))));
    assert!(refused(&one(&|batch| append_amo(
        batch,
        (&unaligned, 0),
        false
    ))));
    let mut strange = one(&|batch| append_get(batch, (heap(0), 0), 8));
    strange[HEAD - 2] = 9 << KIND_SHIFT;
    assert!(refused(&strange));
    assert!(
        refused(&one(&|batch| append_get(batch, (heap(0), 1), 8))),
        "there is no such PE"
    );
    assert_eq!(*memory, [1; 4]);
}

#[test]
fn a_proxy_carries_out_what_is_for_another_pe_there() {
    let ((own, segments), (others, heap_of_other)) = (memory::<2>(1), memory::<2>(7));
    let node = Node::new(Some(heap_of_other));
    let (mut batch, mut answers) = (Vec::new(), Vec::new());
    append_bytes(&mut batch, (heap(0), 2), &3u64.to_ne_bytes());
    append_amo(
        &mut batch,
        (&update(AmoOp::Add, AmoWidth::Eight, 8), 0),
        false,
    );
    append_amo(
        &mut batch,
        (&update(AmoOp::Add, AmoWidth::Eight, 8), 2),
        true,
    );
    assert_eq!(carry_out(&batch, &segments, &node, &mut answers), Ok(()));
    assert_eq!(
        (*own, *others, &answers[..]),
        ([1, 6], [3, 12], &7u64.to_ne_bytes()[..])
    );
    assert_eq!(node.woken.load(Relaxed), 1);
    let mut of_nobody = Vec::new();
    append_bytes(&mut of_nobody, (heap(0), 3), &[9; 8]);
    assert_eq!(
        carry_out(&of_nobody, &segments, &node, &mut answers),
        Err(Violation::Batch)
    );
    assert_eq!((*own, *others), ([1, 6], [3, 12]));
}

#[test]
fn changed_places_are_each_named_once() {
    let mut changed = ChangedPlaces::default();
    [64, 1, 255, 63, 1, 64]
        .into_iter()
        .for_each(|place| changed.add(place));
    assert!(changed.places().eq([1, 63, 64, 255]));
    assert_eq!(ChangedPlaces::default().places().count(), 0);
}

#[test]
fn answers_are_bounded() {
    const N: usize = MAX_ANSWERS / 64;
    let (_memory, segments) = memory::<N>(1);
    let (mut batch, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        append_get(&mut batch, (heap(0), 0), 8 * N);
    }
    assert_eq!(carry_out(&batch, &segments, &ALONE, &mut answers), Ok(()));
    assert_eq!(answers.len(), MAX_ANSWERS);
    append_amo(
        &mut batch,
        (&update(AmoOp::Fetch, AmoWidth::Four, 0), 0),
        true,
    );
    assert_eq!(
        carry_out(&batch, &segments, &ALONE, &mut Vec::new()),
        Err(Violation::Batch)
    );
}
