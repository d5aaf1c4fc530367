//! The queue of a lock between PEs, and the turns of the threads of a PE.
//!
//! The operations on a lock's word go over the access path, which has one PE for each process. So
//! these tests have a type of lock whose operations act on the memory of the PEs under test.
#![allow(unsafe_code)]

use super::kit::lateness::before_step;
use super::kit::{CALL, Shape, TestPe, current, job};
use crate::api::lock::{self, LockWord, RemoteWord};
use rushmem_pe::memory::range::symmetric;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread::{sleep, yield_now};
use std::time::Duration;

/// A lock of two words of four bytes: the tail and the node.
#[repr(C, align(8))]
struct TestLock([u32; 2]);

/// Returns a half of the lock on a PE, as the PE of this thread reaches it.
fn half(remote: &RemoteWord<TestLock>, index: usize) -> &'static AtomicU32 {
    let word = remote.word.cast::<u8>();
    let job = current().job();
    let range = symmetric(job, CALL, "lock", word, size_of::<TestLock>());
    let on = range.on(rushmem_transport::Pe(remote.pe as u32));
    let half = on
        .expect("all memory is mapped")
        .cast::<u32>()
        .wrapping_add(index);
    // SAFETY: the word is in the heap of that PE, which is mapped until the thread ends, and is
    // only accessed by atomic operations.
    unsafe { AtomicU32::from_ptr(half) }
}

impl LockWord for TestLock {
    const MAX_PES: u32 = i32::MAX as u32;
    const GRANTED: u32 = 1 << 31;

    unsafe fn node(word: *const Self) -> u32 {
        let own = RemoteWord {
            call: CALL,
            word: word.cast_mut(),
            pe: current().job().me.0 as i32,
        };
        half(&own, 1).load(SeqCst)
    }

    unsafe fn clear_node(own: RemoteWord<Self>) {
        half(&own, 1).store(0, SeqCst);
    }

    unsafe fn add_to_node(remote: RemoteWord<Self>, bits: u32) {
        before_step();
        half(&remote, 1).fetch_or(bits, SeqCst);
    }

    unsafe fn swap_tail(home: RemoteWord<Self>, last: u32) -> u32 {
        before_step();
        half(&home, 0).swap(last, SeqCst)
    }

    unsafe fn compare_swap_tail(home: RemoteWord<Self>, cond: u32, last: u32) -> u32 {
        before_step();
        let exchanged = half(&home, 0).compare_exchange(cond, last, SeqCst, SeqCst);
        exchanged.unwrap_or_else(|found| found)
    }
}

/// Returns a lock: its address in the heap of a PE.
fn lock_at(pe: TestPe, index: usize) -> *mut TestLock {
    pe.at(index * size_of::<TestLock>()).cast()
}

pub(super) fn set(pe: TestPe, index: usize) {
    // SAFETY: the heap was zero, and only lock routines change the word.
    unsafe { lock::set(pe, lock_at(pe, index)) }
}

/// Takes a lock if it is free. Returns true if it was.
fn try_set(pe: TestPe, index: usize) -> bool {
    // SAFETY: as in `set`.
    unsafe { lock::test(pe, lock_at(pe, index)) == 0 }
}

pub(super) fn clear(pe: TestPe, index: usize) {
    // SAFETY: as in `set`.
    unsafe { lock::clear(pe, lock_at(pe, index)) }
}

/// Checks that nobody else is where the lock is held. Adds 1 in two steps.
fn critical(inside: &AtomicU32, count: &AtomicU64) {
    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two hold the lock");
    let before = count.load(SeqCst);
    yield_now();
    count.store(before + 1, SeqCst);
    inside.fetch_sub(1, SeqCst);
}

#[test]
fn one_pe_at_a_time_holds_a_lock() {
    for (n, seed) in [(2, 1), (5, 2), (5, 3), (16, 4)] {
        let inside: Arc<[AtomicU32; 3]> = Arc::default();
        let count: Arc<[AtomicU64; 3]> = Arc::default();
        let taken: Arc<AtomicU64> = Arc::default();
        let counted = count.clone();
        let expected = taken.clone();

        job(&Shape::of(&[n]).late(seed), move |pe| {
            for turn in 0..40 {
                // Locks of different home PEs.
                let index = (turn + pe.me()) % 3;
                if turn % 4 == 3 {
                    if !try_set(pe, index) {
                        continue;
                    }
                } else {
                    set(pe, index);
                }
                taken.fetch_add(1, SeqCst);
                critical(&inside[index], &count[index]);
                clear(pe, index);
            }
            pe.sync_all();
            for index in 0..3 {
                assert!(pe.links().lock_turns.held().is_empty());
                let home = index % pe.n();
                if home == pe.me() {
                    assert_eq!(pe.load(index * 8, 4), [0; 4], "lock {index} is free");
                }
            }
        });
        let all: u64 = counted.iter().map(|count| count.load(SeqCst)).sum();
        assert_eq!(all, expected.load(SeqCst));
    }
}

/// PEs get the lock in the order in which they have entered the queue.
#[test]
fn the_queue_keeps_its_order() {
    let order: Arc<std::sync::Mutex<Vec<usize>>> = Arc::default();
    let gets = order.clone();
    job(&Shape::of(&[5]), move |pe| {
        let tail = |pe: TestPe| {
            let home = RemoteWord {
                call: CALL,
                word: lock_at(pe, 0),
                pe: 0,
            };
            half(&home, 0).load(SeqCst) as usize
        };
        if pe.me() == 0 {
            set(pe, 0);
        }
        pe.sync_all();
        // Each enters once the PE before it has.
        if pe.me() > 0 {
            while tail(pe) != pe.me() {
                sleep(Duration::from_micros(100));
            }
            set(pe, 0);
        } else {
            while tail(pe) != pe.n() {
                sleep(Duration::from_micros(100));
            }
        }
        rushmem_system::lock::lock(&gets).push(pe.me());
        assert!(!try_set(pe, 0), "this PE holds it");
        clear(pe, 0);
    });
    assert_eq!(*rushmem_system::lock::lock(&order), [0, 1, 2, 3, 4]);
}

/// Threads of a PE take turns in using its node, and wait for each other where one holds the lock.
#[test]
fn threads_of_a_pe_take_turns() {
    let inside: Arc<AtomicU32> = Arc::default();
    let count: Arc<AtomicU64> = Arc::default();
    let counted = count.clone();
    job(&Shape::of(&[3]).threads().late(5), move |pe| {
        pe.with_threads(4, |pe, number| {
            for turn in 0..20 {
                if turn % 5 == number {
                    while !try_set(pe, 1) {
                        yield_now();
                    }
                } else {
                    set(pe, 1);
                }
                critical(&inside, &count);
                clear(pe, 1);
            }
        });
        assert!(pe.links().lock_turns.held().is_empty());
    });
    assert_eq!(counted.load(SeqCst), 3 * 4 * 20);
}

/// A test of a lock that another PE holds leaves the PE out of the queue, so that it can wait.
#[test]
fn a_test_in_vain_enters_no_queue() {
    let held: Arc<AtomicU32> = Arc::default();
    job(&Shape::of(&[2]), move |pe| {
        if pe.me() == 0 {
            set(pe, 0);
            held.store(1, SeqCst);
            while held.load(SeqCst) == 1 {
                yield_now();
            }
            clear(pe, 0);
        } else {
            while held.load(SeqCst) == 0 {
                yield_now();
            }
            for _ in 0..3 {
                assert!(!try_set(pe, 0));
            }
            held.store(2, SeqCst);
            set(pe, 0);
            clear(pe, 0);
            assert!(try_set(pe, 0));
            clear(pe, 0);
        }
    });
}
