//! Litmus tests of fence, quiet, waits and signals, with puts and gets as relaxed accesses.

use crate::visibility::{complete, release};
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::thread;

/// Two words of symmetric memory, which are 0 at first.
type Words = Arc<[AtomicU32; 2]>;

/// The word with the data, and the one that says that they are there.
const DATA: usize = 0;
const FLAG: usize = 1;

/// Runs two PEs at the same time. Returns what they return.
fn two_pes<T: Send + 'static>(
    first: impl FnOnce(Words) -> T + Send + 'static,
    second: impl FnOnce(Words) -> T,
) -> [T; 2] {
    let words = Words::default();
    let other = words.clone();
    let first = thread::spawn(move || first(other));
    let of_second = second(words);
    [first.join().expect("the PE returns"), of_second]
}

/// `put data; fence; put flag` against `wait_until flag; read data`.
#[test]
fn a_put_before_a_fence_is_seen_before_one_after_it() {
    loom::model(|| {
        two_pes(
            |words| {
                words[DATA].store(7, Relaxed);
                release();
                words[FLAG].store(1, Relaxed);
            },
            read_data_after_flag,
        );
    });
}

/// `put_signal` against `signal_wait_until`.
#[test]
fn a_signal_is_not_seen_before_its_data() {
    loom::model(|| {
        two_pes(
            |words| {
                words[DATA].store(7, Relaxed);
                release();
                words[FLAG].store(1, Release);
            },
            read_data_after_flag,
        );
    });
}

/// Reads the data if a wait for the flag would end.
fn read_data_after_flag(words: Words) {
    if words[FLAG].load(Acquire) == 1 {
        assert_eq!(words[DATA].load(Relaxed), 7);
    }
}

/// `put x; quiet; get y` against `put y; quiet; get x`: at least one get sees the other PE's put
/// (store buffering).
#[test]
fn a_put_before_a_quiet_is_seen_by_gets_after_it() {
    loom::model(|| {
        let got = two_pes(
            |words| put_and_get(&words, 0, complete),
            |words| put_and_get(&words, 1, complete),
        );
        assert!(got.contains(&1), "both missed");
    });
}

/// Without the quiet, both gets may miss the put. This shows that the test above can fail.
#[test]
#[should_panic(expected = "both missed")]
fn without_a_quiet_both_gets_may_miss() {
    loom::model(|| {
        let got = two_pes(
            |words| put_and_get(&words, 0, release),
            |words| put_and_get(&words, 1, release),
        );
        assert!(got.contains(&1), "both missed");
    });
}

/// Puts to one word, calls `order`, and gets the other word.
fn put_and_get(words: &Words, own: usize, order: fn()) -> u32 {
    words[own].store(1, Relaxed);
    order();
    words[1 - own].load(Relaxed)
}

/// Without the fence, the second put may be seen alone. This shows that the tests of message
/// passing can fail.
#[test]
#[should_panic(expected = "left: 0")]
fn without_a_fence_the_second_put_may_be_seen_alone() {
    loom::model(|| {
        two_pes(
            |words| {
                words[DATA].store(7, Relaxed);
                words[FLAG].store(1, Relaxed);
            },
            read_data_after_flag,
        );
    });
}

/// `put data` against `get data; get data`: the second get is not older than the first.
#[test]
fn a_get_is_not_older_than_the_one_before_it() {
    loom::model(|| {
        two_pes(
            |words| words[DATA].store(7, Relaxed),
            |words| {
                let first = words[DATA].load(Relaxed);
                let second = words[DATA].load(Relaxed);
                assert!(second >= first, "{first}, then {second}");
            },
        );
    });
}
