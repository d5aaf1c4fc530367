//! Unit tests of `lock_turns`.

use super::*;
use rustix::io::Errno;
use rustix::thread::{Timespec, futex};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

const LOCK: usize = 8;

impl LockTurns {
    /// Requests a turn of a thread that may wait for it.
    fn take_or_wait(&self) -> TurnResult {
        self.take(LOCK, 8, true, true, sleep)
    }
}

fn sleep(word: &AtomicU32, value: u32) {
    let limit = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    let slept = futex::wait(word, futex::Flags::empty(), value, Some(&limit));
    assert_ne!(slept, Err(Errno::TIMEDOUT), "the turn does not come");
}

#[test]
fn a_turn_is_one_thread_s_and_its_own_is_known() {
    static TURNS: LockTurns = LockTurns::new();
    assert_eq!(TURNS.take_or_wait(), TurnResult::Yours);
    let [same, changed, back] = [true, false, true].map(|held| TURNS.set_held(LOCK, held));
    assert!(!same && changed && back);
    assert_eq!(TURNS.take_or_wait(), TurnResult::Own);

    let other = |threads| {
        thread::spawn(move || TURNS.take(LOCK, 8, threads, false, sleep))
            .join()
            .unwrap()
    };
    assert_eq!(other(true), TurnResult::Taken);
    assert_eq!(other(false), TurnResult::Own);
    let own = HeldLock {
        address: LOCK,
        nbytes: 8,
    };
    assert_eq!(TURNS.held(), [own]);

    assert!(TURNS.set_held(LOCK, false) && !TURNS.set_held(LOCK, false));
    TURNS.pass(LOCK);
    assert_eq!(TURNS.take_or_wait(), TurnResult::Yours);
    TURNS.forget(0..LOCK + 1);
    assert!(!TURNS.set_held(LOCK, true));
}

#[test]
fn a_turn_that_was_passed_on_is_kept_for_the_next_thread() {
    let turns = LockTurns::new();
    turns.turns().push(LockTurn {
        lock: LOCK,
        nbytes: 8,
        owner: None,
        held: false,
        next: 2,
        serving: 1,
    });
    turns.forget(LOCK..LOCK + 8);
    turns.turns()[0].owner = Some(0);
    turns.forget(LOCK..LOCK + 8);
    assert!(turns.turns().is_empty());
}

/// A lock has the same address on two PEs.
#[test]
fn two_pes_use_a_lock_beside_each_other() {
    let [first, second] = [LockTurns::new(), LockTurns::new()];
    assert_eq!(first.take_or_wait(), TurnResult::Yours);
    assert_eq!(second.take_or_wait(), TurnResult::Yours);
    first.pass(LOCK);
    assert!(first.held().is_empty());
    assert_eq!(second.held().len(), 1);
}

#[test]
fn threads_are_served_in_the_order_of_their_calls() {
    static TURNS: LockTurns = LockTurns::new();
    static SERVED: AtomicUsize = AtomicUsize::new(0);
    assert_eq!(TURNS.take_or_wait(), TurnResult::Yours);

    let threads: Vec<_> = (0..8)
        .map(|i| {
            let thread = thread::spawn(move || {
                assert_eq!(TURNS.take_or_wait(), TurnResult::Yours);
                assert_eq!(SERVED.fetch_add(1, SeqCst), i);
                TURNS.pass(LOCK);
            });
            while TURNS.turns()[0].next != i as u64 + 2 {
                thread::yield_now();
            }
            thread
        })
        .collect();

    TURNS.pass(LOCK);
    // This thread queues behind the others, although it has had the first turn.
    assert_eq!(TURNS.take_or_wait(), TurnResult::Yours);
    assert_eq!(SERVED.load(SeqCst), 8);
    TURNS.pass(LOCK);

    for thread in threads {
        thread.join().unwrap();
    }
    assert!(TURNS.turns().is_empty());
}
