//! Waits for words of a PE that its peers change, and the tasks that such words wake.
#![allow(unsafe_code)]

use super::kit::{CALL, Shape, TestPe, job};
use crate::api::wait::{
    Values, WordWait, test, wait_until, wait_until_all, wait_until_any, wait_until_some, wake_when,
};
use rushmem_pe::constants::{SHMEM_CMP_EQ, SHMEM_CMP_GE, SHMEM_CMP_NE};
use rushmem_pe::memory::range::symmetric;
use rushmem_transport::Pe;
use std::ptr::null;
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

/// Each PE writes a word of the next one, which waits for it.
#[test]
fn a_wait_ends_when_its_word_changes() {
    job(&Shape::of(&[4]).late(11), |pe| {
        let next = (pe.me() + 1) % pe.n();
        for turn in 1..=50 {
            if pe.me() == 0 {
                word_on(pe, next, 0).store(turn, SeqCst);
            }
            // SAFETY: the words are in the heap.
            unsafe {
                wait_until(pe, word(pe, 0), SHMEM_CMP_GE, turn);
                assert_eq!(test(pe, word(pe, 0), SHMEM_CMP_EQ, turn), 1);
                assert_eq!(test(pe, word(pe, 0), SHMEM_CMP_NE, turn), 0);
            }
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
            let status: Vec<i32> = (0..n).map(|i| i32::from(i == me)).collect();
            for other in (0..n).filter(|&other| other != me) {
                word_on(pe, other, me).store(turn + me as u64, SeqCst);
            }
            let wanted: Vec<u64> = (0..n as u64).map(|i| turn + i).collect();

            // SAFETY: the words are in the heap, and the arrays have an element for each.
            unsafe {
                let all = Values::Each(wanted.as_ptr());
                match turn % 3 {
                    0 => wait_until_all(pe, word(pe, 0), n, status.as_ptr(), SHMEM_CMP_GE, all),
                    1 => {
                        let mut status = status.clone();
                        let mut found = Vec::new();
                        while found.len() < n - 1 {
                            let status = status.as_ptr();
                            let i = wait_until_any(pe, word(pe, 0), n, status, SHMEM_CMP_GE, all);
                            found.push(i);
                            assert!(i < n && i != me, "word {i} is not in the set");
                            // Excluded from now on.
                            *status.cast_mut().add(i) = 1;
                        }
                        let none = status.as_mut_ptr();
                        let any = wait_until_any(pe, word(pe, 0), n, none, SHMEM_CMP_GE, all);
                        assert_eq!(any, usize::MAX, "the set is empty");
                        found.sort_unstable();
                        assert!(found.iter().copied().eq((0..n).filter(|&i| i != me)));
                    }
                    _ => {
                        let mut status = status.clone();
                        let mut n_found = 0;
                        let mut indices = vec![0; n];
                        while n_found < n - 1 {
                            let found = wait_until_some(
                                pe,
                                word(pe, 0),
                                n,
                                indices.as_mut_ptr(),
                                status.as_ptr(),
                                SHMEM_CMP_GE,
                                all,
                            );
                            assert!(found > 0, "a set that is not empty");
                            for &i in &indices[..found] {
                                assert_eq!(status[i], 0, "word {i} is not in the set");
                                status[i] = 1;
                            }
                            n_found += found;
                        }
                    }
                }
            }
            for i in (0..n).filter(|&i| i != me) {
                let value = word_on(pe, me, i).load(SeqCst);
                assert!(value >= wanted[i], "word {i} in turn {turn}");
            }
            pe.sync_all();
        }

        // SAFETY: as above.
        unsafe {
            let same = Values::Same(1_u64);
            wait_until_all(pe, word(pe, 0), 0, null(), SHMEM_CMP_GE, same);
            let any = wait_until_any(pe, word(pe, 0), 0, null(), SHMEM_CMP_GE, same);
            assert_eq!(any, usize::MAX);
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
            // SAFETY: the words are in the heap.
            unsafe {
                wake_when(pe, &mut task, &waker, word(pe, 1), SHMEM_CMP_GE, turn);
                // Its word never changes.
                wake_when(pe, &mut other, &waker, word(pe, 2), SHMEM_CMP_GE, 1_u64);
            }
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
            // SAFETY: the words are in the heap, which is zero.
            let found = unsafe {
                let zero = Values::Same(0_u64);
                wait_until_any(pe, word(pe, 0), 3, null(), SHMEM_CMP_EQ, zero)
            };
            n_found[found] += 1;
        }
        assert!(n_found.iter().all(|&n| n > 10), "{n_found:?}");
    });
}
