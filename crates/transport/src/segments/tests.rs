//! Unit tests of `segments`.
#![allow(unsafe_code)]

use super::*;
use crate::{AmoOp, OldValue};

fn at(offset: u64) -> RemoteAddr {
    RemoteAddr { segment: Segment::Heap, offset }
}

#[test]
fn only_what_lies_within_has_an_address() {
    let mut memory = [0u64; 4];
    let whole = LocalBuf { base: memory.as_mut_ptr().cast(), nbytes: 32 };
    let segments = Segments::default();
    assert!(segments.bytes(at(0), 0).is_none(), "nothing is registered yet");
    // SAFETY: the memory outlives the table.
    assert_eq!(unsafe { segments.register(Segment::Heap, whole, 'a') }, Ok(()));
    // SAFETY: it is refused.
    assert!(unsafe { segments.register(Segment::Heap, whole, 'b') }.is_err());
    assert!(segments.bytes(at(31), 1).is_some());
    assert!(segments.bytes(at(31), 2).is_none());
    assert!(segments.bytes(at(u64::MAX), 2).is_none());
    assert!(segments.word(at(24), AmoWidth::Eight).is_some());
    assert!(segments.word(at(20), AmoWidth::Eight).is_none());
    assert!(segments.word(at(20), AmoWidth::Four).is_some());
    assert_eq!(segments.holding(whole.skip(8)), Some((at(8), &'a')));
    assert_eq!(segments.holding(LocalBuf { nbytes: 33, ..whole }), None);
}

#[test]
fn what_peers_ask_happens_within_the_segment_alone() {
    let mut memory = [1u64, 2, 3];
    let whole = LocalBuf { base: memory.as_mut_ptr().cast(), nbytes: 16 };
    let segments = Segments::default();
    // SAFETY: the memory outlives the table.
    unsafe { segments.register(Segment::Heap, whole, ()) }.expect("the first");
    let (op, width, old) = (AmoOp::Add, AmoWidth::Eight, OldValue::Ignored);
    let add = |offset| AmoRequest { dest: at(offset), width, op, operand: 5, condition: 0, old };
    assert_eq!(segments.apply(&add(8)), Some(2));
    assert_eq!(segments.apply(&add(16)), None);
    assert_eq!(segments.apply(&add(4)), None);
    assert!(segments.write(at(0), &9u64.to_ne_bytes()));
    assert!(!segments.write(at(9), &[0; 8]));
    let mut found = [0u8; 8];
    let dest = LocalBuf { base: found.as_mut_ptr(), nbytes: 8 };
    // SAFETY: a live local.
    assert!(unsafe { segments.read_into(at(8), dest) });
    assert_eq!(u64::from_ne_bytes(found), 7);
    assert_eq!(memory, [9, 7, 3]);
}
