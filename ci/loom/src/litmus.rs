//! Litmus tests of fence, quiet, waits and signals, with puts and gets as relaxed accesses.

use crate::visibility::{complete, release};
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::thread;

type Words = Arc<[AtomicU32; 2]>;

fn two_pes<A: Send + 'static, B: 'static>(
    one: impl FnOnce(Words) -> A + Send + 'static,
    two: impl FnOnce(Words) -> B,
) -> (A, B) {
    let words: Words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let other = words.clone();
    let one = thread::spawn(move || one(other));
    let two = two(words);
    (one.join().expect("the PE returns"), two)
}

/// `put data; fence; put flag` against `wait_until flag; read data`.
#[test]
fn a_put_before_a_fence_is_seen_before_one_after_it() {
    loom::model(|| {
        two_pes(
            |words| {
                words[0].store(7, Relaxed);
                release();
                words[1].store(1, Relaxed);
            },
            |words| {
                if words[1].load(Acquire) == 1 {
                    assert_eq!(words[0].load(Relaxed), 7);
                }
            },
        );
    });
}

/// `put_signal` against `signal_wait_until`.
#[test]
fn a_signal_is_not_seen_before_its_data() {
    loom::model(|| {
        two_pes(
            |words| {
                words[0].store(7, Relaxed);
                release();
                words[1].store(1, Release);
            },
            |words| {
                if words[1].load(Acquire) == 1 {
                    assert_eq!(words[0].load(Relaxed), 7);
                }
            },
        );
    });
}

/// `put x; quiet; get y` against `put y; quiet; get x`: at least one get sees the other PE's put
/// (store buffering).
#[test]
fn a_put_before_a_quiet_is_seen_by_gets_after_it() {
    loom::model(|| {
        let side = |mine: usize| {
            move |words: Words| {
                words[mine].store(1, Relaxed);
                complete();
                words[1 - mine].load(Relaxed)
            }
        };
        let (one, two) = two_pes(side(0), side(1));
        assert!(one == 1 || two == 1);
    });
}

/// Without the quiet, both gets may miss the put. This shows that the test above can fail.
#[test]
#[should_panic(expected = "both missed")]
fn without_a_quiet_both_gets_may_miss() {
    loom::model(|| {
        let side = |mine: usize| {
            move |words: Words| {
                words[mine].store(1, Relaxed);
                release();
                words[1 - mine].load(Relaxed)
            }
        };
        let (one, two) = two_pes(side(0), side(1));
        assert!(one == 1 || two == 1, "both missed");
    });
}
