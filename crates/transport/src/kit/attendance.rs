//! Who lets the network progress: the threads of a PE that wait in the library, or else the service thread.
//!
//! Threads that wait poll by themselves, which is fastest, and waking the service thread for every message would only
//! disturb them. While they poll it backs off: it sleeps on its timer alone, for longer and longer. When they sleep elsewhere
//! they hand over to it. What is left unfinished when a call returns is attended to by whoever polls next, or by the service
//! thread soon; nobody sets the timer while the service thread will poll by itself.
//!
//! This file must never know what progress is, nor what else ends a sleep of the service thread.

use super::timer::{Timer, sleep_on};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

/// What the threads that wait and the service thread know of each other.
pub struct Attendance {
    /// Wakes the service thread.
    timer: Timer,
    /// Counts the polls of threads that wait: as long as it moves, the service thread need not poll.
    polls: AtomicU64,
    /// How many threads sleep until something arrives for them.
    sleepers: AtomicU32,
    /// Whoever polled so far sleeps elsewhere.
    handed_over: AtomicBool,
    /// The service thread sleeps on its timer alone.
    backed_off: AtomicBool,
    /// The service thread will attend to what was left unfinished by itself, or the timer will wake it.
    attended: AtomicBool,
    /// The service thread is to end.
    closing: AtomicBool,
}

/// For threads that wait, and for calls that leave something unfinished.
impl Attendance {
    /// Of a service thread that has not started.
    ///
    /// # Errors
    /// When the kernel refuses a timer.
    pub fn new() -> io::Result<Attendance> {
        Ok(Attendance {
            timer: Timer::new()?,
            polls: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            handed_over: AtomicBool::new(false),
            backed_off: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        })
    }

    /// This thread, which waits, polls.
    #[inline]
    pub fn polled(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// This thread sleeps until something arrives for it.
    pub fn fall_asleep(&self) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
    }

    /// This thread, which slept, woke up; whether it was the last that slept.
    pub fn wake_up(&self) -> bool {
        self.sleepers.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Whether threads sleep until something arrives for them.
    pub fn any_asleep(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0
    }

    /// This thread polls no more for now: the service thread need not wait for its absence to show.
    pub fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Relaxed);
        // Either this thread sees that the service thread backs off, or that thread sees that it should not.
        fence(Ordering::SeqCst);
        if self.backed_off.load(Ordering::Relaxed) {
            self.timer.ring();
        }
    }

    /// Something was left unfinished, and added where the service thread finds it: it attends to that after so long at the
    /// latest.
    pub fn call_soon(&self, within: Duration) {
        // Either this thread sees that nobody attends, or the service thread sees what was added.
        fence(Ordering::SeqCst);
        if !self.attended.load(Ordering::Relaxed) {
            self.attended.store(true, Ordering::Relaxed);
            self.timer.ring_after(within);
        }
    }
}

/// For the service thread.
impl Attendance {
    /// What ends its sleeps early.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Whether it is to end.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// How many polls of others there were so far.
    pub fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Whether it may [`back_off`](Attendance::back_off) for a while: not when it was handed over to.
    pub fn may_back_off(&self) -> bool {
        self.backed_off.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let may = !self.handed_over.swap(false, Ordering::Relaxed);
        if !may {
            self.backed_off.store(false, Ordering::Relaxed);
        }
        may
    }

    /// Sleeps until the timer rings, but not longer than `at_most`; afterwards it serves again.
    pub fn back_off(&self, at_most: Duration) {
        self.sleep(&mut [PollFd::new(&self.timer, PollFlags::IN)], at_most);
        self.backed_off.store(false, Ordering::Relaxed);
    }

    /// Sleeps until one of the descriptors is ready, of which the first is the timer's, but not longer than `at_most`.
    pub fn sleep(&self, fds: &mut [PollFd<'_>], at_most: Duration) {
        sleep_on(fds, at_most);
        if fds.first().is_some_and(|timer| !timer.revents().is_empty()) {
            self.timer.silence();
        }
    }

    /// It will attend to what is left unfinished soon, whatever happens.
    pub fn attend(&self) {
        self.attended.store(true, Ordering::Relaxed);
    }

    /// It will sleep until something happens, and attends to what was left unfinished once more after this call. Whoever
    /// leaves more unfinished sets the timer.
    pub fn stop_attending(&self) {
        self.attended.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends it.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.timer.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings(attendance: &Attendance, within: Duration) -> bool {
        let mut fds = [PollFd::new(attendance.timer(), PollFlags::IN)];
        sleep_on(&mut fds, within);
        let rung = !fds[0].revents().is_empty();
        attendance.timer().silence();
        rung
    }

    #[test]
    fn whoever_hands_over_ends_a_sleep_or_prevents_one() {
        let attendance = Attendance::new().expect("a timer");
        attendance.hand_over();
        assert!(!rings(&attendance, Duration::ZERO), "it has not backed off");
        assert!(!attendance.may_back_off() && attendance.may_back_off());
        attendance.hand_over();
        assert!(rings(&attendance, Duration::from_secs(10)));
    }

    #[test]
    fn the_timer_is_set_where_nobody_attends() {
        let attendance = Attendance::new().expect("a timer");
        attendance.attend();
        attendance.call_soon(Duration::from_nanos(1));
        assert!(!rings(&attendance, Duration::from_millis(1)));
        attendance.stop_attending();
        attendance.call_soon(Duration::from_nanos(1));
        assert!(rings(&attendance, Duration::from_secs(10)));
    }
}
