//! The backoff of every waiting thread: it polls, then also yields, then sleeps.
//!
//! It is the same for the words of the program, the words of the library and the operations of the
//! engine. A waiter first polls, and yields its CPU once in `polls_per_yield` polls; most waits end
//! within the first polls. After `yield_time` it sleeps; the caller knows what ends the sleep. Both
//! limits depend on what the waiter polls (`Pace`). If a poll finds work, the waiter starts from
//! the beginning.
//!
//! Other threads that need the CPU change this ([`CpuSharing`]). Where PEs outnumber the CPUs, or
//! other threads of the PE wait on all CPUs of the PE, a waiter yields after each poll, and sleeps
//! after `YIELDS` of them. Where a yield has shown that a thread that waits shares the CPU, it
//! yields after each poll. Where a thread that computes shares it, the waiter does not yield but
//! sleeps, over a network at once: each yield would give that thread a time slice, and the kernel
//! sooner runs a thread that wakes.
//! Beside 20 processes that computed on two CPUs, a barrier of 6 PEs on two nodes over TCP took 145
//! to 171 ms with 20 yields before each sleep, and 73 to 88 ms without.

use super::cpu_sharing::{self, CpuSharing};
use std::time::{Duration, Instant};

/// The time after which the service thread completes what a call left unfinished, unless a polling
/// thread does so before. Also the shortest sleep of the service thread when it backs off.
///
/// The value was chosen without a measurement. It is long compared with the few microseconds of CPU
/// time that waking a thread takes, but a peer may wait this long for the unfinished work.
pub const FLUSH_DELAY: Duration = Duration::from_micros(50);

/// How long a waiter polls if its CPU is its own.
#[derive(Clone, Copy)]
struct Pace {
    /// The number of polls after which it yields.
    polls_per_yield: u32,
    /// The time for which it polls and yields before it sleeps.
    yield_time: Duration,
}

impl Pace {
    const OF_WORDS: Pace = Pace {
        // Some tens of microseconds, since the instruction for such loops follows each load.
        // Without that instruction, a barrier of 2 PEs of a node takes 110 ns instead of 76. A
        // yield that lasts as long as these loads shows a peer that polls on the same CPU
        // (`cpu_sharing`).
        polls_per_yield: 3_000,
        // The kernel takes some 50 us to wake a thread on an idle CPU, and a barrier of 64 PEs that
        // all sleep takes six such times. If waiters yielded for less than that, then after one PE
        // was late once, all of them would sleep in each of the barriers that follow: with 20
        // yields, each barrier of 16 PEs on 16 CPUs took 200 us for some 100 ms, in half of the
        // runs.
        yield_time: Duration::from_millis(2),
    };

    const OF_NETWORK: Pace = Pace {
        // These polls of a network take about as long as the 3,000 loads of `OF_WORDS`. Where other
        // programs took CPUs, 2 PEs that polled for some milliseconds without a yield needed 1 ms
        // for a reduction over libfabric instead of 50 us.
        polls_per_yield: 128,
        // Longer than the time slice for which another program keeps the peer from running. A
        // waiter that sleeps meanwhile is woken on the CPU of its peer and that program, and its
        // own CPU stays idle. Beside one program that computed on two CPUs, a round trip of 2 PEs
        // took 101 us over UCX and 80 us over libfabric with 2 ms, and 66 us over both with this.
        yield_time: Duration::from_millis(10),
    };
}

/// The number of yields, one after each poll, before a waiter sleeps if PEs outnumber the CPUs.
/// Each yield lets the other threads of the CPU run once. With fewer, waiters would sleep although
/// the peer is about to answer, and have to be woken; with more, a waiter whose peer is late takes
/// CPU time from the PEs that compute. The number was chosen without a measurement.
const YIELDS: u32 = 20;

/// The number of loads of a word before a thread wakes the peer that it has signaled last: a few
/// microseconds, and none if PEs outnumber the CPUs. Whether the peer sleeps is known only once
/// the thread's own store is visible, which takes as long as the peer's answer: a barrier of 2 PEs
/// takes 0.91 of the time that it takes if the thread checks at once.
pub const LOADS_BEFORE_WAKING: u32 = 256;

/// The sleep between two polls of a word that a plain store may change, or of a network that may
/// not signal what the waiter awaits: nothing else ends the sleep. The kernel adds its timer slack,
/// by default another 50 us.
pub const NAP: Duration = FLUSH_DELAY;
/// The longest sleep of a waiter if threads of this PE may end its wait without an event.
pub const SLEEP_AMONG_THREADS: Duration = Duration::from_millis(1);
/// The longest sleep of a waiter if an event ends most sleeps, and of the service thread of UCX or
/// libfabric beside it: a library may have work that no event signals.
pub const UNSIGNALED_SLEEP: Duration = Duration::from_millis(10);
/// The longest sleep of a waiter if every change that may end its wait ends the sleep. 64 PEs that
/// wait in a barrier over TCP for 10 s used 11 s of CPU time when they slept for 10 ms, and 5 s
/// with this limit and longer sleeps of their service threads.
pub const SIGNALED_SLEEP: Duration = Duration::from_millis(100);

/// The limits by which the service thread of a provider leaves the network to waiting threads, and
/// the longest sleep of these. Begin with the `LIMITS` of `transport-tcp` if a descriptor signals
/// all that arrives, otherwise with those of `transport-ucx`.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimits {
    /// The longest sleep of a waiter between two polls. It is short if nothing signals what the
    /// waiter may need, such as room at a peer.
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
    /// A thread that stops polling to sleep elsewhere wakes the service thread, whose sleep may be
    /// too long from then on, since not every event ends it.
    pub wakes_service: bool,
}

impl WaitLimits {
    /// The longest sleep of the service thread while other threads poll.
    pub const LONGEST: Duration = Duration::from_millis(2);

    /// Returns small limits, for unit tests.
    #[cfg(test)]
    pub(crate) const fn for_tests() -> WaitLimits {
        WaitLimits {
            sleep: Duration::from_millis(1),
            often: Duration::from_micros(10),
            often_oversubscribed: Duration::from_micros(100),
            min_polls: 8,
            max_unpolled: u32::MAX,
            flushes_beside_sleepers: true,
            wakes_service: false,
        }
    }
}

/// What a waiter polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// Words in memory.
    Words,
    /// A network, perhaps with words.
    Network,
}

/// The state of the backoff of one waiting thread.
pub struct Backoff {
    /// PEs outnumber the CPUs, or another thread of the PE needs the CPU.
    is_oversubscribed: bool,
    /// How long the waiter polls while no other thread is known to need the CPU.
    pace: Pace,
    /// The threads with which the waiter shares its CPU.
    sharing: CpuSharing,
    /// The waiter has not finished its first loads of a word. It makes them also where it shares
    /// its CPU: they take less time than one yield, and a peer on another CPU may answer meanwhile.
    spins_first: bool,
    /// The number of polls since the last yield.
    polls: u32,
    /// The number of yields since the wait began or last found work.
    yields: u32,
    /// The time of the first of these yields.
    since: Option<Instant>,
    /// The waiter has polled for long enough.
    sleeps: bool,
    /// The time of the first sleep of the wait.
    first_sleep: Option<Instant>,
}

/// The action of a waiter between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The waiter polls again at once.
    Spin,
    /// The waiter has yielded the CPU, and polls again.
    Yield,
    /// The waiter sleeps until there may be an event.
    Sleep,
}

impl Backoff {
    /// Returns the state at the beginning of a wait.
    #[inline]
    pub fn new(polled: Polled, is_oversubscribed: bool) -> Backoff {
        Backoff {
            is_oversubscribed,
            pace: match polled {
                Polled::Words => Pace::OF_WORDS,
                Polled::Network => Pace::OF_NETWORK,
            },
            sharing: cpu_sharing::last_seen(),
            spins_first: polled == Polled::Words && !is_oversubscribed,
            polls: 0,
            yields: 0,
            since: None,
            sleeps: false,
            first_sleep: None,
        }
    }

    /// Pauses after a poll or a sleep. If the poll has found work (`worked`), the backoff starts
    /// from the beginning. Returns the kind of the pause. The caller makes a [`Pause::Sleep`]
    /// itself.
    #[inline]
    pub fn pause(&mut self, worked: bool) -> Pause {
        if worked {
            self.restart();
            return Pause::Spin;
        }

        self.polls += 1;
        if self.polls < self.pace.polls_per_yield && self.spins() {
            std::hint::spin_loop();
            return Pause::Spin;
        }
        self.yield_or_sleep()
    }

    /// Yields the CPU, or has the caller sleep if the waiter has polled for long enough.
    fn yield_or_sleep(&mut self) -> Pause {
        self.spins_first = false;
        if self.sleeps || self.sharing == CpuSharing::Computing {
            self.first_sleep.get_or_insert_with(|| {
                rushmem_system::log::trace!(
                    yields = self.yields,
                    "a wait begins to sleep between polls"
                );
                Instant::now()
            });
            return Pause::Sleep;
        }

        let since = *self.since.get_or_insert_with(Instant::now);
        // Where PEs outnumber the CPUs, no CPU is idle to which the thread could move. A thread
        // that is known to share its CPU yields after each poll instead of moving.
        let stays = self.is_oversubscribed || self.sharing == CpuSharing::Waiting;
        self.share_cpu(cpu_sharing::yield_now(stays));

        self.polls = 0;
        self.yields += 1;
        self.sleeps = if self.is_oversubscribed {
            // Yields are counted, not timed: one takes as long as the threads that it lets run.
            self.yields >= YIELDS
        } else {
            since.elapsed() > self.pace.yield_time
        };
        Pause::Yield
    }

    /// Records what a yield has shown. Threads that were found before count as still there although
    /// this yield has not let them run.
    fn share_cpu(&mut self, with: CpuSharing) {
        if with != CpuSharing::Alone {
            self.sharing = with;
        }
    }

    /// Returns true if no other thread is known to need the CPU, and the wait does not sleep yet.
    #[inline]
    fn spins(&self) -> bool {
        let is_alone = !self.is_oversubscribed && self.sharing == CpuSharing::Alone;
        self.spins_first || is_alone && !self.sleeps
    }

    /// Starts the backoff from the beginning, since there was work.
    fn restart(&mut self) {
        self.sharing = cpu_sharing::last_seen();
        self.polls = 0;
        self.yields = 0;
        self.since = None;
        self.sleeps = false;
    }

    /// Returns the time since the first sleep of the wait; zero if it never slept.
    pub fn since_first_sleep(&self) -> Duration {
        self.first_sleep
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns true if the wait has slept, and goes on for so long that the service thread may have
    /// begun a longer sleep than usual meanwhile.
    pub fn has_slept_for_long(&self) -> bool {
        self.since_first_sleep() > WaitLimits::LONGEST
    }
}

#[cfg(test)]
mod tests;
