//! Who polls the sockets of this PE: a thread that waits in the library, or else the service thread. And how long a thread
//! polls before it yields and sleeps.
//!
//! Locks: the service is only ever tried, never waited for.

use crate::service::Service;
use crate::shared::{HELD_BACK, Shared};
use rushmem_transport::Error;
use rushmem_transport::kit::attendance::Attendance;
use rushmem_transport::kit::backoff::{
    Backoff, BackoffLimits, ServiceBackoff, ServiceBackoffLimits,
};
use rushmem_transport::kit::lock::{lock, try_lock};
use rustix::event::{PollFd, PollFlags};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A waiter spins for a hundred microseconds or so, since each poll is a system call or two.
const BACKOFF: BackoffLimits = BackoffLimits { spins: 200, yields: 100, yields_oversubscribed: 20 };
/// Longest sleep of a waiter: whatever may end the wait wakes it.
const SLEEP: Duration = Duration::from_millis(10);

/// Every end of a sleep disturbs those who wait by some tens of microseconds where timers are a hypervisor's. Whoever has
/// waited for longer than the longest sleep hands over. Who polls 25 times within the shortest sleep, or a quarter as often in
/// longer ones, waits; others just pass by.
const SERVICE_BACKOFF: ServiceBackoffLimits = ServiceBackoffLimits {
    shortest: HELD_BACK,
    often: Duration::from_micros(8),
    min_polls: 26,
    longest: Duration::from_millis(2),
    longest_asleep: Duration::from_millis(20),
};

/// To take a message and to send the next one takes as long as so many polls that find nothing. Where PEs share CPUs, what takes
/// long is to have one.
const POLLS_PER_MESSAGE: u64 = 8;

/// Where PEs share CPUs, a thread that waits polls only when it has one; a service thread that wakes takes it from all of them.
const SERVICE_BACKOFF_OVERSUBSCRIBED: ServiceBackoffLimits =
    ServiceBackoffLimits { often: Duration::from_micros(100), min_polls: 1, ..SERVICE_BACKOFF };

/// One PE's share in the network, with what serves its peers.
pub(crate) struct Progress {
    pub(crate) shared: Shared,
    service: Mutex<Service>,
}

impl AsRef<Attendance> for Progress {
    fn as_ref(&self) -> &Attendance {
        &self.shared.attendance
    }
}

impl Progress {
    pub(crate) fn new(shared: Shared, service: Service) -> Progress {
        Progress { shared, service: Mutex::new(service) }
    }

    /// Sends what was held back and serves peers, if nobody else does; returns whether there was work.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        let shared = &self.shared;
        shared.attendance.polled();
        shared.send_held_back();
        let worked = try_lock(&self.service).is_some_and(|mut service| service.poll(shared));
        if worked && !shared.oversubscribed {
            shared.attendance.worked_for(POLLS_PER_MESSAGE);
        }
        shared.loss.check().map(|()| worked)
    }

    /// A wait that begins: until its [`end`](Progress::end) this thread polls.
    pub(crate) fn begin(&self) -> Backoff {
        self.shared.attendance.begin_wait();
        Backoff::new(BACKOFF, self.shared.oversubscribed)
    }

    /// Between two polls of a wait, before the first of which there was so much news.
    pub(crate) fn pause(&self, backoff: &mut Backoff, news: u64) {
        backoff.pause().take(|| self.shared.sleep(news, SLEEP));
    }

    /// The wait has ended: after a long one the service thread, which backed off meanwhile, is told that nobody polls.
    pub(crate) fn end(&self, backoff: &Backoff) {
        self.shared.attendance.end_wait();
        if backoff.since_asleep() > SERVICE_BACKOFF.longest {
            self.shared.attendance.hand_over();
        }
    }

    /// Lets nobody in any more.
    pub(crate) fn leave(&self) {
        lock(&self.service).leave();
    }
}

/// The service thread's work: it sleeps in the kernel until a socket has news or the timer rings, or backs off while others poll.
pub(crate) fn run(progress: &Progress) {
    let Progress { shared, service } = progress;
    let attendance = &shared.attendance;
    let mut seen = 0;
    let limits =
        if shared.oversubscribed { SERVICE_BACKOFF_OVERSUBSCRIBED } else { SERVICE_BACKOFF };
    let mut backoff = ServiceBackoff::new(limits);
    let mut round = Instant::now();
    // Somebody was serving, or had the link that has news, when this thread wanted to, and may have lost its CPU over it.
    let mut taken = false;
    while !attendance.is_closing() {
        let all = attendance.polls();
        let polls = all.wrapping_sub(seen);
        seen = all;
        let (asleep, waiting) = (attendance.any_asleep(), attendance.any_waiting());
        if (polls > 0 || asleep || waiting || taken) && attendance.may_back_off() {
            taken = false;
            // Others serve, and whoever waits sends what it held back by itself: this thread leaves its CPU
            // alone for longer and longer. Who sends or receives much data polls rarely, but will soon.
            let polls = if waiting && !asleep { u64::MAX } else { polls };
            let time = backoff.while_others_poll(polls, asleep);
            if asleep {
                attendance.stop_attending();
                shared.send_held_back();
            } else {
                attendance.attend();
            }
            attendance.back_off(time);
            shared.send_held_back();
        } else {
            backoff.reset();
            attendance.stop_attending();
            shared.send_held_back();
            let timer = PollFd::new(attendance.timer(), PollFlags::IN);
            let sockets = PollFd::new(&shared.epoll, PollFlags::IN);
            let mut fds = [timer, sockets];
            attendance.sleep(&mut fds, shared.tuning.round);
            let has_news = !fds[1].revents().is_empty();
            shared.send_held_back();
            if has_news && attendance.polls() == seen {
                taken = !try_lock(service).is_some_and(|mut service| service.poll_all(shared));
            }
        }
        if round.elapsed() >= shared.tuning.round {
            round = Instant::now();
            if let Some(mut service) = try_lock(service) {
                service.look_around(shared);
            }
        }
    }
}
