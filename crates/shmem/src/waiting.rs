//! Waits as futures, whose tasks the library wakes, and [`block_on`], which waits for a future
//! without an executor.

use crate::context::Context;
use crate::job::Shmem;
use crate::pending::Pending;
use crate::threads::{Local, Threads};
use crate::wait::{Awaited, Condition};
use rushmem_runtime::wait::{self, Pauses, Woken, WordWait};
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{self, Poll, Wake, Waker};

impl<C: Threads> Shmem<C> {
    /// Returns a future that is ready when the condition holds, with the value of the element
    /// (`shmem_test`, §9.11.8). Its task is woken when the condition holds: at once if PEs of other
    /// nodes alone can write the element, and up to two milliseconds later if a PE of the node can.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let flag = shmem.boxed(0u32);
    /// flag.on(shmem.next()).write(3);
    /// let seen = shmem::block_on(async { shmem.until(flag.ge(3)).await });
    /// assert_eq!(seen, 3);
    /// ```
    #[doc(alias = "shmem_test")]
    pub fn until<'a, T: Awaited>(&'a self, condition: Condition<'a, T>) -> Until<'a, T, C> {
        Until {
            shmem: self,
            condition,
            registered: WordWait::default(),
        }
    }
}

/// The wait for a condition: the future of [`Shmem::until`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Until<'a, T: Awaited, C: Threads = Local> {
    shmem: &'a Shmem<C>,
    condition: Condition<'a, T>,
    /// What the library looks at for the task.
    registered: WordWait,
}

impl<T: Awaited, C: Threads> Future for Until<'_, T, C> {
    type Output = T::Value;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<T::Value> {
        let Until {
            shmem,
            condition,
            registered,
        } = self.get_mut();

        let mut seen = shmem.test(*condition);
        if seen.is_none() {
            condition.wake(call!("until"), registered, context.waker());
            // The element may have changed before the library has looked at it.
            seen = shmem.test(*condition);
        }

        match seen {
            Some(value) => {
                // The library need not look at the element any more.
                *registered = WordWait::default();
                Poll::Ready(value)
            }
            None => Poll::Pending,
        }
    }
}

// No reference points into an `Until`, so it may be moved while it is polled.
impl<T: Awaited, C: Threads> Unpin for Until<'_, T, C> {}

impl<T: Awaited, C: Threads> fmt::Debug for Until<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Until({:?})", self.condition)
    }
}

impl<C: Threads> Context<'_, C> {
    /// Returns a future of a [`quiet`](Context::quiet). When it is ready, all operations issued on
    /// this context until then are complete (`shmemx_ctx_quiet_test`, an extension of the quiet of
    /// §9.12.2).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let inbox = shmem.array::<u64>(2);
    /// inbox.on(shmem.next()).put(&[1, 2]);
    /// shmem::block_on(shmem.until_quiet());
    /// assert_eq!(inbox.on(shmem.next()).to_vec(), [1, 2]);
    /// ```
    #[doc(alias = "shmemx_quiet_test")]
    #[doc(alias = "shmemx_ctx_quiet_test")]
    pub fn until_quiet(&self) -> Pending<'_, (), C> {
        Pending::quiet(self.handle())
    }
}

/// Waits for a future on this thread, without an executor. The standard has no such routine.
///
/// While the future is pending, the thread first polls the network and awaited elements, as a
/// blocking wait does. Later it sleeps until its waker is called. A future that requests another
/// poll at once is polled immediately at first, later at longer intervals.
///
/// ```
/// # let shmem = shmem::init();
/// let (first, second) = (shmem.boxed(0u32), shmem.boxed(0u32));
/// first.on(shmem.next()).write(3);
/// second.on(shmem.next()).write(5);
/// let sum = async { shmem.until(first.ne(0)).await + shmem.until(second.ne(0)).await };
/// assert_eq!(shmem::block_on(sum), 8);
/// ```
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    let woken = Arc::<ThisThread>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = task::Context::from_waker(&waker);
    let mut pauses = Pauses::begin();

    // This thread looks at awaited elements by itself, so the library's thread need not.
    wait::looking(|| {
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
                return result;
            }

            if woken.0.take() {
                // The poll itself has requested another one. Pauses get longer, since the thread
                // would otherwise use a whole CPU.
                pauses.pause();
            } else {
                woken.0.wait();
                pauses = Pauses::begin();
            }
        }
    })
}

/// The waker of a thread that waits for a future.
#[derive(Default)]
struct ThisThread(Woken);

impl Wake for ThisThread {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_future_is_polled_until_it_is_ready() {
        let mut left = 40;
        let counts = poll_fn(|context| {
            left -= 1;
            context.waker().wake_by_ref();
            if left == 0 {
                Poll::Ready(17)
            } else {
                Poll::Pending
            }
        });
        assert_eq!(block_on(counts), 17);
    }

    #[test]
    fn another_thread_may_wake_it() {
        let said = Arc::new(AtomicBool::new(false));
        let mut speaker = None;
        let heard = poll_fn(|context| {
            if said.load(Ordering::Acquire) {
                return Poll::Ready(());
            }

            if speaker.is_none() {
                let said = Arc::clone(&said);
                let waker = context.waker().clone();
                speaker = Some(thread::spawn(move || {
                    said.store(true, Ordering::Release);
                    waker.wake();
                }));
            }
            Poll::Pending
        });
        block_on(heard);

        let speaker = speaker.expect("it was polled");
        speaker.join().expect("it has said so");
    }
}
