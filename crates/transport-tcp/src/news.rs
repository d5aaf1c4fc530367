//! Wakes threads of this PE that sleep until something arrives, when another thread took it in: the kernel does not tell
//! them then.
//!
//! It must never know what arrives.

use rushmem_transport::kit::attendance::Attendance;
use rushmem_transport::kit::timer::sleep_on;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What was taken in, as a count.
pub(crate) struct News {
    count: AtomicU64,
    /// Readable while there are sleepers to be woken.
    bell: OwnedFd,
}

impl News {
    pub(crate) fn new() -> io::Result<News> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(News { count: AtomicU64::new(0), bell })
    }

    /// How much news there was so far: a thread that learns it before it looks for what it waits for may
    /// [`sleep`](News::sleep) when it did not find it.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// This thread took in something that another one may wait for.
    pub(crate) fn tell(&self, attendance: &Attendance) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if attendance.any_asleep() {
            self.ring();
        }
    }

    fn ring(&self) {
        // It fails when it was rung often enough already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Sleeps until something arrives at `sockets` or there is more news than `seen`, but not longer than `at_most`.
    pub(crate) fn sleep(
        &self,
        attendance: &Attendance,
        sockets: impl AsFd,
        seen: u64,
        at_most: Duration,
    ) {
        attendance.fall_asleep();
        if self.count() == seen {
            let bell = PollFd::new(&self.bell, PollFlags::IN);
            sleep_on(&mut [PollFd::new(&sockets, PollFlags::IN), bell], at_most);
        }
        // Every sleeper has woken when the bell is silenced.
        if attendance.wake_up() {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            // Who came meanwhile may have been rung for.
            if attendance.any_asleep() {
                self.ring();
            }
        }
    }
}
