//! Unit tests of `allocator`.
#![allow(unsafe_code)]

use super::*;
use proptest::prelude::*;

struct Heap {
    memory: Vec<u128>,
    allocator: Allocator,
    base: usize,
}

fn heap(nbytes: usize) -> Heap {
    let mut memory = vec![0u128; nbytes / 16];
    let base = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: the vector lives beside the allocator and is not touched otherwise.
    let allocator = unsafe { Allocator::new(base, nbytes, 4096) };
    Heap { memory, allocator, base: base.addr() }
}

#[test]
fn the_whole_heap_can_be_one_block() {
    let mut h = heap(1 << 20);
    let block = h.allocator.allocate((1 << 20) - 4096, 16).expect("room");
    assert_eq!(h.allocator.allocate(1 << 20, 16), None);
    assert_eq!(h.allocator.allocate(usize::MAX - 8, 16), None);
    h.allocator.free(block).expect("a block");
    assert!(h.allocator.allocate((1 << 20) - 4096, 16).is_some());
    assert_eq!(h.allocator.allocate(1, 8192), None);
}

#[test]
fn foreign_and_freed_pointers_are_refused() {
    let mut h = heap(1 << 16);
    let block = h.allocator.allocate(100, 16).expect("room");
    assert_eq!(h.allocator.free(block.wrapping_add(16)), Err(NotABlock));
    assert_eq!(h.allocator.reallocate(block.wrapping_add(1), 5), Err(NotABlock));
    assert_eq!(h.allocator.free(block), Ok(100));
    assert_eq!(h.allocator.free(block), Err(NotABlock));
}

#[test]
fn an_address_has_a_place() {
    let mut h = heap(1 << 16);
    let block = h.allocator.allocate(100, 16).expect("room");
    assert_eq!(h.allocator.place(block), Place::Block);
    assert_eq!(h.allocator.place(block.wrapping_add(99)), Place::Inside);
    assert_eq!(h.allocator.place(block.wrapping_add(100)), Place::Free);
    assert_eq!(h.allocator.place(block.wrapping_sub(1)), Place::Free);
    h.allocator.free(block).expect("a block");
    assert_eq!(h.allocator.place(block), Place::Free);
}

#[test]
fn a_heap_of_nothing_gives_nothing() {
    // SAFETY: no byte of the empty range is ever accessed.
    let mut a = unsafe { Allocator::new(std::ptr::dangling_mut(), 0, 16) };
    assert_eq!(a.allocate(1, 16), None);
}

#[derive(Clone, Debug)]
enum Op {
    Allocate(usize, u32),
    Reallocate(usize, usize),
    Free(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (1..6000usize, 0..13u32).prop_map(|(n, a)| Op::Allocate(n, a)),
        (any::<usize>(), 1..6000usize).prop_map(|(i, n)| Op::Reallocate(i, n)),
        any::<usize>().prop_map(Op::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    /// Two PEs that make the same calls get the same offsets; blocks never overlap, are
    /// aligned, and keep their contents.
    #[test]
    fn offsets_are_symmetric(ops in proptest::collection::vec(op(), 1..60)) {
        let mut pes = [heap(256 << 10), heap(256 << 10)];
        // Offsets agree where bases agree modulo the largest alignment asked for.
        let skew = pes[0].base % 4096 != pes[1].base % 4096;
        let mut live: Vec<(usize, usize, u8)> = Vec::new();
        for (step, op) in ops.into_iter().enumerate() {
            let mark = step as u8;
            match op {
                Op::Allocate(n, log) => {
                    let alignment = if skew { 16 } else { 1 << log };
                    let got = pes.each_mut().map(|h| {
                        h.allocator.allocate(n, alignment).map(|p| p.addr() - h.base)
                    });
                    prop_assert_eq!(got[0], got[1]);
                    let Some(offset) = got[0] else { continue };
                    prop_assert!((pes[0].base + offset).is_multiple_of(alignment));
                    for &(o, len, _) in &live {
                        prop_assert!(offset + n <= o || o + len <= offset);
                    }
                    fill(&mut pes[0], offset, n, mark);
                    live.push((offset, n, mark));
                }
                Op::Reallocate(i, n) if !live.is_empty() => {
                    let i = i % live.len();
                    let (offset, len, mark) = live[i];
                    let got = pes.each_mut().map(|h| {
                        let block = std::ptr::with_exposed_provenance_mut(h.base + offset);
                        h.allocator.reallocate(block, n).expect("live").map(|p| p.addr() - h.base)
                    });
                    prop_assert_eq!(got[0], got[1]);
                    let Some(offset) = got[0] else { continue };
                    check(&mut pes[0], offset, n.min(len), mark);
                    fill(&mut pes[0], offset, n, mark);
                    live[i] = (offset, n, mark);
                }
                Op::Free(i) if !live.is_empty() => {
                    let (offset, len, mark) = live.swap_remove(i % live.len());
                    check(&mut pes[0], offset, len, mark);
                    for h in &mut pes {
                        let block = std::ptr::with_exposed_provenance_mut(h.base + offset);
                        h.allocator.free(block).expect("live");
                    }
                }
                Op::Reallocate(..) | Op::Free(_) => {}
            }
        }
    }
}

fn fill(h: &mut Heap, offset: usize, n: usize, mark: u8) {
    let base = h.memory.as_mut_ptr().cast::<u8>();
    // SAFETY: a live block of the vector that holds the heap.
    unsafe { base.add(offset).write_bytes(mark, n) }
}

fn check(h: &mut Heap, offset: usize, n: usize, mark: u8) {
    let base = h.memory.as_mut_ptr().cast::<u8>();
    for i in offset..offset + n {
        // SAFETY: a live block of the vector that holds the heap.
        assert_eq!(unsafe { base.add(i).read() }, mark);
    }
}
