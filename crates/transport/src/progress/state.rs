//! The state that threads that wait in the library share with the service thread.
//!
//! Threads that wait count their polls here, so that the service thread backs off while they poll.
//! A call that leaves something unfinished requests a flush. The service thread makes it after
//! [`FLUSH_DELAY`], or when it wakes anyway, unless a thread polls before.

use super::backoff::{Backoff, FLUSH_DELAY, Polled, WaitLimits};
use super::events::{AwaitedWord, Events, SleepOn};
use super::timer::{Timer, sleep_on};
use super::wakeup::Wakeup;
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The state of the threads that make progress on a PE's network.
pub struct ProgressState {
    limits: &'static WaitLimits,
    cpus_per_pe: u32,
    /// Wakes the service thread.
    timer: Timer,
    wakeup: Wakeup,

    // The accesses to the following atomics are relaxed: they publish no other data, and a thread
    // that reads an old value decides differently for one turn. Where a thread must not miss a
    // change, it uses `wakeup` or the timer besides.
    /// The number of polls of threads that wait. While it grows, the service thread need not poll.
    polls: AtomicU64,
    /// The number of threads in waits or in long calls. A thread that waits within a long call
    /// counts twice.
    waiters: AtomicU32,
    /// The number of waits that have begun and not ended.
    waits: AtomicU32,
    /// The number of tasks that await the completion of operations. A poll that misses a new one
    /// leaves it to the next poll of unfinished operations, at the latest by the service thread.
    tasks: AtomicUsize,
    /// A thread stopped polling and sleeps elsewhere, perhaps on a word whose change wakes no
    /// thread.
    sleeps_elsewhere: AtomicBool,
    /// The service thread should end. The thread that sets this joins it, which orders the rest.
    closing: AtomicBool,

    events: Events,

    // For statistics.
    sleeps: AtomicU64,
    service_sleeps: AtomicU64,
    retries: AtomicU64,
    most_in_flight: AtomicU64,
}

/// For threads that wait, and for calls that leave something unfinished.
impl ProgressState {
    /// Returns the state before the service thread starts; `cpus_per_pe` is 0 if oversubscribed.
    ///
    /// # Errors
    /// If the kernel refuses a timer.
    pub fn new(limits: &'static WaitLimits, cpus_per_pe: u32) -> io::Result<ProgressState> {
        Ok(ProgressState {
            limits,
            cpus_per_pe,
            timer: Timer::new()?,
            wakeup: Wakeup::default(),
            polls: AtomicU64::new(0),
            waiters: AtomicU32::new(0),
            waits: AtomicU32::new(0),
            events: Events::new()?,
            tasks: AtomicUsize::new(0),
            sleeps_elsewhere: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            sleeps: AtomicU64::new(0),
            service_sleeps: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            most_in_flight: AtomicU64::new(0),
        })
    }

    /// Returns how the provider's threads wait.
    pub fn limits(&self) -> &'static WaitLimits {
        self.limits
    }

    /// Returns true if PEs outnumber the CPUs.
    pub fn oversubscribed(&self) -> bool {
        self.cpus_per_pe == 0
    }

    /// Counts a poll of the calling thread, which waits.
    #[inline]
    pub fn count_poll(&self) {
        self.add_polls(1);
    }

    /// Counts a poll of the calling thread as `n` polls, because its work took as long as `n` polls
    /// that find nothing.
    #[inline]
    pub fn add_polls(&self, n: u64) {
        self.polls.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts the calling thread as waiting until [`leave_wait`](ProgressState::leave_wait),
    /// however long a poll takes.
    pub fn enter_wait(&self) {
        self.waiters.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends what [`enter_wait`](ProgressState::enter_wait) began.
    pub fn leave_wait(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Begins a wait, which ends with [`end_wait`](ProgressState::end_wait). The wait does not spin
    /// if at least as many other threads wait as the PE has CPUs, since the peer may need a CPU.
    pub fn begin_wait(&self) -> Backoff {
        self.enter_wait();
        let others = self.waits.fetch_add(1, Ordering::Relaxed);
        Backoff::new(Polled::Network, others >= self.cpus_per_pe)
    }

    /// Ends a wait. After a long wait, wakes the service thread, which may have begun a longer
    /// sleep than usual while the waiting thread slept.
    pub fn end_wait(&self, backoff: &Backoff) {
        self.stop_watching();
        self.waits.fetch_sub(1, Ordering::Relaxed);
        self.leave_wait();

        if backoff.has_slept_for_long() {
            self.stop_polling();
        }
    }

    /// Records that this thread received something for which another one may wait.
    pub fn record_event(&self) {
        self.events.record();
    }

    /// Wakes threads whose awaited words have changed, also without a recorded event.
    pub fn wake_for_words(&self) {
        self.events.wake_concerned();
    }

    /// Has another thread that sleeps watch the network, if none does: the calling one waits no
    /// longer.
    pub fn stop_watching(&self) {
        self.events.hand_over();
    }

    /// Lets the calling thread, which waits, sleep for `at_most` at the longest, until a descriptor
    /// is ready or one of the `awaited` words has changed. If it names no words, any recorded event
    /// ends the sleep, also one since the thread's last sleep. Returns true if a descriptor is
    /// ready. At the end of its wait, the thread calls
    /// [`stop_watching`](ProgressState::stop_watching).
    pub fn sleep_until_event(
        &self,
        on: SleepOn<'_>,
        awaited: &[AwaitedWord],
        at_most: Duration,
    ) -> bool {
        self.count_sleep();
        self.events.sleep(on, awaited, at_most)
    }

    /// Counts a sleep of the calling thread, which waits.
    pub fn count_sleep(&self) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Updates the maximum number of operations in flight at the start of a wait.
    pub(super) fn count_in_flight(&self, n: u64) {
        self.most_in_flight.fetch_max(n, Ordering::Relaxed);
    }

    /// Counts an operation that has found no room in a queue or a window, and waits for some.
    pub fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if threads sleep until an event of their network. The service thread leaves
    /// arriving data to them.
    pub fn any_sleeping(&self) -> bool {
        self.events.any_sleeping()
    }

    /// Records that the calling thread stops polling: the service thread takes over at once, rather
    /// than after its current sleep.
    pub fn stop_polling(&self) {
        self.wakeup.stop_polling(|| self.timer.ring());
    }

    /// Records that the calling thread stops polling, and sleeps elsewhere.
    pub fn sleep_elsewhere(&self) {
        self.sleeps_elsewhere.store(true, Ordering::Relaxed);
        self.stop_polling();
        if self.limits.wakes_service {
            self.wake();
        }
    }

    /// Returns true if a thread sleeps elsewhere since a thread that waits last polled.
    pub fn any_elsewhere(&self) -> bool {
        self.sleeps_elsewhere.load(Ordering::Relaxed)
    }

    /// Records that the calling thread, which waits, polls.
    pub fn return_to_polling(&self) {
        // Each poll calls this. The flag is seldom set, and a load lets all CPUs keep its cache
        // line.
        if self.any_elsewhere() {
            self.sleeps_elsewhere.store(false, Ordering::Relaxed);
        }
    }

    /// Requests a flush after [`FLUSH_DELAY`], unless the service thread is to flush soon anyway.
    /// The caller has already added its unfinished operations to a list that the flush reads.
    pub fn request_flush(&self) {
        self.wakeup.request(|| self.timer.ring_after(FLUSH_DELAY));
    }

    /// Counts a task that awaits the completion of operations.
    pub(crate) fn add_task(&self) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that `n` tasks do not await the completion of operations any more.
    pub(crate) fn remove_tasks(&self, n: usize) {
        self.tasks.fetch_sub(n, Ordering::Relaxed);
    }

    /// Returns true if a task awaits the completion of operations.
    #[inline]
    pub(crate) fn any_tasks(&self) -> bool {
        self.tasks.load(Ordering::Relaxed) > 0
    }

    /// Wakes the service thread.
    pub fn wake(&self) {
        self.timer.ring();
    }

    /// Returns the number of polls by threads that wait.
    pub fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Returns what was counted so far.
    pub fn activity(&self) -> NetworkActivity {
        NetworkActivity {
            polls: self.polls(),
            sleeps: self.sleeps.load(Ordering::Relaxed),
            service_sleeps: self.service_sleeps.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            most_in_flight: self.most_in_flight.load(Ordering::Relaxed),
        }
    }
}

/// For the service thread.
impl ProgressState {
    /// Returns true if the service thread should end.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Returns true if another thread is in a wait.
    pub(crate) fn any_waiting(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Returns the timer of the service thread. Providers also use its descriptor to check whether
    /// the process may open another one.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Sleeps on the timer and these descriptors, for `at_most` at the longest. Returns true if one
    /// of them is ready.
    pub(crate) fn sleep(&self, descriptors: &[BorrowedFd<'_>], at_most: Duration) -> bool {
        self.service_sleeps.fetch_add(1, Ordering::Relaxed);

        let mut fds = Vec::with_capacity(1 + descriptors.len());
        fds.push(PollFd::new(&self.timer, PollFlags::IN));
        for &descriptor in descriptors {
            fds.push(PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        }
        sleep_on(&mut fds, at_most);

        let has_rung = !fds[0].revents().is_empty();
        if has_rung {
            self.timer.silence();
        }
        fds.iter().any(|fd| !fd.revents().is_empty())
    }

    /// Makes the service thread end.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        // After the store: the timer stays readable until the service thread has returned from its
        // sleep, or from the next one. The thread then checks the flag.
        self.timer.ring();
    }
}

/// True if each wait counts the operations in flight at its start, which takes time. The accesses
/// are relaxed: the flag is set while the job starts, and a wait that misses it is not counted.
static COUNTS_IN_FLIGHT: AtomicBool = AtomicBool::new(false);

/// Makes waits count operations in flight from now on, for `NetworkActivity::most_in_flight`.
pub fn count_operations_in_flight() {
    COUNTS_IN_FLIGHT.store(true, Ordering::Relaxed);
}

#[inline]
pub(super) fn counts_in_flight() -> bool {
    COUNTS_IN_FLIGHT.load(Ordering::Relaxed)
}

/// Counts since the transport was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkActivity {
    /// Polls of threads that wait. A poll whose work takes as long as several that find nothing
    /// counts as several.
    pub polls: u64,
    /// Sleeps of threads that wait.
    pub sleeps: u64,
    /// Sleeps of the service thread.
    pub service_sleeps: u64,
    /// Operations that found no room in a queue or a window, and waited for some.
    pub retries: u64,
    /// The most operations in flight when a wait began, of one context or of several that share an
    /// endpoint; 0 unless [`count_operations_in_flight`] was called.
    pub most_in_flight: u64,
}

impl NetworkActivity {
    /// Returns the counts by their names.
    pub fn by_name(self) -> [(&'static str, u64); 5] {
        let NetworkActivity {
            polls,
            sleeps,
            service_sleeps,
            retries,
            most_in_flight,
        } = self;
        [
            ("polls", polls),
            ("sleeps", sleeps),
            ("service_sleeps", service_sleeps),
            ("retries", retries),
            ("most_in_flight", most_in_flight),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::backoff::Pause;
    use super::*;

    static LIMITS: WaitLimits = WaitLimits::for_tests();

    /// Returns true if the timer rings within this time, and silences it.
    fn rings(state: &ProgressState, within: Duration) -> bool {
        let mut fds = [PollFd::new(state.timer(), PollFlags::IN)];
        sleep_on(&mut fds, within);

        let has_rung = !fds[0].revents().is_empty();
        state.timer().silence();
        has_rung
    }

    #[test]
    fn no_more_threads_spin_than_there_are_cpus() {
        let state = ProgressState::new(&LIMITS, 2).expect("a timer");
        // A long call counts as a waiter, but not as a wait, which may begin within the call.
        state.enter_wait();

        let mut first = state.begin_wait();
        let mut second = state.begin_wait();
        let mut third = state.begin_wait();
        assert_eq!(first.pause(false), Pause::Spin);
        assert_eq!(second.pause(false), Pause::Spin);
        assert_ne!(third.pause(false), Pause::Spin);

        state.end_wait(&first);
        let mut fourth = state.begin_wait();
        assert_ne!(fourth.pause(false), Pause::Spin, "two others wait");

        let oversubscribed = ProgressState::new(&LIMITS, 0).expect("a timer");
        let mut alone = oversubscribed.begin_wait();
        assert_ne!(alone.pause(false), Pause::Spin);
    }

    #[test]
    fn a_thread_that_stops_polling_ends_a_sleep_or_prevents_one() {
        let state = ProgressState::new(&LIMITS, 1).expect("a timer");
        state.stop_polling();
        assert!(!rings(&state, Duration::ZERO), "it has not backed off");

        assert!(!state.wakeup().back_off(), "a thread has stopped polling");
        assert!(state.wakeup().back_off());
        state.stop_polling();
        assert!(rings(&state, Duration::from_secs(10)));
    }

    #[test]
    fn a_flush_sets_the_timer_unless_a_wakeup_is_pending() {
        let state = ProgressState::new(&LIMITS, 1).expect("a timer");
        state.wakeup().set_pending();
        state.request_flush();
        assert!(!rings(&state, 20 * FLUSH_DELAY));

        state.wakeup().clear_pending();
        state.request_flush();
        assert!(rings(&state, Duration::from_secs(10)));
    }
}
