//! Unit tests of `lock_turns`.

use super::*;
use rushmem_system::lock::lock;
use rustix::thread::futex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

fn sleep(word: &AtomicU32, value: u32) {
    let _ = futex::wait(word, futex::Flags::empty(), value, None);
}

#[test]
fn a_turn_is_one_thread_s_and_its_own_is_known() {
    assert_eq!(take(8, 8, true, true, sleep), TurnResult::Yours);
    assert!(!set_held(8, true) && set_held(8, false) && set_held(8, true));
    assert_eq!(take(8, 8, true, true, sleep), TurnResult::Own);
    let other = |threads| {
        thread::spawn(move || take(8, 8, threads, false, sleep))
            .join()
            .unwrap()
    };
    assert_eq!(other(true), TurnResult::Taken);
    assert_eq!(other(false), TurnResult::Own);
    let own = HeldLock {
        address: 8,
        nbytes: 8,
    };
    assert!(held().contains(&own));

    assert!(set_held(8, false) && !set_held(8, false));
    pass(8);
    assert_eq!(take(8, 8, true, false, sleep), TurnResult::Yours);
    forget(0..9);
    assert!(!set_held(8, true));
}

#[test]
fn a_turn_that_was_passed_on_is_kept_for_the_next_thread() {
    const LOCK: usize = 1 << 20;
    let between = LockTurn {
        lock: LOCK,
        nbytes: 8,
        owner: None,
        held: false,
        next: 2,
        serving: 1,
    };
    lock(&TURNS).push(between);
    forget(LOCK..LOCK + 8);
    lock(&TURNS)
        .iter_mut()
        .find(|turn| turn.lock == LOCK)
        .expect("kept")
        .owner = Some(0);
    forget(LOCK..LOCK + 8);
    assert!(lock(&TURNS).iter().all(|turn| turn.lock != LOCK));
}

#[test]
fn threads_are_served_in_the_order_of_their_calls() {
    const LOCK: usize = 16;
    static SERVED: AtomicUsize = AtomicUsize::new(0);
    let queued = || {
        lock(&TURNS)
            .iter()
            .find(|turn| turn.lock == LOCK)
            .unwrap()
            .next
    };
    assert_eq!(take(LOCK, 8, true, true, sleep), TurnResult::Yours);
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let thread = thread::spawn(move || {
                assert_eq!(take(LOCK, 8, true, true, sleep), TurnResult::Yours);
                assert_eq!(SERVED.fetch_add(1, SeqCst), i);
                pass(LOCK);
            });
            while queued() != i as u64 + 2 {
                thread::yield_now();
            }
            thread
        })
        .collect();
    pass(LOCK);
    // This thread queues behind the others, although it has had the first turn.
    assert_eq!(take(LOCK, 8, true, true, sleep), TurnResult::Yours);
    assert_eq!(SERVED.load(SeqCst), 8);
    pass(LOCK);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert!(!set_held(LOCK, true));
}
