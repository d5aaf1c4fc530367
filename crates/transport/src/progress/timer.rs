//! Timers with a descriptor, and sleeps on descriptors.

use rushmem_system::descriptors::made_by;
use rustix::event::{PollFd, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A timer whose descriptor is readable from the time at which it rings until it is silenced.
pub struct Timer(OwnedFd);

impl Timer {
    /// Returns a timer that is not set.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags);
        made_by("timerfd_create", timer).map(Timer)
    }

    /// Sets the timer to ring once after this time, which replaces an earlier setting. A timer that
    /// has rung becomes unreadable until then. Zero would stop the timer.
    pub fn ring_after(&self, time: Duration) {
        let setting = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(time),
        };
        // This fails only for an invalid time.
        let _ = timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &setting);
    }

    /// Makes the timer ring at once.
    pub fn ring(&self) {
        // The shortest time that is not zero.
        self.ring_after(Duration::from_nanos(1));
    }

    /// Makes the descriptor unreadable until the timer rings again.
    pub fn silence(&self) {
        // This fails if the timer has not rung, or was set again meanwhile. Then the descriptor is
        // unreadable already.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until one of the descriptors is ready, for `at_most` at the longest. A signal also ends
/// the sleep; the caller checks afterwards what there is to do.
pub fn sleep_on(fds: &mut [PollFd<'_>], at_most: Duration) {
    // An error, such as that of a signal, is a sleep that has ended early.
    let _ = poll(fds, Some(&timespec(at_most)));
}

/// Returns a duration in the form that system calls take.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}
