//! Decides who polls the network: the threads of a PE that wait in the library, or else the service thread.
//!
//! Waiting threads poll by themselves, which is fastest; a service thread that woke for every message would only slow them down.
//! While they poll, the service thread backs off: it sleeps on its timer alone, for longer and longer. A waiting thread that
//! is going to sleep elsewhere hands over to it. What a call leaves unfinished is completed by the thread that polls next, or
//! soon by the service thread. For this a call sets the timer, unless the service thread will poll soon anyway.
//!
//! The loop of a service thread is, until [`is_closing`](Attendance::is_closing):
//!
//! 1. If [`polls`](Attendance::polls) has grown or [`any_asleep`](Attendance::any_asleep), and it
//!    [`may_back_off`](Attendance::may_back_off): [`attend`](Attendance::attend), or
//!    [`stop_attending`](Attendance::stop_attending) before a long sleep; then [`back_off`](Attendance::back_off).
//! 2. Otherwise: [`stop_attending`](Attendance::stop_attending), complete what is unfinished, [`sleep`](Attendance::sleep) on the
//!    timer and the descriptors of the network, then serve.
//!
//! This file must never know what a poll does, nor what else ends a sleep of the service thread.

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
    /// How many threads are in waits of which the network knows the end, whose polls may take long.
    waiters: AtomicU32,
    /// How many threads sleep until something arrives for them.
    sleepers: AtomicU32,
    /// A thread that polled so far has handed over to the service thread.
    handed_over: AtomicBool,
    /// The service thread sleeps on its timer alone.
    backed_off: AtomicBool,
    /// Nobody needs to set the timer for unfinished work: the service thread will look at it soon, or the timer is set.
    attended: AtomicBool,
    /// The service thread should end.
    closing: AtomicBool,
}

/// For threads that wait, and for calls that leave something unfinished.
impl Attendance {
    /// A new attendance; the service thread has not started.
    ///
    /// # Errors
    /// When the kernel refuses a timer.
    pub fn new() -> io::Result<Attendance> {
        Ok(Attendance {
            timer: Timer::new()?,
            polls: AtomicU64::new(0),
            waiters: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            handed_over: AtomicBool::new(false),
            backed_off: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        })
    }

    /// The calling thread waits and polls now.
    #[inline]
    pub fn polled(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// The poll of the calling thread found work, which took it as long as so many polls that find nothing.
    #[inline]
    pub fn worked_for(&self, polls: u64) {
        self.polls.fetch_add(polls, Ordering::Relaxed);
    }

    /// The calling thread polls until it calls [`end_wait`](Attendance::end_wait), however long a poll takes.
    pub fn begin_wait(&self) {
        self.waiters.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a wait.
    pub fn end_wait(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// The calling thread will sleep until something arrives for it.
    pub fn fall_asleep(&self) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
    }

    /// The calling thread has slept and woke up. Returns whether it was the last that slept.
    pub fn wake_up(&self) -> bool {
        self.sleepers.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Whether threads sleep until something arrives for them.
    pub fn any_asleep(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0
    }

    /// The calling thread stops polling. Without this the service thread would notice only after its current sleep.
    pub fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Relaxed);
        // Either this thread sees that the service thread backs off, or that thread sees that it should not.
        fence(Ordering::SeqCst);
        if self.backed_off.load(Ordering::Relaxed) {
            self.timer.ring();
        }
    }

    /// The calling thread left something unfinished and has added it where the service thread finds it. The service thread
    /// will look at it within this time.
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
    /// The timer that ends its sleeps early.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Whether it should end.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The number of polls by other threads so far.
    pub fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Whether another thread is in a wait between [`begin_wait`](Attendance::begin_wait) and
    /// [`end_wait`](Attendance::end_wait).
    pub fn any_waiting(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Whether it may [`back_off`](Attendance::back_off) for a while: not if a thread has handed over to it.
    pub fn may_back_off(&self) -> bool {
        self.backed_off.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let may = !self.handed_over.swap(false, Ordering::Relaxed);
        if !may {
            self.backed_off.store(false, Ordering::Relaxed);
        }
        may
    }

    /// Sleeps until the timer rings, for `at_most` at the longest. Comes after [`may_back_off`](Attendance::may_back_off).
    pub fn back_off(&self, at_most: Duration) {
        self.sleep(&mut [PollFd::new(&self.timer, PollFlags::IN)], at_most);
        self.backed_off.store(false, Ordering::Relaxed);
    }

    /// Sleeps until one of the descriptors is ready, for `at_most` at the longest. The first one is that of the timer.
    pub fn sleep(&self, fds: &mut [PollFd<'_>], at_most: Duration) {
        sleep_on(fds, at_most);
        if fds.first().is_some_and(|timer| !timer.revents().is_empty()) {
            self.timer.silence();
        }
    }

    /// Promises that it will look at unfinished work soon. Calls that leave work unfinished do not set the timer.
    pub fn attend(&self) {
        self.attended.store(true, Ordering::Relaxed);
    }

    /// Ends the promise of [`attend`](Attendance::attend). After this call it must look at unfinished work once more before it
    /// sleeps; calls that leave more work set the timer.
    pub fn stop_attending(&self) {
        self.attended.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Tells it to end.
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
