//! Blocks of the heap that each PE releases by itself, and that are freed once all have.
#![allow(unsafe_code)]

use super::kit::{CALL, Shape, TestPe, job};
use crate::api::heap::reclaim;
use crate::api::heap::release::release_block;
use rushmem_heap::Allocator;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Mutex;

/// The number of blocks: more than a word has bits.
const BLOCKS: usize = 150;
/// The alignment of the heap of each PE.
const PAGE: usize = 4096;

/// Gives this PE an allocator of its heap.
pub(super) fn open_heap(pe: TestPe) {
    let memory = pe.job().memory;
    let nbytes = memory.layout().heap_bytes();
    // SAFETY: the heap is mapped until the threads of the PE have ended, and no test accesses it
    // otherwise meanwhile.
    let allocator = unsafe { Allocator::new(memory.heap(), nbytes, PAGE) };
    *pe.job().allocator() = Some(allocator);
}

fn with_allocator<R>(pe: TestPe, act: impl FnOnce(&mut Allocator) -> R) -> R {
    act(pe.job().allocator().as_mut().expect("it is open"))
}

/// Allocates a block of this many bytes, on all PEs at the same offset.
fn allocate(pe: TestPe, nbytes: usize) -> usize {
    let block = with_allocator(pe, |allocator| allocator.allocate("a test", nbytes, 16));
    block.expect("there is room").expose_provenance()
}

fn release(pe: TestPe, block: usize) {
    let block = std::ptr::with_exposed_provenance_mut::<c_void>(block);
    release_block(pe.job(), CALL, block);
}

/// Returns the next pseudorandom number below `n`.
fn below(state: &mut u64, n: usize) -> usize {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as usize % n
}

/// Each PE releases blocks in an order of its own. Each call frees the blocks that all have
/// released, and no other.
#[test]
fn what_all_pes_have_released_is_freed() {
    let shapes = [
        Shape::of(&[1]),
        Shape::of(&[4]),
        Shape::of(&[3]).threads(),
        Shape::over_tcp(&[2, 1]),
    ];
    for shape in shapes {
        let n_pes = shape.n_pes() as usize;
        // By PE: the numbers of the blocks that it has released and that are not freed.
        let released = Mutex::new(vec![BTreeSet::new(); n_pes]);

        job(&shape.late(18), move |pe| {
            open_heap(pe);
            let mut state = pe.me() as u64;
            for round in 0..4 {
                let nbytes = |number: usize| 1 + (number * 37 + round) % 500;
                let blocks: Vec<usize> = (0..BLOCKS).map(|i| allocate(pe, nbytes(i))).collect();
                let used: usize = (0..BLOCKS).map(nbytes).sum();
                let mut left: Vec<usize> = (0..BLOCKS).collect();
                let mut freed = 0;

                while freed < used {
                    for _ in 0..BLOCKS / 4 {
                        if left.is_empty() {
                            break;
                        }
                        let number = left.swap_remove(below(&mut state, left.len()));
                        release(pe, blocks[number]);
                        released.lock().expect("no panic")[pe.me()].insert(number);
                    }
                    pe.sync_all();
                    let by_all = released
                        .lock()
                        .expect("no panic")
                        .iter()
                        .cloned()
                        .reduce(|one, other| &one & &other)
                        .expect("there are PEs");
                    pe.sync_all();
                    released.lock().expect("no panic")[pe.me()].retain(|i| !by_all.contains(i));

                    let due: usize = by_all.into_iter().map(nbytes).sum();
                    assert_eq!(reclaim(pe), due);
                    freed += due;
                    assert_eq!(
                        with_allocator(pe, |allocator| allocator.in_use()),
                        used - freed
                    );
                }
                assert_eq!(reclaim(pe), 0, "all are freed");
            }
        });
    }
}

/// A block that PE 0 never releases stays, beside others that are freed and allocated again.
#[test]
fn a_block_that_one_pe_keeps_stays() {
    job(&Shape::of(&[3]).late(19), |pe| {
        open_heap(pe);
        let kept = allocate(pe, 1000);
        if pe.me() != 0 {
            release(pe, kept);
        }
        for _ in 0..50 {
            let block = allocate(pe, 500);
            assert_ne!(block, kept);
            release(pe, block);
            assert_eq!(reclaim(pe), 500);
        }
        assert_eq!(with_allocator(pe, |allocator| allocator.in_use()), 1000);
    });
}

/// Threads of each PE release blocks while one of them reclaims. Nothing is freed twice or lost.
#[test]
fn threads_release_while_one_reclaims() {
    const THREADS: usize = 3;
    job(&Shape::of(&[2]).threads().late(20), |pe| {
        open_heap(pe);
        let blocks: Vec<usize> = (0..THREADS * BLOCKS).map(|_| allocate(pe, 64)).collect();
        let freed = Mutex::new(0);
        pe.with_threads(THREADS + 1, |pe, number| {
            if number < THREADS {
                for i in 0..BLOCKS {
                    // PEs have different orders.
                    let i = if pe.me() == 0 { i } else { BLOCKS - 1 - i };
                    release(pe, blocks[number * BLOCKS + i]);
                }
            } else {
                for _ in 0..20 {
                    *freed.lock().expect("no panic") += reclaim(pe);
                }
            }
        });
        let freed = freed.into_inner().expect("no panic") + reclaim(pe);
        assert_eq!(freed, THREADS * BLOCKS * 64);
    });
}
