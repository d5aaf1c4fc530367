//! How a waiter spins, yields and sleeps, and for how long the service thread backs off beside others who poll.
//!
//! A waiter polls without a pause first, since what it waits for is most often a few microseconds away; then it lets others
//! run between its polls; then it sleeps. Where PEs outnumber the CPUs nobody spins, because whoever shall answer may need
//! this CPU. How many polls that are differs with what a poll costs, so each provider passes its own numbers.
//!
//! This file must never know what a poll is, nor what ends a sleep.

use std::thread;
use std::time::{Duration, Instant};

/// How often a waiter polls before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct BackoffLimits {
    /// Polls without a pause.
    pub spins: u32,
    /// Polls after which others may run.
    pub yields: u32,
    /// The same where PEs outnumber the CPUs and nobody spins.
    pub yields_oversubscribed: u32,
}

/// One wait.
pub struct Backoff {
    spins: u32,
    yields: u32,
    polls: u32,
    /// When it slept first.
    asleep: Option<Instant>,
}

/// What a waiter does between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It polls again at once.
    Spin,
    /// It lets others run.
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

    /// A poll found nothing: what to do before the next.
    pub fn pause(&mut self) -> Pause {
        self.polls += 1;
        if self.polls <= self.spins {
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

    /// There was work: it polls on without a pause.
    pub fn renew(&mut self) {
        self.polls = 0;
    }

    /// How long ago the wait slept first, zero when it never did.
    pub fn since_asleep(&self) -> Duration {
        self.asleep.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// It never slept, as far as [`since_asleep`](Backoff::since_asleep) knows.
    pub fn forget_sleep(&mut self) {
        self.asleep = None;
    }
}

impl Pause {
    /// Does so; `sleep` sleeps.
    #[inline]
    pub fn take(self, sleep: impl FnOnce()) {
        match self {
            Pause::Spin => {}
            Pause::Yield => thread::yield_now(),
            Pause::Sleep => sleep(),
        }
    }
}

/// For how long the service thread sleeps while others poll: each end of a sleep takes a CPU from them.
#[derive(Clone, Copy, Debug)]
pub struct ServiceBackoffLimits {
    /// The first sleep, and every sleep beside threads that just pass by.
    pub shortest: Duration,
    /// Others who poll as often as this on average count as waiting, not just as passing by...
    pub often: Duration,
    /// ...if they poll at least so many times within a sleep.
    pub min_polls: u64,
    /// The longest sleep beside threads that wait and poll: how late the service thread may be after many short waits.
    pub longest: Duration,
    /// The longest sleep beside threads that only sleep until something arrives.
    pub longest_asleep: Duration,
}

/// The length of the service thread's sleeps: it grows while others poll.
pub struct ServiceBackoff {
    limits: ServiceBackoffLimits,
    time: Duration,
}

impl ServiceBackoff {
    /// The first.
    pub fn new(limits: ServiceBackoffLimits) -> ServiceBackoff {
        ServiceBackoff { limits, time: limits.shortest }
    }

    /// The next sleep is the shortest one.
    pub fn reset(&mut self) {
        self.time = self.limits.shortest;
    }

    /// The next sleep beside others, who polled so many times during the last one, or of whom some are `asleep`.
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

    /// The next sleep, twice as long as the last one, but not longer than `at_most`.
    pub fn longer(&mut self, at_most: Duration) -> Duration {
        self.time = at_most.min(self.time * 2);
        self.time
    }

    /// The next sleep is not longer than `at_most`.
    pub fn limit(&mut self, at_most: Duration) -> Duration {
        self.time = at_most.min(self.time);
        self.time
    }
}

#[cfg(test)]
mod tests;
