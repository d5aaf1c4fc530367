//! Wakes threads of this PE that sleep until something arrives, if another thread received it: the
//! kernel does not wake them then.

use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::timer::sleep_on;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The events that threads of this PE recorded.
pub(crate) struct Events {
    count: AtomicU64,
    /// Readable while there are sleepers to be woken.
    bell: OwnedFd,
}

impl Events {
    pub(crate) fn new() -> io::Result<Events> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Events { count: AtomicU64::new(0), bell })
    }

    /// Returns the number of events so far: a thread that reads it before it looks for what it
    /// waits for may [`sleep`](Events::sleep) if it did not find it.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Records that this thread received something for which another one may wait.
    pub(crate) fn record(&self, state: &ProgressState) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if state.any_sleeping() {
            self.ring();
        }
    }

    fn ring(&self) {
        // It fails if it was rung often enough already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Sleeps until something arrives at `sockets` or there are more events than `seen`, for
    /// `at_most` at the longest.
    pub(crate) fn sleep(
        &self,
        state: &ProgressState,
        sockets: impl AsFd,
        seen: u64,
        at_most: Duration,
    ) {
        state.begin_sleep();
        if self.count() == seen {
            let bell = PollFd::new(&self.bell, PollFlags::IN);
            sleep_on(&mut [PollFd::new(&sockets, PollFlags::IN), bell], at_most);
        }
        // Every sleeper has woken when the bell is silenced.
        if state.end_sleep() {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            // It may have been rung for a thread that came meanwhile.
            if state.any_sleeping() {
                self.ring();
            }
        }
    }
}
