//! Wakes threads of this PE that sleep until something arrives, if another thread received it: the
//! kernel does not wake them then.

use rushmem_transport::progress::state::{ProgressState, sleep_on};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bells that are rung in turn. One that was rung stays readable until all threads that slept on it
/// have run; others sleep on the next ones meanwhile.
const BELLS: usize = 4;

/// The events that threads of this PE recorded.
pub(crate) struct Events {
    count: AtomicU64,
    /// A thread that has seen a number of events sleeps on the bell of this number, which the next
    /// event rings.
    bells: [Bell; BELLS],
}

/// What wakes the threads that have seen the same events.
struct Bell {
    sleepers: AtomicU32,
    /// Readable while there are sleepers to be woken.
    eventfd: OwnedFd,
}

impl Bell {
    fn new() -> io::Result<Bell> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { sleepers: AtomicU32::new(0), eventfd })
    }

    /// Wakes the threads that sleep on it.
    fn ring(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // It fails if it was rung often enough already.
            let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
        }
    }

    /// Ends a sleep. The last one silences the bell.
    fn leave(&self) {
        if self.sleepers.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
            // It may have been rung for a thread that came meanwhile.
            self.ring();
        }
    }
}

impl Events {
    pub(crate) fn new() -> io::Result<Events> {
        let bells = [Bell::new()?, Bell::new()?, Bell::new()?, Bell::new()?];
        Ok(Events { count: AtomicU64::new(0), bells })
    }

    fn bell(&self, seen: u64) -> &Bell {
        &self.bells[seen as usize % BELLS]
    }

    /// Returns the number of events so far: a thread that reads it before it looks for what it
    /// waits for may [`sleep`](Events::sleep) if it did not find it.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Records that this thread received something for which another one may wait.
    pub(crate) fn record(&self) {
        let before = self.count.fetch_add(1, Ordering::SeqCst);
        self.bell(before).ring();
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
        let bell = self.bell(seen);
        state.begin_sleep();
        bell.sleepers.fetch_add(1, Ordering::SeqCst);
        if self.count() == seen {
            let rung = PollFd::new(&bell.eventfd, PollFlags::IN);
            sleep_on(&mut [PollFd::new(&sockets, PollFlags::IN), rung], at_most);
        }
        bell.leave();
        state.end_sleep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::LIMITS;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    #[test]
    fn a_thread_that_was_woken_and_has_not_run_keeps_no_other_awake() {
        let (events, state) = (Events::new(), ProgressState::new(&LIMITS, 1));
        let (events, state) = (events.expect("descriptors"), state.expect("a timer"));
        let (silent, _peer) = UnixStream::pair().expect("sockets");
        // One that sleeps, and is woken by the first event.
        events.bell(0).sleepers.fetch_add(1, Ordering::SeqCst);
        events.record();
        let (at_most, before) = (Duration::from_millis(20), Instant::now());
        events.sleep(&state, &silent, events.count(), at_most);
        assert!(before.elapsed() >= at_most, "there was no event");
        events.sleep(&state, &silent, 0, Duration::MAX);
        events.bell(0).leave();
        assert_eq!(rustix::io::read(&events.bell(0).eventfd, &mut [0; 8]).ok(), None, "silent");
    }
}
