//! The decision of the service thread, at the start of each turn, to poll or to leave that to other
//! threads. It depends on nothing but what it is given.

use crate::kit::backoff::{ServiceBackoff, WaitLimits};
use std::time::Duration;

/// The activity of other threads since the last turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingThreads {
    /// The number of their polls.
    pub(super) polls: u64,
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
    pub(super) backoff: ServiceBackoff,
    /// Turns in a row in which no other thread has polled.
    unpolled: u32,
}

impl Schedule {
    pub(super) fn new(limits: &'static WaitLimits, oversubscribed: bool) -> Schedule {
        Schedule { limits, backoff: ServiceBackoff::new(limits, oversubscribed), unpolled: 0 }
    }

    /// Returns the next step. If other threads poll, `back_off` says whether they still do, rather
    /// than having stopped, and `longest` for how long the thread may sleep then.
    pub(super) fn next(
        &mut self,
        others: WaitingThreads,
        back_off: impl FnOnce() -> bool,
        longest: impl FnOnce() -> Duration,
    ) -> Step {
        let WaitingThreads { polls, sleep, wait } = others;
        self.unpolled = if polls > 0 { 0 } else { self.unpolled + 1 };
        // Others poll if they did so since the last turn, if they sleep on the network, or if one
        // is in a long call that has not polled for a few turns.
        let others_poll = polls > 0 || sleep || wait && self.unpolled < self.limits.max_unpolled;
        if !others_poll && !wait {
            self.backoff.reset();
        }
        if !(others_poll && back_off()) {
            self.unpolled = 0;
            return Step::Poll;
        }
        // A thread that transfers much data polls rarely, so count it as polling.
        let polls = if wait && !sleep { u64::MAX } else { polls };
        self.backoff.while_others_poll(polls, sleep);
        let time = self.backoff.limit(longest());
        let flushes = sleep && self.limits.flushes_beside_sleepers;
        if flushes { Step::Flush(time) } else { Step::Sleep(time) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::backoff::FLUSH_DELAY;

    static LIMITS: WaitLimits = WaitLimits { max_unpolled: 2, ..WaitLimits::for_tests() };
    static WITHOUT_FLUSH: WaitLimits =
        WaitLimits { flushes_beside_sleepers: false, ..WaitLimits::for_tests() };

    const NOBODY: WaitingThreads = WaitingThreads { polls: 0, sleep: false, wait: false };
    const POLL_OFTEN: WaitingThreads = WaitingThreads { polls: 1000, ..NOBODY };
    const POLL_RARELY: WaitingThreads = WaitingThreads { polls: 1, ..NOBODY };
    const SLEEP: WaitingThreads = WaitingThreads { sleep: true, ..NOBODY };
    const WAIT: WaitingThreads = WaitingThreads { wait: true, ..NOBODY };
    /// The second sleep of a backoff.
    const TWICE: Duration = FLUSH_DELAY.saturating_mul(2);

    /// Returns the step of a first turn, unless a thread `stops_polling`.
    fn first(
        limits: &'static WaitLimits,
        others: WaitingThreads,
        stops_polling: bool,
        longest: Duration,
    ) -> Step {
        Schedule::new(limits, false).next(others, || !stops_polling, || longest)
    }

    #[test]
    fn it_polls_unless_others_do() {
        let (max, short) = (Duration::MAX, FLUSH_DELAY / 2);
        let table = [
            (&LIMITS, NOBODY, false, max, Step::Poll),
            (&LIMITS, POLL_OFTEN, false, max, Step::Sleep(TWICE)),
            (&LIMITS, POLL_OFTEN, false, short, Step::Sleep(short)),
            (&LIMITS, POLL_OFTEN, true, max, Step::Poll),
            (&LIMITS, POLL_RARELY, false, max, Step::Sleep(FLUSH_DELAY)),
            (&LIMITS, SLEEP, false, max, Step::Flush(TWICE)),
            (&LIMITS, SLEEP, true, max, Step::Poll),
            (&WITHOUT_FLUSH, SLEEP, false, max, Step::Sleep(TWICE)),
            (&LIMITS, WAIT, false, max, Step::Sleep(TWICE)),
            (&LIMITS, WaitingThreads { wait: true, ..SLEEP }, false, max, Step::Flush(TWICE)),
            (&LIMITS, WaitingThreads { wait: true, ..POLL_RARELY }, false, max, Step::Sleep(TWICE)),
        ];
        for (row, (limits, others, stops_polling, longest, step)) in table.into_iter().enumerate() {
            assert_eq!(
                first(limits, others, stops_polling, longest),
                step,
                "row {row}: {others:?}"
            );
        }
    }

    #[test]
    fn a_thread_that_stops_polling_counts_only_if_others_poll() {
        let back_off = || unreachable!("no other thread polls");
        assert_eq!(
            Schedule::new(&LIMITS, false).next(NOBODY, back_off, || Duration::MAX),
            Step::Poll
        );
    }

    #[test]
    fn the_steps_follow_from_each_other() {
        let longest = WaitLimits::LONGEST;
        let (often, wait) = ((POLL_OFTEN, Step::Sleep(longest)), (WAIT, Step::Sleep(longest)));
        let turns: &[(WaitingThreads, Step)] = &[
            often,
            often,
            wait,
            // A long call has not polled for two turns: it is served, and the sleeps stay long.
            (WAIT, Step::Poll),
            wait,
            // Nobody is there, so the sleeps begin anew.
            (NOBODY, Step::Poll),
            (POLL_OFTEN, Step::Sleep(TWICE)),
            (POLL_OFTEN, Step::Sleep(2 * TWICE)),
            (POLL_RARELY, Step::Sleep(FLUSH_DELAY)),
        ];
        let mut schedule = Schedule::new(&LIMITS, false);
        for _ in 0..10 {
            schedule.next(POLL_OFTEN, || true, || Duration::MAX);
        }
        for (turn, &(others, step)) in turns.iter().enumerate() {
            let next = schedule.next(others, || true, || Duration::MAX);
            assert_eq!(next, step, "turn {turn}: {others:?}");
        }
    }
}
