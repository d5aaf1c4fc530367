//! The decision of the service thread, at the start of each turn, to poll or to leave that to other
//! threads. It depends on nothing but what it is given.

use super::backoff::{FLUSH_DELAY, WaitLimits};
use std::time::Duration;

/// The activity of other threads since the last turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingThreads {
    /// The number of their polls.
    pub(super) polls: u64,
    /// The time since they last polled, to a turn.
    pub(super) unpolled: Duration,
    /// Some sleep until an event of their network.
    pub(super) sleep: bool,
    /// Some are in a wait or a long call.
    pub(super) wait: bool,
}

/// The next step of the service thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It serves peers, completes what calls left, and sleeps until there is an event.
    Poll,
    /// It completes what calls left, and sleeps for this time on its timer alone.
    Flush(Duration),
    /// It sleeps for this time on its timer alone.
    Sleep(Duration),
}

/// State that the service thread keeps from turn to turn.
pub(super) struct Schedule {
    limits: &'static WaitLimits,
    oversubscribed: bool,
    /// The length of the last sleep beside threads that poll, or the shortest one.
    pub(super) time: Duration,
    /// Turns in a row in which no other thread has polled.
    unpolled_turns: u32,
}

impl Schedule {
    pub(super) fn new(limits: &'static WaitLimits, oversubscribed: bool) -> Schedule {
        Schedule { limits, oversubscribed, time: FLUSH_DELAY, unpolled_turns: 0 }
    }

    /// Returns the next step. If other threads poll, `back_off` says whether they still do, rather
    /// than having stopped, and `longest` for how long the thread may sleep then.
    pub(super) fn next(
        &mut self,
        others: WaitingThreads,
        back_off: impl FnOnce() -> bool,
        longest: impl FnOnce() -> Duration,
    ) -> Step {
        let WaitingThreads { polls, sleep, wait, .. } = others;
        self.unpolled_turns = if polls > 0 { 0 } else { self.unpolled_turns + 1 };
        // Others poll if they did so since the last turn, if they sleep on the network, or if one
        // is in a long call that has not polled for a few turns.
        let others_poll =
            polls > 0 || sleep || wait && self.unpolled_turns < self.limits.max_unpolled;
        if !others_poll && !wait {
            self.time = FLUSH_DELAY;
        }
        if !(others_poll && back_off()) {
            self.unpolled_turns = 0;
            return Step::Poll;
        }
        // A thread that transfers much data polls rarely, so count it as polling.
        let polls = if wait && !sleep { u64::MAX } else { polls };
        self.lengthen(WaitingThreads { polls, ..others });
        self.time = self.time.min(longest());
        let flushes = sleep && self.limits.flushes_beside_sleepers;
        if flushes { Step::Flush(self.time) } else { Step::Sleep(self.time) }
    }

    /// Lengthens the next sleep while others wait, since each end of a sleep takes a CPU from them.
    /// Beside threads that sleep it may last as long as they have slept: a thread that has waited
    /// for so long wakes this one when its wait ends.
    fn lengthen(&mut self, others: WaitingThreads) {
        let WaitingThreads { polls, unpolled, sleep, .. } = others;
        let &WaitLimits { often, often_oversubscribed, min_polls, .. } = self.limits;
        let (often, min_polls) =
            if self.oversubscribed { (often_oversubscribed, 1) } else { (often, min_polls) };
        let polled = often.saturating_mul(u32::try_from(polls).unwrap_or(u32::MAX));
        let polls_often = polls >= min_polls && polled >= self.time;
        self.time = match sleep {
            true if polls == 0 => unpolled.max(WaitLimits::LONGEST).min(self.time * 2),
            false if !polls_often => FLUSH_DELAY,
            _ => WaitLimits::LONGEST.min(self.time * 2),
        };
    }
}

#[cfg(test)]
mod tests;
