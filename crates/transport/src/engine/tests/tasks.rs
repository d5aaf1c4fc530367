//! Unit tests of the tasks that await the completion of operations.

use super::super::wire::PolledUntil;
use super::super::{Issuer, Issuers};
use super::{TestWire, left_unfinished, origin};
use rushmem_system::lock::lock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An issuer with a write in flight that ends when [`end`](Self::end) is called, and a task that
/// awaits it.
struct Awaited {
    issuers: Arc<Issuers<TestWire>>,
    issuer: Arc<Issuer<TestWire>>,
    count: Arc<Count>,
}

impl Awaited {
    fn new() -> Awaited {
        let mut origin = origin();

        origin.caps.polled = PolledUntil::Started;
        origin.wire().is_slow = true;

        let (issuers, issuer) = left_unfinished(origin);
        let count = Arc::<Count>::default();
        let task = Waker::from(Arc::clone(&count));

        for _ in 0..2 {
            let mut origin = issuer.lock();
            let done = origin.when_quiet(&task);
            assert_eq!(issuers.release(&issuer, origin, done), Ok(false));
        }

        Awaited {
            issuers,
            issuer,
            count,
        }
    }

    fn end(&self) {
        lock(&self.issuer.origin).wire().is_slow = false;
    }

    fn n_woken(&self) -> u32 {
        self.count.0.load(Ordering::SeqCst)
    }

    fn n_wakers(&self) -> usize {
        Arc::strong_count(&self.count) - 1
    }
}

#[test]
fn a_thread_that_polls_wakes_a_task_once_when_the_operations_are_complete() {
    for finish in [
        Issuers::<TestWire>::finish_in_service,
        Issuers::finish_in_wait,
    ] {
        let awaited = Awaited::new();

        for is_over in [false, true] {
            // The service thread does not poll what a call has used since its last look.
            for _ in 0..3 {
                awaited.issuers.finish_in_service();
                finish(&awaited.issuers);
            }
            assert_eq!(awaited.n_woken(), u32::from(is_over));
            assert_eq!(awaited.n_wakers(), usize::from(!is_over));
            awaited.end();
        }
    }
}

#[test]
fn a_call_that_completes_the_operations_wakes_a_task() {
    let awaited = Awaited::new();
    awaited.end();
    let mut origin = awaited.issuer.lock();
    let done = origin.quiet();

    assert_eq!(
        awaited.issuers.release(&awaited.issuer, origin, done),
        Ok(())
    );
    assert_eq!((awaited.n_woken(), awaited.n_wakers()), (1, 0));
}

#[test]
fn a_task_that_asks_after_the_end_is_not_woken() {
    let awaited = Awaited::new();
    awaited.end();
    let other = Arc::<Count>::default();
    let mut origin = awaited.issuer.lock();

    let done = origin.when_quiet(&Waker::from(Arc::clone(&other)));
    assert_eq!(
        awaited.issuers.release(&awaited.issuer, origin, done),
        Ok(true)
    );
    assert_eq!((awaited.n_woken(), other.0.load(Ordering::SeqCst)), (1, 0));
}
