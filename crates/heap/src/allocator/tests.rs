//! Tests of the allocator with and without guards, on a heap in a vector.
#![allow(unsafe_code)]

use super::*;
use proptest::prelude::*;

const AT_ONCE: usize = 100;
const BY: &str = "shmem_malloc";

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
    Heap {
        memory,
        allocator,
        base: base.addr(),
    }
}

fn guarded_heap(nbytes: usize) -> Heap {
    let Heap {
        memory,
        allocator,
        base,
    } = heap(nbytes);
    Heap {
        memory,
        allocator: allocator.guarded(),
        base,
    }
}

#[test]
fn what_is_written_beyond_a_block_is_found() {
    let mut h = guarded_heap(1 << 16);
    let blocks = [100, 24].map(|n| h.allocator.allocate(BY, n, 16).expect("room"));
    let offset = blocks[0].addr() - h.base;

    fill(&mut h, offset, 100, 7);
    assert!(h.allocator.overwritten(AT_ONCE).is_none());
    assert!(h.allocator.overwritten_at(blocks[0]).is_none());

    for (first, n, words) in [
        (
            offset + 100,
            1,
            "overwritten, at the end of the block of 100 bytes",
        ),
        (
            offset + 102,
            9,
            "overwritten, 2 bytes past the end of the block of 100 bytes",
        ),
        (
            offset - 8,
            8,
            "overwritten, 8 bytes before the start of the block of 100 bytes",
        ),
    ] {
        let before = copy_of(&h, first, n);
        fill(&mut h, first, n, 7);

        let found = h
            .allocator
            .overwritten(AT_ONCE)
            .expect("overwritten")
            .to_string();
        assert!(
            found.starts_with(&format!("{n} bytes at {:#x} were", h.base + first)),
            "{found}"
        );
        assert!(found.contains(words), "{found}");
        assert!(
            found.contains("(block 1, allocated by shmem_malloc)"),
            "{found}"
        );
        assert!(h.allocator.overwritten_at(blocks[0]).is_some());
        assert!(h.allocator.overwritten_at(blocks[1]).is_none());

        for (i, byte) in before.into_iter().enumerate() {
            fill(&mut h, first + i, 1, byte);
        }
        assert!(h.allocator.overwritten(AT_ONCE).is_none());
    }
}

/// Each call checks the guards of at most `AT_ONCE` blocks, and successive calls check all of them.
#[test]
fn every_guard_has_its_turn() {
    let mut h = guarded_heap(4 << 20);
    let n = 3 * AT_ONCE;
    let blocks: Vec<_> = (0..n)
        .map(|_| h.allocator.allocate(BY, 40, 16).expect("room"))
        .collect();
    for i in [0, n / 2, n - 1] {
        let behind = blocks[i].addr() - h.base + 40;
        let before = copy_of(&h, behind, 1)[0];
        fill(&mut h, behind, 1, !before);
        let looks = (1..=4).find(|_| h.allocator.overwritten(AT_ONCE).is_some());
        assert!(looks.is_some(), "the guard of block {i}");
        fill(&mut h, behind, 1, before);
    }
}

#[test]
fn bytes_that_are_in_no_block_are_described() {
    let mut h = guarded_heap(1 << 16);
    let block = h.allocator.allocate(BY, 100, 16).expect("room");
    let other = h.allocator.allocate(BY, 100, 16).expect("room");
    let why = |h: &Heap, address, n| {
        h.allocator
            .holding(address, n)
            .expect_err("why")
            .to_string()
    };

    let start = block.addr();
    assert!(h.allocator.holding(start, 100).is_ok());
    assert!(h.allocator.holding(start + 99, 1).is_ok());
    let beyond = why(&h, start + 96, 8);
    assert!(beyond.starts_with("reach 4 bytes past the end of the block of 100 bytes"));
    assert!(why(&h, start, usize::MAX).starts_with("reach "));
    assert!(why(&h, start + 104, 8).starts_with("begin 4 bytes past the end of the block"));
    assert!(why(&h, start - 16, 8).starts_with("begin 16 bytes before the start of the block"));
    let far = why(&h, other.addr() + (8 << 10), 8);
    assert!(
        far.starts_with("begin 8092 bytes past the end of the block"),
        "{far}"
    );

    h.allocator.free("shmem_free", block).expect("a block");
    let freed = why(&h, start + 8, 8);
    assert!(freed.starts_with("are not allocated: shmem_free has freed the block of 100 bytes"));
    h.allocator.free("shmem_free", other).expect("a block");
    assert!(why(&h, h.base + (60 << 10), 8).starts_with("are not allocated: no block"));
}

#[test]
fn the_whole_heap_can_be_one_block() {
    let mut h = heap(1 << 20);
    let block = h
        .allocator
        .allocate(BY, (1 << 20) - 4096, 16)
        .expect("room");
    assert_eq!(h.allocator.allocate(BY, 1 << 20, 16), None);
    assert_eq!(h.allocator.allocate(BY, usize::MAX - 8, 16), None);

    h.allocator.free(BY, block).expect("a block");
    assert!(h.allocator.allocate(BY, (1 << 20) - 4096, 16).is_some());
    assert_eq!(h.allocator.allocate(BY, 1, 8192), None);
}

#[test]
fn foreign_and_freed_pointers_are_refused() {
    let mut h = heap(1 << 16);
    let block = h.allocator.allocate(BY, 100, 16).expect("room");
    assert!(matches!(
        h.allocator.free(BY, block.wrapping_add(16)),
        Err(Unusable::NotABlockStart)
    ));
    assert!(matches!(
        h.allocator.reallocate(BY, block.wrapping_add(1), 5),
        Err(Unusable::NotABlockStart)
    ));
    assert!(matches!(h.allocator.free(BY, block), Ok(100)));
    assert!(matches!(
        h.allocator.free(BY, block),
        Err(Unusable::NotABlockStart)
    ));
}

/// A block that was released stays allocated, and its bytes are refused to this PE.
#[test]
fn a_block_is_released_once_and_freed_later() {
    let mut h = guarded_heap(1 << 16);
    let [one, other] = [100, 24].map(|n| h.allocator.allocate(BY, n, 16).expect("room"));
    assert!(h.allocator.require_unreleased(one).is_ok());
    h.allocator.release("shmemx_release", one).expect("a block");

    let again = h.allocator.release("the drop of an object", one);
    let Err(Unusable::Released(block, by)) = again else {
        panic!("it is released twice: {again:?}");
    };
    assert_eq!((block.nbytes, by), (100, "shmemx_release"));
    assert!(h.allocator.require_unreleased(one).is_err());
    assert!(h.allocator.require_unreleased(other).is_ok());
    let inside = h.allocator.release(BY, one.wrapping_add(16));
    assert!(matches!(inside, Err(Unusable::NotABlockStart)));

    let misplaced = h
        .allocator
        .holding(one.addr() + 8, 1)
        .expect_err("it is released");
    let text = misplaced.to_string();
    assert!(
        text.starts_with("are in the block of 100 bytes")
            && text.ends_with("which this PE has released by shmemx_release"),
        "{text}"
    );
    assert_eq!(h.allocator.in_use(), 124);
    let released: Vec<bool> = h
        .allocator
        .releases()
        .map(|(_, is_released)| is_released)
        .collect();
    assert_eq!(
        released.iter().filter(|&&is_released| is_released).count(),
        1
    );
    assert_eq!(released.len(), 2);

    h.allocator.free(BY, one).expect("it is a block");
    assert_eq!(h.allocator.in_use(), 24);
    assert!(h.allocator.releases().all(|(_, is_released)| !is_released));
}

#[test]
fn a_block_beside_damaged_data_of_the_allocator_is_refused() {
    for byte in [0, 1, 0xff] {
        let mut h = heap(1 << 16);
        let [one, other] = [0; 2].map(|_| h.allocator.allocate(BY, 100, 16).expect("room"));
        let behind = one.addr() - h.base + 100;
        fill(&mut h, behind, 10, byte);
        for block in [one, other] {
            assert!(matches!(
                h.allocator.free(BY, block),
                Err(Unusable::Damaged(Block { nbytes: 100, .. }))
            ));
        }
    }
}

#[test]
fn an_address_has_a_place() {
    let mut h = heap(1 << 16);
    let block = h.allocator.allocate(BY, 100, 16).expect("room");
    let last = block.wrapping_add(99);
    let behind = block.wrapping_add(100);
    let before = block.wrapping_sub(1);

    assert!(matches!(h.allocator.kind(block), AddressKind::Block));
    assert!(matches!(h.allocator.kind(last), AddressKind::Inside(_)));
    assert!(matches!(h.allocator.kind(behind), AddressKind::Free));
    assert!(matches!(h.allocator.kind(before), AddressKind::Free));

    h.allocator.free(BY, block).expect("a block");
    assert!(matches!(h.allocator.kind(block), AddressKind::Free));
}

#[test]
fn a_heap_of_nothing_gives_nothing() {
    // SAFETY: no byte of the empty range is ever accessed.
    let mut a = unsafe { Allocator::new(std::ptr::dangling_mut(), 0, 16) };
    assert_eq!(a.allocate(BY, 1, 16), None);
}

/// dlmalloc rounds a request with its alignment up to more than the heap has.
#[test]
fn a_request_that_is_refused_leaves_the_heap_as_it_was() {
    for heap in [heap, guarded_heap] {
        let mut h = heap(1 << 16);
        for _ in 0..2 {
            assert_eq!(h.allocator.allocate(BY, 1 << 16, 4096), None);
            assert_eq!(
                h.allocator
                    .allocate(BY, h.allocator.largest_free() + 33, 16),
                None
            );

            let largest = h.allocator.largest_free();
            let block = h.allocator.allocate(BY, largest, 16).expect("room");
            let refused = h.allocator.reallocate(BY, block, largest + 33);
            assert!(matches!(refused, Ok(None)));
            assert_eq!(h.allocator.in_use(), largest);

            h.allocator.free(BY, block).expect("a block");
            assert_eq!(h.allocator.largest_free(), largest);
        }
    }
}

/// A block that is allocated on both PEs. On the first one, all of its bytes are `mark`.
#[derive(Clone, Copy)]
struct LiveBlock {
    offset: usize,
    nbytes: usize,
    mark: u8,
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

/// A block of the size that `largest_free` returns can be allocated, and one that is 33 bytes
/// larger cannot, after any allocations and frees.
#[test]
fn the_largest_free_block_can_be_had() {
    for heap in [heap, guarded_heap] {
        let mut h = heap(1 << 16);
        let mut blocks = Vec::new();
        for i in 0..200 {
            let nbytes = 1 + i * 37 % 500;
            let alignment = 16 << (i % 5);
            blocks.extend(h.allocator.allocate(BY, nbytes, alignment));
            if i % 3 == 2 {
                let freed = blocks.swap_remove(i * 7 % blocks.len());
                h.allocator.free(BY, freed).expect("live");
            }

            let largest = h.allocator.largest_free();
            if largest == 0 {
                continue;
            }
            assert!(
                h.allocator.allocate(BY, largest + 33, 16).is_none(),
                "{largest} in round {i}"
            );
            let block = h
                .allocator
                .allocate(BY, largest, 16)
                .expect("room for the largest");
            h.allocator.free(BY, block).expect("live");
        }

        for block in blocks {
            assert!(h.allocator.free(BY, block).is_ok());
        }
        assert_eq!(h.allocator.in_use(), 0);
        assert!(h.allocator.largest_free() > (1 << 16) - 300);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    /// Two PEs that make the same calls get the same offsets; blocks never overlap, are
    /// aligned, and keep their contents.
    #[test]
    fn offsets_are_symmetric(
        guarded in any::<bool>(),
        ops in proptest::collection::vec(op(), 1..60),
    ) {
        let heap = if guarded { guarded_heap } else { heap };
        let mut pes = [heap(256 << 10), heap(256 << 10)];
        // Offsets are equal only if the bases are equal modulo the largest alignment requested.
        let skew = pes[0].base % 4096 != pes[1].base % 4096;

        let mut live: Vec<LiveBlock> = Vec::new();
        for (step, op) in ops.into_iter().enumerate() {
            let mark = step as u8;
            match op {
                Op::Allocate(n, log) => {
                    let alignment = if skew { 16 } else { 1 << log };
                    let got = pes.each_mut().map(|h| {
                        h.allocator.allocate(BY, n, alignment).map(|p| p.addr() - h.base)
                    });
                    prop_assert_eq!(got[0], got[1]);
                    let Some(offset) = got[0] else { continue };
                    prop_assert!((pes[0].base + offset).is_multiple_of(alignment));
                    for other in &live {
                        let is_behind = other.offset + other.nbytes <= offset;
                        prop_assert!(offset + n <= other.offset || is_behind);
                    }

                    fill(&mut pes[0], offset, n, mark);
                    live.push(LiveBlock { offset, nbytes: n, mark });
                }
                Op::Reallocate(i, n) if !live.is_empty() => {
                    let i = i % live.len();
                    let LiveBlock { offset, nbytes, mark } = live[i];
                    let got = pes.each_mut().map(|h| {
                        let block = std::ptr::with_exposed_provenance_mut(h.base + offset);
                        let moved = h.allocator.reallocate(BY, block, n).expect("live");
                        moved.map(|p| p.addr() - h.base)
                    });
                    prop_assert_eq!(got[0], got[1]);
                    let Some(offset) = got[0] else { continue };
                    check(&mut pes[0], offset, n.min(nbytes), mark);
                    fill(&mut pes[0], offset, n, mark);
                    live[i] = LiveBlock { offset, nbytes: n, mark };
                }
                Op::Free(i) if !live.is_empty() => {
                    let LiveBlock { offset, nbytes, mark } = live.swap_remove(i % live.len());
                    check(&mut pes[0], offset, nbytes, mark);
                    for h in &mut pes {
                        let block = std::ptr::with_exposed_provenance_mut(h.base + offset);
                        h.allocator.free(BY, block).expect("live");
                    }
                }
                Op::Reallocate(..) | Op::Free(_) => {}
            }
        }
        prop_assert!(pes[0].allocator.overwritten(AT_ONCE).is_none());
    }
}

fn fill(h: &mut Heap, offset: usize, n: usize, mark: u8) {
    let base = h.memory.as_mut_ptr().cast::<u8>();
    // SAFETY: a live block of the vector that holds the heap.
    unsafe { base.add(offset).write_bytes(mark, n) }
}

fn copy_of(h: &Heap, offset: usize, n: usize) -> Vec<u8> {
    let base = h.memory.as_ptr().cast::<u8>();
    // SAFETY: bytes of the vector that holds the heap.
    (offset..offset + n)
        .map(|i| unsafe { base.add(i).read() })
        .collect()
}

fn check(h: &mut Heap, offset: usize, n: usize, mark: u8) {
    let base = h.memory.as_mut_ptr().cast::<u8>();
    for i in offset..offset + n {
        // SAFETY: a live block of the vector that holds the heap.
        assert_eq!(unsafe { base.add(i).read() }, mark);
    }
}
