//! Unit tests of the polls of unfinished origins.

use super::super::wire::WireNetwork;
use super::{left_unfinished, origin};
use rushmem_system::lock::lock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The time within which a timer rings on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

/// A call waits for the lock of an origin while the service thread polls that origin, which has
/// more work. The service thread releases the lock after this poll.
#[test]
fn the_service_thread_gives_the_lock_to_a_call_after_one_poll() {
    let mut origin = origin();
    let polls = Arc::new(AtomicU32::new(0));

    let call_waits = Arc::new(AtomicBool::new(false));
    let n_polls = Arc::clone(&polls);
    let waits = Arc::clone(&call_waits);
    // The first poll of the service thread ends once the call waits.
    origin.wire().polled = Some(Box::new(move || {
        n_polls.fetch_add(1, Ordering::SeqCst);
        while !waits.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        true
    }));

    let (issuers, issuer) = left_unfinished(origin);
    thread::scope(|scope| {
        scope.spawn(|| {
            while polls.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let released = issuers.release(&issuer, issuer.lock(), Ok(()));
            released.expect("no loss");
        });

        scope.spawn(|| {
            while issuer.wanted.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            call_waits.store(true, Ordering::SeqCst);
        });

        // The owner has issued a verb since the last look, so the first call does not poll.
        assert!(issuers.finish_in_service());
        issuers.finish_in_service();
        assert_eq!(polls.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn the_service_thread_polls_a_busy_origin_many_times_if_no_call_waits() {
    let mut origin = origin();

    let polls = Arc::new(AtomicU32::new(0));
    let n_polls = Arc::clone(&polls);

    origin.wire().polled = Some(Box::new(move || {
        n_polls.fetch_add(1, Ordering::SeqCst) < 10
    }));
    let (issuers, _) = left_unfinished(origin);

    for _ in 0..2 {
        issuers.finish_in_service();
    }

    assert_eq!(polls.load(Ordering::SeqCst), 11);
}

#[test]
fn a_call_after_the_last_poll_of_the_service_thread_requests_a_flush() {
    let mut origin = origin();
    origin.wire().is_slow = true;
    let (issuers, issuer) = left_unfinished(origin);
    let network = Arc::clone(&lock(&issuer.origin).network);
    let state = &network.local().state;
    assert!(state.sleep(&[], LIMIT), "the first call requests one");

    // The owner has issued a verb since the last look, so the first call does not poll.
    for _ in 0..2 {
        state.wakeup().clear_pending();
        assert!(issuers.finish_in_service(), "the write is in flight");
    }
    let released = issuers.release(&issuer, issuer.lock(), Ok(()));

    released.expect("no loss");
    assert!(state.sleep(&[], LIMIT));
}
