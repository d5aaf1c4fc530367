//! Waits for words of a PE that its peers change, and the tasks that such words wake.
#![allow(unsafe_code)]

use super::kit::{CALL, Shape, TestPe, job};
use crate::api::wait::{
    Values, WordWait, test, test_all, wait_until, wait_until_all, wait_until_any, wait_until_some,
    wake_when,
};
use rushmem_pe::constants::{SHMEM_CMP_EQ, SHMEM_CMP_GE, SHMEM_CMP_NE};
use rushmem_pe::memory::range::symmetric;
use rushmem_transport::Pe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::thread::yield_now;

/// Returns the address of a word in the heap of a PE.
fn word(pe: TestPe, index: usize) -> *mut u64 {
    pe.at(index * 8).cast()
}

/// Returns a word of a PE, as another one of its node reaches it.
fn word_on(pe: TestPe, other: usize, index: usize) -> &'static AtomicU64 {
    let range = symmetric(pe.job(), CALL, "a word", word(pe, index).cast(), 8);
    let there = range.on(Pe(other as u32)).expect("it is mapped");
    // SAFETY: the word is in the heap of that PE, which is mapped until the thread ends, and is
    // only accessed by atomic operations.
    unsafe { AtomicU64::from_ptr(there.cast()) }
}

/// Waits for a word of this PE.
fn until(pe: TestPe, index: usize, cmp: i32, value: u64) {
    // SAFETY: the word is in the heap.
    unsafe { wait_until(pe, word(pe, index), cmp, value) }
}

/// Tests a word of this PE.
fn holds(pe: TestPe, index: usize, cmp: i32, value: u64) -> bool {
    // SAFETY: the word is in the heap.
    unsafe { test(pe, word(pe, index), cmp, value) == 1 }
}

/// The first words of this PE, without those that are excluded, and the least values that they are
/// awaited to have.
struct Set {
    pe: TestPe,
    excluded: Vec<i32>,
    wanted: Vec<u64>,
}

impl Set {
    fn values(&self) -> Values<u64> {
        Values::Each(self.wanted.as_ptr())
    }

    fn await_all(&self) {
        let (n, status) = (self.wanted.len(), self.excluded.as_ptr());
        let words = word(self.pe, 0);
        // SAFETY: the words are in the heap, and the arrays have an element for each.
        unsafe { wait_until_all(self.pe, words, n, status, SHMEM_CMP_GE, self.values()) }
    }

    fn test_all(&self) -> bool {
        let (n, status) = (self.wanted.len(), self.excluded.as_ptr());
        let words = word(self.pe, 0);
        // SAFETY: as in `await_all`.
        unsafe { test_all(self.pe, words, n, status, SHMEM_CMP_GE, self.values()) == 1 }
    }

    /// Returns the index of a word; `None` if all are excluded.
    fn await_any(&self) -> Option<usize> {
        let (n, status) = (self.wanted.len(), self.excluded.as_ptr());
        let words = word(self.pe, 0);
        // SAFETY: as in `await_all`.
        let found =
            unsafe { wait_until_any(self.pe, words, n, status, SHMEM_CMP_GE, self.values()) };
        (found < usize::MAX).then_some(found)
    }

    fn await_some(&self) -> Vec<usize> {
        let (n, status) = (self.wanted.len(), self.excluded.as_ptr());
        let (words, cmp) = (word(self.pe, 0), SHMEM_CMP_GE);
        let mut indices = vec![0; n];
        let found = indices.as_mut_ptr();
        // SAFETY: as in `await_all`; there is room for `n` indices.
        let found =
            unsafe { wait_until_some(self.pe, words, n, found, status, cmp, self.values()) };
        indices.truncate(found);
        indices
    }
}

/// Each PE writes a word of the next one, which waits for it.
#[test]
fn a_wait_ends_when_its_word_changes() {
    job(&Shape::of(&[4]).late(11), |pe| {
        let next = (pe.me() + 1) % pe.n();
        for turn in 1..=50 {
            if pe.me() == 0 {
                word_on(pe, next, 0).store(turn, SeqCst);
            }
            until(pe, 0, SHMEM_CMP_GE, turn);
            assert!(holds(pe, 0, SHMEM_CMP_EQ, turn));
            assert!(!holds(pe, 0, SHMEM_CMP_NE, turn));
            if pe.me() > 0 {
                word_on(pe, next, 0).store(turn, SeqCst);
            }
        }
    });
}

/// Wait sets: all of the words, any one, and some of them, without those that are excluded.
#[test]
fn wait_sets_find_the_words_that_have_changed() {
    job(&Shape::of(&[5]).late(12), |pe| {
        let (me, n) = (pe.me(), pe.n());
        // Word `i` of each PE is for PE `i`.
        for turn in 1..=30_u64 {
            for other in (0..n).filter(|&other| other != me) {
                word_on(pe, other, me).store(turn + me as u64, SeqCst);
            }
            let mut set = Set {
                pe,
                excluded: (0..n).map(|i| i32::from(i == me)).collect(),
                wanted: (0..n as u64).map(|i| turn + i).collect(),
            };
            match turn % 3 {
                0 => set.await_all(),
                1 => {
                    for _ in 1..n {
                        let i = set.await_any().expect("a word is left");
                        assert_eq!(set.excluded[i], 0, "word {i} is not in the set");
                        set.excluded[i] = 1;
                    }
                    assert_eq!(set.await_any(), None);
                }
                _ => {
                    let mut n_found = 0;
                    while n_found < n - 1 {
                        let found = set.await_some();
                        assert!(!found.is_empty(), "a set that is not empty");
                        n_found += found.len();
                        for i in found {
                            assert_eq!(set.excluded[i], 0, "word {i} is not in the set");
                            set.excluded[i] = 1;
                        }
                    }
                }
            }
            for i in (0..n).filter(|&i| i != me) {
                let value = word_on(pe, me, i).load(SeqCst);
                assert!(value >= set.wanted[i], "word {i} in turn {turn}");
            }
            pe.sync_all();
        }

        let empty = Set {
            pe,
            excluded: Vec::new(),
            wanted: Vec::new(),
        };
        empty.await_all();
        assert_eq!(empty.await_any(), None);
    });
}

#[test]
fn a_set_needs_each_of_its_words() {
    job(&Shape::of(&[1]), |pe| {
        let set = Set {
            pe,
            excluded: vec![0; 3],
            wanted: vec![1; 3],
        };
        for missing in 0..3 {
            for i in 0..3 {
                word_on(pe, 0, i).store(u64::from(i != missing), SeqCst);
            }
            assert!(!set.test_all(), "word {missing} is 0");
        }
    });
}

/// A task is woken once its word satisfies its condition, by the thread of the library.
#[test]
fn a_word_wakes_its_task() {
    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    job(&Shape::of(&[3]), |pe| {
        let next = (pe.me() + 1) % pe.n();
        for turn in 1..=20 {
            let count = Arc::<Count>::default();
            let waker = Waker::from(count.clone());
            let mut task = WordWait::default();
            let mut other = WordWait::default();
            // SAFETY: the word is in the heap.
            unsafe { wake_when(pe, &mut task, &waker, word(pe, 1), SHMEM_CMP_GE, turn) };
            // SAFETY: the word is in the heap. It never changes.
            unsafe { wake_when(pe, &mut other, &waker, word(pe, 2), SHMEM_CMP_GE, 1_u64) };
            word_on(pe, next, 1).store(turn, SeqCst);
            while count.0.load(SeqCst) == 0 {
                yield_now();
            }
            assert_eq!(count.0.load(SeqCst), 1);
            assert!(word_on(pe, pe.me(), 1).load(SeqCst) >= turn);
            pe.sync_all();
        }
    });
}

/// Words that satisfy the comparison all the time are found in turn.
#[test]
fn no_word_is_passed_over_for_ever() {
    job(&Shape::of(&[1]), |pe| {
        let mut n_found = [0; 3];
        for _ in 0..60 {
            let set = Set {
                pe,
                excluded: vec![0; 3],
                wanted: vec![0; 3],
            };
            let found = set.await_any().expect("all satisfy the comparison");
            n_found[found] += 1;
        }
        assert!(n_found.iter().all(|&n| n > 10), "{n_found:?}");
    });
}
