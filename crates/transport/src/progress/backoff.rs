//! The rules by which a waiting thread spins, yields and sleeps.
//!
//! A waiter has three phases. It first polls almost without a pause (it spins), since most waits
//! end within a few microseconds; then it yields after each poll; then it sleeps between polls.
//!
//! It does not spin if another thread may need this CPU: when PEs outnumber the CPUs, when other
//! threads of the PE wait on all CPUs of the PE, or when yields have shown that the CPU is shared
//! ([`CpuSharing`]). Beside a thread that computes, it also sleeps earlier, or at once.
//!
//! Polls of different networks differ in cost, so each provider supplies its own [`WaitLimits`].

use super::cpu_sharing::{self, CpuSharing};
use std::time::{Duration, Instant};

/// The time after which the service thread completes what a call left unfinished, unless a polling
/// thread does so before. Also the shortest sleep of the service thread when it backs off.
///
/// The value was chosen without a measurement. It is long compared with the few microseconds of CPU
/// time that waking a thread takes, but a peer may wait this long for the unfinished work.
pub const FLUSH_DELAY: Duration = Duration::from_micros(50);

/// A waiter that spins yields once in this number of polls, since processes that are not PEs of the
/// job may need the CPU.
const SPINS_PER_YIELD: u32 = 128;
/// The number of polls, each followed by a yield, between the spins and the first sleep of a wait.
const YIELDS: u32 = 100;
/// The number of such polls if PEs outnumber the CPUs, or a thread that computes shares the CPU.
const YIELDS_SHARED: u32 = 20;

/// A wait is reported to the host this long after its first sleep.
const LONG: Duration = Duration::from_millis(10);

/// The limits by which the threads of a provider wait.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimits {
    /// The number of polls for which a waiter spins.
    pub spins: u32,
    /// The longest sleep of a waiter between two polls.
    pub sleep: Duration,
    /// Other threads poll often, so that the sleeps of the service thread get longer, if this is at
    /// least the average time between their polls during its last sleep.
    pub often: Duration,
    /// The same time if PEs outnumber the CPUs. It is longer, since a waiter polls only while it
    /// has a CPU, and a service thread that wakes takes a CPU from the waiters.
    pub often_oversubscribed: Duration,
    /// The number of polls during the last sleep below which other threads do not poll often; 1 if
    /// PEs outnumber the CPUs.
    pub min_polls: u64,
    /// After this number of turns in a row in which no thread has polled, although one is in a wait
    /// or a long call, the service thread serves peers itself.
    pub max_unpolled: u32,
    /// True if calls request flushes also while the service thread backs off because threads sleep
    /// on the network.
    pub flushes_beside_sleepers: bool,
}

impl WaitLimits {
    /// The longest sleep of the service thread while other threads poll.
    pub const LONGEST: Duration = Duration::from_millis(2);

    /// Returns small limits, for unit tests.
    #[cfg(test)]
    pub(crate) const fn for_tests() -> WaitLimits {
        WaitLimits {
            spins: 3,
            sleep: Duration::from_millis(1),
            often: Duration::from_micros(10),
            often_oversubscribed: Duration::from_micros(100),
            min_polls: 8,
            max_unpolled: u32::MAX,
            flushes_beside_sleepers: true,
        }
    }
}

/// The state of one wait.
pub struct Backoff {
    /// The number of polls for which the wait spins.
    spins: u32,
    /// The number of polls, each followed by a yield, after the spins.
    yields: u32,
    /// An event ends the sleeps of the wait, so beside a thread that computes it sleeps instead of
    /// yielding.
    is_woken: bool,
    /// The number of polls since the wait began or was last renewed.
    polls: u32,
    /// The time of the first sleep of the wait.
    first_sleep: Option<Instant>,
    /// The time since the first sleep after which the wait is reported to the host again; zero
    /// before the first report.
    report_after: Duration,
}

/// The action of a waiter between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The waiter polls again at once.
    Spin,
    /// The waiter yields the CPU.
    Yield,
    /// The waiter sleeps until there may be an event.
    Sleep,
}

impl Backoff {
    /// Returns the state of a wait that begins: it spins for `spins` polls, then yields, then
    /// sleeps. If CPUs are `oversubscribed`, or the CPU is shared, it does not spin. If the CPU is
    /// shared with a thread that computes, and an event ends a sleep (`is_woken`), the wait does
    /// not yield either: it sleeps after the first poll.
    #[inline]
    pub fn new(spins: u32, oversubscribed: bool, is_woken: bool) -> Backoff {
        let (spins, yields) = if oversubscribed {
            (0, YIELDS_SHARED)
        } else {
            (spins, YIELDS)
        };
        let mut backoff = Backoff {
            spins,
            yields,
            is_woken,
            polls: 0,
            first_sleep: None,
            report_after: Duration::ZERO,
        };
        backoff.share_cpu(cpu_sharing::last_seen());
        backoff
    }

    /// Adapts the rest of the wait to the threads `with` which the waiter shares its CPU.
    fn share_cpu(&mut self, with: CpuSharing) {
        (self.spins, self.yields) = match with {
            CpuSharing::Alone => (self.spins, self.yields),
            CpuSharing::Waiting => (0, self.spins + self.yields),
            CpuSharing::Computing => (0, if self.is_woken { 0 } else { YIELDS_SHARED }),
        };
    }

    /// Returns what to do after a poll that found nothing.
    pub fn pause(&mut self) -> Pause {
        let pause = self.next();
        self.polls += 1;
        if pause == Pause::Sleep {
            self.first_sleep.get_or_insert_with(|| {
                rushmem_log::trace!(polls = self.polls, "a wait begins to sleep between polls");
                Instant::now()
            });
        }
        pause
    }

    fn next(&self) -> Pause {
        let polls = self.polls + 1;
        if polls <= self.spins && !polls.is_multiple_of(SPINS_PER_YIELD) {
            Pause::Spin
        } else if polls <= self.spins + self.yields {
            Pause::Yield
        } else {
            Pause::Sleep
        }
    }

    /// Takes a pause; calls `sleep` if it is a sleep.
    #[inline]
    pub fn take(&mut self, pause: Pause, sleep: impl FnOnce()) {
        match pause {
            Pause::Spin => {}
            Pause::Yield => self.share_cpu(cpu_sharing::yield_now(self.spins == 0)),
            Pause::Sleep => sleep(),
        }
    }

    /// Restarts the backoff after a poll that found work: the count of polls starts at zero again.
    pub fn renew(&mut self) {
        self.polls = 0;
    }

    /// Returns the time since the first sleep of the wait; zero if it never slept.
    pub fn since_first_sleep(&self) -> Duration {
        self.first_sleep
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Decides after a sleep whether the wait is to be reported to the host now, and records that.
    /// Returns true once the wait is long, and again whenever it has lasted twice as long as at the
    /// last report, since it may be for other PEs by then.
    #[cold]
    pub fn begin_report(&mut self) -> bool {
        let lasted = self.since_first_sleep();
        let is_due = lasted >= self.report_after.max(LONG);
        if is_due {
            self.report_after = 2 * lasted;
        }
        is_due
    }

    /// Returns true if the wait was reported to the host.
    pub fn is_reported(&self) -> bool {
        !self.report_after.is_zero()
    }
}

#[cfg(test)]
mod tests;
