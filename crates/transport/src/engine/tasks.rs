//! The tasks that await the completion of what an origin has issued. The thread that finds the
//! operations complete wakes them: a call, a thread that waits, or the service thread.
//!
//! A waker may own the memory of an operation whose caller does not wait any more. It is dropped
//! only when the network does not access that memory.

use super::origin::Origin;
use super::wire::{Wire, WireNetwork};
use crate::Error;
use std::task::Waker;

impl<W: Wire> Origin<W> {
    /// Returns true if all operations are complete, as [`is_quiet`](Self::is_quiet). Otherwise
    /// wakes the task once when they are, or when a PE was lost.
    pub(super) fn when_quiet(&mut self, task: &Waker) -> Result<bool, Error> {
        if self.is_quiet()? {
            return Ok(true);
        }

        if !self.tasks.iter().any(|known| known.will_wake(task)) {
            self.tasks.push(task.clone());
            self.network.local().state.add_task();
        }
        Ok(false)
    }

    /// Returns the tasks to wake if the operations are complete or a PE was lost, otherwise none.
    /// The caller releases the lock of the origin first, since a waker may call anything. If
    /// `begins`, begins to complete the operations.
    pub(super) fn tasks_to_wake(&mut self, begins: bool) -> Vec<Waker> {
        if self.tasks.is_empty() {
            return Vec::new();
        }

        let is_quiet = if begins {
            self.is_quiet()
        } else {
            Ok(self.is_complete())
        };
        match is_quiet {
            Ok(false) => Vec::new(),
            Ok(true) => self.take_tasks(),
            // The network may access memory of callers until the next call, which reports the loss.
            Err(_) => self.tasks.clone(),
        }
    }

    /// Takes all tasks. The network must not access memory of callers any more.
    pub(super) fn take_tasks(&mut self) -> Vec<Waker> {
        let tasks = std::mem::take(&mut self.tasks);
        self.network.local().state.remove_tasks(tasks.len());
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TestWire, left_unfinished, origin};
    use super::super::wire::PolledUntil;
    use super::super::{Issuer, Issuers};
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
}
