//! Unit tests of `batch`.
#![allow(unsafe_code)]

use super::*;
use crate::LocalBuf;

fn heap(offset: u64) -> RemoteAddr {
    RemoteAddr { segment: Segment::Heap, offset }
}

fn update(op: AmoOp, width: AmoWidth, offset: u64) -> Update {
    Update { op, width, dest: heap(offset), operand: 5, condition: 9 }
}

/// An operation of each kind.
fn each() -> Vec<u8> {
    let mut batch = Vec::new();
    append_put(&mut batch, RemoteAddr { segment: Segment::Static, offset: u64::MAX }, 0);
    append_put(&mut batch, heap(8), MAX_NBYTES).fill(7);
    append_get(&mut batch, heap(16), MAX_NBYTES);
    append_update(&mut batch, &update(AmoOp::CompareSwap, AmoWidth::Four, 4), true);
    append_update(&mut batch, &update(AmoOp::Add, AmoWidth::Eight, 8), false);
    batch
}

/// Memory of `N` words of `value`, and the segments whose heap it is.
fn memory<const N: usize>(value: u64) -> (Box<[u64; N]>, Segments) {
    let mut memory = Box::new([value; N]);
    let segments = Segments::default();
    let whole = LocalBuf { base: memory.as_mut_ptr().cast(), nbytes: 8 * N };
    // SAFETY: callers keep the memory as long as the segments.
    unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");
    (memory, segments)
}

#[test]
fn operations_come_as_they_were_sent() {
    let batch = each();
    let mut left = &batch[..];
    let at = RemoteAddr { segment: Segment::Static, offset: u64::MAX };
    assert_eq!(next(&mut left), Some(BatchEntry::Put(at, &[])));
    assert_eq!(next(&mut left), Some(BatchEntry::Put(heap(8), &[7; MAX_NBYTES])));
    assert_eq!(next(&mut left), Some(BatchEntry::Get(heap(16), MAX_NBYTES)));
    let swap = update(AmoOp::CompareSwap, AmoWidth::Four, 4);
    assert_eq!(next(&mut left), Some(BatchEntry::Fetch(swap)));
    let add = Update { condition: 0, ..update(AmoOp::Add, AmoWidth::Eight, 8) };
    assert_eq!(next(&mut left), Some(BatchEntry::Update(add)));
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
    append_put(&mut batch, heap(8), 8).copy_from_slice(&40u64.to_ne_bytes());
    append_update(&mut batch, &update(AmoOp::Add, AmoWidth::Eight, 8), false);
    append_update(&mut batch, &update(AmoOp::Add, AmoWidth::Eight, 8), true);
    append_get(&mut batch, heap(0), 16);
    append_update(&mut batch, &update(AmoOp::Fetch, AmoWidth::Four, 24), true);
    assert!(carry_out(&batch, &segments, &mut answers));
    let words = [45u64, 1, 50].map(u64::to_ne_bytes);
    let four = |word: u64| (word as u32).to_ne_bytes();
    assert_eq!(answers, [words.as_flattened(), &four(u64::from(memory[3] as u32))].concat());
}

#[test]
fn what_no_pe_sends_does_no_harm() {
    let (memory, segments) = memory::<4>(1);
    let refused = |batch: &[u8]| !carry_out(batch, &segments, &mut Vec::new());
    let one = |append: &dyn Fn(&mut Vec<u8>)| {
        let mut batch = Vec::new();
        append(&mut batch);
        batch
    };
    assert!(refused(&one(&|batch| append_put(batch, heap(25), 8).fill(2))));
    assert!(refused(&one(&|batch| append_get(batch, heap(u64::MAX), 8))));
    let unaligned = update(AmoOp::Set, AmoWidth::Eight, 4);
    assert!(refused(&one(&|batch| append_update(batch, &unaligned, true))));
    assert!(refused(&one(&|batch| append_update(batch, &unaligned, false))));
    let mut strange = one(&|batch| append_get(batch, heap(0), 8));
    *strange.last_mut().expect("a kind") = 9;
    assert!(refused(&strange));
    assert_eq!(*memory, [1; 4]);
}

#[test]
fn answers_are_bounded() {
    const N: usize = MAX_ANSWERS / 64;
    let (_memory, segments) = memory::<N>(1);
    let (mut batch, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        append_get(&mut batch, heap(0), 8 * N);
    }
    assert!(carry_out(&batch, &segments, &mut answers));
    assert_eq!(answers.len(), MAX_ANSWERS);
    append_update(&mut batch, &update(AmoOp::Fetch, AmoWidth::Four, 0), true);
    assert!(!carry_out(&batch, &segments, &mut Vec::new()));
}
