//! How a waiter spins, yields and sleeps, and for how long the service thread backs off while other threads poll.
//!
//! A waiter first polls almost without a pause, since most waits end within a few microseconds; then it yields after each poll;
//! then it sleeps. When PEs outnumber the CPUs it does not spin, because the peer may need this CPU to answer. Polls of different
//! networks differ in cost, so each provider passes its own numbers.
//!
//! This file must never know what a poll is, nor what ends a sleep.

use std::thread;
use std::time::{Duration, Instant};

/// After so many polls without a pause a waiter yields once: it costs nothing if nobody else wants the CPU, and whoever shall
/// answer may share it with processes of which this PE does not know.
const SPINS_PER_YIELD: u32 = 128;

/// How often a waiter polls before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct BackoffLimits {
    /// Polls without a pause, but for a yield now and then.
    pub spins: u32,
    /// Polls followed by a yield.
    pub yields: u32,
    /// The same when PEs outnumber the CPUs; then there are no polls without a pause.
    pub yields_oversubscribed: u32,
}

/// One wait.
pub struct Backoff {
    spins: u32,
    yields: u32,
    polls: u32,
    /// The time of its first sleep.
    asleep: Option<Instant>,
}

/// What a waiter does between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It polls again at once.
    Spin,
    /// It yields the CPU.
    Yield,
    /// It sleeps until something arrives.
    Sleep,
}

impl Backoff {
    /// A wait that begins.
    #[inline]
    pub fn new(limits: BackoffLimits, oversubscribed: bool) -> Backoff {
        let (spins, yields) = match oversubscribed {
            true => (0, limits.yields_oversubscribed),
            false => (limits.spins, limits.yields),
        };
        Backoff { spins, yields, polls: 0, asleep: None }
    }

    /// What to do after a poll that found nothing.
    pub fn pause(&mut self) -> Pause {
        self.polls += 1;
        if self.polls <= self.spins && !self.polls.is_multiple_of(SPINS_PER_YIELD) {
            Pause::Spin
        } else if self.polls <= self.spins + self.yields {
            Pause::Yield
        } else {
            self.asleep.get_or_insert_with(Instant::now);
            Pause::Sleep
        }
    }

    /// Polls that found nothing since the last [`renew`](Backoff::renew).
    pub fn polls(&self) -> u32 {
        self.polls
    }

    /// A poll found work: the next polls have no pause again.
    pub fn renew(&mut self) {
        self.polls = 0;
    }

    /// The time since the first sleep of the wait; zero if it never slept.
    pub fn since_asleep(&self) -> Duration {
        self.asleep.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Makes [`since_asleep`](Backoff::since_asleep) count from the next sleep.
    pub fn forget_sleep(&mut self) {
        self.asleep = None;
    }
}

impl Pause {
    /// Takes this pause; `sleep` is how to sleep.
    #[inline]
    pub fn take(self, sleep: impl FnOnce()) {
        match self {
            Pause::Spin => {}
            Pause::Yield => thread::yield_now(),
            Pause::Sleep => sleep(),
        }
    }
}

/// How long the service thread sleeps while other threads poll: each end of a sleep takes a CPU from them.
#[derive(Clone, Copy, Debug)]
pub struct ServiceBackoffLimits {
    /// The first sleep, and every sleep beside threads that poll rarely.
    pub shortest: Duration,
    /// Other threads count as waiting if they poll once in this time on average...
    pub often: Duration,
    /// ...and at least this many times within a sleep.
    pub min_polls: u64,
    /// The longest sleep beside threads that wait and poll. After many short waits, peers may have to wait this long.
    pub longest: Duration,
    /// The longest sleep beside threads that only sleep until something arrives.
    pub longest_asleep: Duration,
}

/// The length of the service thread's sleeps, which grows while other threads poll.
pub struct ServiceBackoff {
    limits: ServiceBackoffLimits,
    time: Duration,
}

impl ServiceBackoff {
    /// At the shortest sleep.
    pub fn new(limits: ServiceBackoffLimits) -> ServiceBackoff {
        ServiceBackoff { limits, time: limits.shortest }
    }

    /// The next sleep is the shortest one.
    pub fn reset(&mut self) {
        self.time = self.limits.shortest;
    }

    /// The length of the next sleep while others wait: they polled this many times during the last sleep, or some are `asleep`.
    pub fn while_others_poll(&mut self, polls: u64, asleep: bool) -> Duration {
        let ServiceBackoffLimits { shortest, often, min_polls, longest, longest_asleep } =
            self.limits;
        let polls_often = polls >= min_polls
            && often.saturating_mul(u32::try_from(polls).unwrap_or(u32::MAX)) >= self.time;
        self.time = match asleep {
            true if polls == 0 => longest_asleep.min(self.time * 2),
            true => longest.min(self.time * 2),
            false if polls_often => longest.min(self.time * 2),
            false => shortest,
        };
        self.time
    }

    /// The length of the next sleep: twice that of the last one, but not longer than `at_most`.
    pub fn longer(&mut self, at_most: Duration) -> Duration {
        self.time = at_most.min(self.time * 2);
        self.time
    }

    /// The length of the next sleep: that of the last one, but not longer than `at_most`.
    pub fn limit(&mut self, at_most: Duration) -> Duration {
        self.time = at_most.min(self.time);
        self.time
    }
}

#[cfg(test)]
mod tests;
