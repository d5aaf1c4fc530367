//! Decides at the start of each turn of the service thread whether it polls, or leaves that to
//! other threads and sleeps, and for how long. The code reads no clock and no shared state: the
//! caller passes what it depends on.

use super::backoff::{FLUSH_DELAY, WaitLimits};
use std::time::Duration;

/// The activity of other threads since the last turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingThreads {
    /// The number of polls that they have made.
    pub(crate) polls: u64,
    /// The time since the last turn that found polls.
    pub(crate) unpolled: Duration,
    /// True if some sleep until an event of their network.
    pub(crate) any_sleeping: bool,
    /// True if some are in a wait or in a long call.
    pub(crate) any_waiting: bool,
}

/// The next step of the service thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It serves peers, completes what calls left unfinished, and sleeps until there is an event.
    Poll,
    /// It backs off: completes what calls left unfinished, and sleeps for this time on its timer
    /// alone. Calls can set the timer to request a flush.
    Flush(Duration),
    /// It backs off: sleeps for this time on its timer alone, and flushes only afterwards.
    Sleep(Duration),
}

/// State that the service thread keeps from turn to turn.
pub(crate) struct Schedule {
    limits: &'static WaitLimits,
    is_oversubscribed: bool,
    /// The length of the last sleep while other threads polled; the shortest if none poll or wait.
    pub(crate) sleep: Duration,
    /// Turns in a row in which no other thread has polled.
    unpolled_turns: u32,
}

impl Schedule {
    pub(crate) fn new(limits: &'static WaitLimits, is_oversubscribed: bool) -> Schedule {
        Schedule {
            limits,
            is_oversubscribed,
            sleep: FLUSH_DELAY,
            unpolled_turns: 0,
        }
    }

    /// Returns the next step. Calls `back_off` only if other threads poll: it returns false if one
    /// of them has stopped since. `longest` returns the longest sleep that the driver permits.
    pub(crate) fn next(
        &mut self,
        others: WaitingThreads,
        back_off: impl FnOnce() -> bool,
        longest: impl FnOnce() -> Duration,
    ) -> Step {
        let WaitingThreads {
            polls,
            any_sleeping,
            any_waiting,
            ..
        } = others;

        if polls > 0 {
            self.unpolled_turns = 0;
        } else {
            self.unpolled_turns += 1;
        }

        // Other threads count as polling if they polled since the last turn, or sleep on the
        // network. A thread in a wait or a long call also counts as polling until it has not polled
        // for `max_unpolled` turns.
        let is_in_call = any_waiting && self.unpolled_turns < self.limits.max_unpolled;
        let others_poll = polls > 0 || any_sleeping || is_in_call;

        if !others_poll && !any_waiting {
            self.sleep = FLUSH_DELAY;
        }

        if !others_poll || !back_off() {
            self.unpolled_turns = 0;
            return Step::Poll;
        }

        // A thread that transfers much data polls rarely, so it counts as polling often.
        let polls = if any_waiting && !any_sleeping {
            u64::MAX
        } else {
            polls
        };
        self.lengthen(WaitingThreads { polls, ..others });
        self.sleep = self.sleep.min(longest());

        // Beside threads that poll, nothing needs a flush: they poll what calls left unfinished.
        if any_sleeping && self.limits.flushes_beside_sleepers {
            Step::Flush(self.sleep)
        } else {
            Step::Sleep(self.sleep)
        }
    }

    /// Doubles the next sleep while other threads poll often or sleep, up to
    /// [`LONGEST`](WaitLimits::LONGEST), since the service thread takes a CPU from them whenever it
    /// wakes. If they only sleep, the sleep may last as long as they have not polled: a thread
    /// whose wait was that long wakes the service thread when the wait ends. If they poll rarely,
    /// the next sleep is the shortest one.
    fn lengthen(&mut self, others: WaitingThreads) {
        let WaitingThreads {
            polls,
            unpolled,
            any_sleeping,
            ..
        } = others;

        let doubled = self.sleep * 2;
        self.sleep = if any_sleeping && polls == 0 {
            doubled.min(unpolled.max(WaitLimits::LONGEST))
        } else if any_sleeping || self.are_often(polls) {
            doubled.min(WaitLimits::LONGEST)
        } else {
            FLUSH_DELAY
        };
    }

    /// Returns true if other threads poll often: `polls` times during the last sleep.
    fn are_often(&self, polls: u64) -> bool {
        let limits = self.limits;
        let min_polls = if self.is_oversubscribed {
            1
        } else {
            limits.min_polls
        };
        let longest_interval = if self.is_oversubscribed {
            limits.often_oversubscribed
        } else {
            limits.often
        };

        // The average time between two polls is at most the longest interval if this many such
        // intervals are together at least as long as the sleep.
        let n = u32::try_from(polls).unwrap_or(u32::MAX);
        polls >= min_polls && longest_interval.saturating_mul(n) >= self.sleep
    }
}

#[cfg(test)]
mod tests;
