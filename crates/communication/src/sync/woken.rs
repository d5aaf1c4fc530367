//! How a thread waits for the waker that it has given to a future.

use crate::links;
use crate::net::{flags, network};
use crate::sync::waits::polled;
use crate::sync::word_tasks;
use rushmem_pe::call::thread;
use rushmem_transport::progress::backoff::{Backoff, Pause};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The waker was not called since the last wait.
const UNWOKEN: u32 = 0;
/// The waker was called.
const WOKEN: u32 = 1;
/// The thread sleeps, or is about to.
const SLEEPS: u32 = 2;

/// Whether the waker of one thread was called: one of the values above, also the futex on which the
/// thread sleeps. [`wake`](Woken::wake) stores with release order what [`take`](Woken::take) swaps
/// out with acquire order, so that the thread sees what the caller of the waker has done before.
#[derive(Debug, Default)]
pub struct Woken(AtomicU32);

impl Woken {
    /// Records that the waker was called, and wakes the thread if it sleeps. Any thread calls this.
    pub fn wake(&self) {
        if self.0.swap(WOKEN, Ordering::Release) == SLEEPS {
            flags::wake(&self.0);
        }
    }

    /// Returns true if the waker was called since this function has last returned true.
    pub fn take(&self) -> bool {
        self.0.swap(UNWOKEN, Ordering::Acquire) == WOKEN
    }

    /// Waits until [`take`](Self::take) returns true. At first makes progress on the network, if
    /// one is open, and looks at the words for which tasks wait, since the future may await these;
    /// later sleeps, while threads of the library do that.
    pub fn wait(&self) {
        // A future may be awaited before the first init.
        let links = links::known();
        let is_oversubscribed = links.is_some_and(|links| links.job.is_oversubscribed);
        // A thread that carries out a collective needs the CPU.
        let another_needs_cpu = thread::has_requests() || is_oversubscribed;
        let mut backoff = Backoff::new(polled(network::of_process()), another_needs_cpu);

        let mut worked = false;
        while !self.take() {
            worked = match backoff.pause(worked) {
                Pause::Spin | Pause::Yield => {
                    if let Some(links) = links {
                        links.word_tasks.look();
                    }
                    network::of_process().progress_if_open()
                }
                Pause::Sleep => {
                    if let Some(links) = links {
                        word_tasks::leave_to_thread(links);
                    }
                    network::of_process().stop_polling_if_open();
                    self.sleep();
                    false
                }
            };
        }
    }

    fn sleep(&self) {
        // Relaxed: it publishes nothing, and the swap in `take` acquires what the waker has done.
        let announced =
            self.0
                .compare_exchange(UNWOKEN, SLEEPS, Ordering::Relaxed, Ordering::Relaxed);
        if announced.is_ok() {
            // Every error is an end of the sleep, after which the caller looks again.
            let _ = futex::wait(&self.0, futex::Flags::empty(), SLEEPS, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_call_before_or_during_the_wait_ends_it_and_no_other() {
        let woken = Arc::new(Woken::default());
        woken.wake();
        woken.wait();
        assert!(!woken.take());

        let other = Arc::clone(&woken);
        let waker = std::thread::spawn(move || {
            while other.0.load(Ordering::Relaxed) != SLEEPS {
                std::thread::sleep(Duration::from_micros(100));
            }
            other.wake();
        });
        woken.wait();
        assert!(!woken.take());
        waker.join().expect("it does not panic");
    }
}
