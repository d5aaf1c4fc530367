//! The rules by which a waiting thread spins, yields and sleeps.
//!
//! A waiter first polls almost without a pause, since most waits end within a few microseconds;
//! then it yields after each poll; then it sleeps. It does not spin where the peer may need this
//! CPU to answer: when PEs outnumber the CPUs, when other threads of the PE wait on all CPUs of the
//! PE, or when yields have shown that another thread waits on the same CPU.
//! Polls of different networks differ in cost, so each provider supplies its own [`WaitLimits`].

use super::cpu_sharing::{self, CpuSharing};
use std::time::{Duration, Instant};

/// The time after which the service thread completes what a call left unfinished, unless a polling
/// thread does so before. Also the shortest time for which the service thread backs off.
///
/// The value was not measured. It is long beside the few microseconds of CPU time that waking a
/// thread takes, and a peer that waits for the unfinished work may wait for this long.
pub const FLUSH_DELAY: Duration = Duration::from_micros(50);

/// Polls without a pause after which a waiter yields once, since processes of which this PE does
/// not know may share the CPU.
const SPINS_PER_YIELD: u32 = 128;
/// Polls followed by a yield before a waiter sleeps.
const YIELDS: u32 = 100;
/// The polls followed by a yield before a waiter sleeps that does not spin.
const YIELDS_SHARED: u32 = 20;

/// A wait that lasts this long is reported to the runtime.
const LONG: Duration = Duration::from_millis(10);

/// The limits by which the threads of a provider wait.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimits {
    /// Polls of a waiter without a pause, but for a yield now and then.
    pub spins: u32,
    /// The longest sleep of a waiter between two polls.
    pub sleep: Duration,
    /// Other threads count as waiting if they poll once in this time on average...
    pub often: Duration,
    /// ...or in this time when PEs outnumber the CPUs: a waiter then polls only when it has one,
    /// and a service thread that wakes takes it from all of them...
    pub often_oversubscribed: Duration,
    /// ...and at least this many times within a sleep, or once when PEs outnumber the CPUs.
    pub min_polls: u64,
    /// Sleeps of the service thread beside a thread that counts as waiting but does not poll,
    /// before it serves peers itself.
    pub max_unpolled: u32,
    /// Calls request a flush also while the service thread backs off beside threads that sleep.
    pub flushes_beside_sleepers: bool,
}

impl WaitLimits {
    /// Longest time for which the service thread backs off beside threads that poll.
    pub const LONGEST: Duration = Duration::from_millis(2);

    /// Returns small limits.
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

/// One wait.
pub struct Backoff {
    spins: u32,
    yields: u32,
    /// It may sleep instead of yielding.
    is_woken: bool,
    polls: u32,
    /// The time of its first sleep.
    first_sleep: Option<Instant>,
    /// The host learns of the wait once it has lasted this long, zero before the first report.
    report_after: Duration,
}

/// The action of a waiter between two polls.
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
    /// Returns a wait that begins. It spins this often, and yields, unless CPUs are
    /// `oversubscribed`: then it yields. If the thread shares its CPU with one that waits, it
    /// yields after each poll. If it shares it with one that computes, it sleeps, at once if the
    /// sleep does not last much longer than the wait (`is_woken`).
    #[inline]
    pub fn new(spins: u32, oversubscribed: bool, is_woken: bool) -> Backoff {
        let (spins, yields) = if oversubscribed { (0, YIELDS_SHARED) } else { (spins, YIELDS) };
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

    /// Leaves the CPU to the threads that want it.
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

    /// Takes a pause; `sleep` is how to sleep.
    #[inline]
    pub fn take(&mut self, pause: Pause, sleep: impl FnOnce()) {
        match pause {
            Pause::Spin => {}
            Pause::Yield => self.share_cpu(cpu_sharing::yield_now(self.spins == 0)),
            Pause::Sleep => sleep(),
        }
    }

    /// Restarts the backoff, since a poll found work: the next polls have no pause.
    pub fn renew(&mut self) {
        self.polls = 0;
    }

    /// Returns the time since the first sleep of the wait; zero if it never slept.
    pub fn since_first_sleep(&self) -> Duration {
        self.first_sleep.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns true if the host is to learn of the wait now, after a sleep: of a long one, and
    /// again when it has lasted twice as long, since other PEs may be waited for by then.
    #[cold]
    pub fn is_report_due(&mut self) -> bool {
        let lasted = self.since_first_sleep();
        let is_due = lasted >= self.report_after.max(LONG);
        if is_due {
            self.report_after = 2 * lasted;
        }
        is_due
    }

    /// Returns true if the host has learned of the wait.
    pub fn is_reported(&self) -> bool {
        !self.report_after.is_zero()
    }
}

#[cfg(test)]
mod tests;
