//! Detects whether the waiting threads of this process share their CPUs with other threads: of
//! peers, of other jobs, or of the program. The time that a yield takes shows it.
//!
//! A thread with a CPU of its own polls, which is fastest. On a shared CPU, the thread that needs
//! the CPU may be the one that would end the wait. If all threads on the CPU wait, a yield after
//! each poll lets that thread run soonest. If one of them computes, a yield may take a whole time
//! slice of that thread, whereas a thread that sleeps gets the CPU back when it is woken.
//!
//! A kernel that wakes two PEs at the same time may put them on one CPU while another CPU is idle,
//! and separate them only after 10 to 100 ms. When a thread wakes from a sleep, the kernel chooses
//! its CPU again, so a short sleep can move it to an idle CPU. Where most CPUs are busy, the kernel
//! may not look for one.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A yield that takes longer than this has let another thread run. Two such yields in a row show a
/// thread that waits on this CPU, since a service thread does not run as often. Each poll is then
/// followed by a yield: if 2 PEs wake on the same one of two CPUs, a barrier takes 12 to 26 us, and
/// without this 80 to 180 us.
const YIELD_TO_ANOTHER: Duration = Duration::from_micros(2);
/// A yield that takes longer than this, times the number of threads that may wait on this CPU, has
/// let a thread run that computes. A few peers and service threads together run for some hundred
/// microseconds before all of them sleep or yield; a time slice is longer. With 1 ms alone, a
/// reduction of 16 PEs on two CPUs over UCX took 951 us instead of 511. With 5 us, PEs with CPUs of
/// their own mistook service threads of peers for threads that compute; if no yield counted, a get
/// over UCX beside one took 75 to 148 us instead of 14 to 21.
const LONG_YIELD: Duration = Duration::from_millis(1);
/// A yield that takes longer than this has let a peer poll on this CPU until the peer yielded, too:
/// the peer makes its loads or polls before a yield, which take some tens of microseconds
/// ([`backoff`](super::backoff)).
const PEER_POLLED: Duration = Duration::from_micros(20);
/// The minimum time between two sleeps by which a thread is to move to another CPU. Such a sleep
/// takes some 60 us, so all of them together take about 1 % of the time.
const MOVE_INTERVAL: Duration = Duration::from_millis(5);

/// The shortest time for which CPUs count as shared after a yield has shown it. A kernel takes at
/// least this long to move one of two threads to an idle CPU.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);
/// The longest time for which CPUs count as shared with a thread that computes. The time starts at
/// [`SHORTEST_PERIOD`] and doubles whenever the thread is soon found again, because each test for
/// it takes a time slice of that thread: with this limit, four slices a second. With 50 ms, a put
/// and its quiet over TCP beside such a thread took 62 us instead of 21; 500 ms gained no more.
const LONGEST_PERIOD: Duration = Duration::from_millis(250);

/// The kind of threads with which a waiting thread shares its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSharing {
    /// It shares its CPU with no thread.
    Alone,
    /// It shares its CPU with threads that wait, too.
    Waiting,
    /// It shares its CPU with threads that compute.
    Computing,
}

/// A finding of this process about its CPUs, which holds for a limited time.
///
/// All accesses to findings, and to the variables below, are relaxed. They are about the recent
/// past, so a thread may as well act on a value that another one has just replaced.
struct Finding {
    /// The time at which the finding expires, in nanoseconds of the clock; 0 before the first one.
    until: AtomicU64,
    /// The length of the period for which it held last, in nanoseconds.
    period: AtomicU64,
}

impl Finding {
    const fn new() -> Finding {
        Finding {
            until: AtomicU64::new(0),
            period: AtomicU64::new(0),
        }
    }

    #[inline]
    fn holds(&self) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && now() < until
    }

    /// Makes the finding hold from `now` on, at first for [`SHORTEST_PERIOD`]. Doubles the last
    /// period if it has not ended, or has ended less than its own length ago. No period exceeds
    /// `longest`.
    fn renew(&self, now: u64, longest: Duration) {
        let last = self.period.load(Ordering::Relaxed);
        let is_soon = now < self.until.load(Ordering::Relaxed) + last;

        let period = Duration::from_nanos(if is_soon { 2 * last } else { 0 });
        let period = period.clamp(SHORTEST_PERIOD, longest).as_nanos() as u64;

        // Threads may do this at once, each with a valid period; either may stay.
        self.period.store(period, Ordering::Relaxed);
        self.until.store(now + period, Ordering::Relaxed);
    }
}

/// The finding that the process shares CPUs with threads that wait.
static WAITING: Finding = Finding::new();
/// The finding that the process shares CPUs with threads that compute.
static COMPUTING: Finding = Finding::new();
/// The time before which no thread sleeps to move to another CPU; 0 at the start.
static STAYS_UNTIL: AtomicU64 = AtomicU64::new(0);
/// The number of threads of this process in waits that [`WaitingThread`] counts.
static N_WAITING: AtomicU32 = AtomicU32::new(0);
/// The number of PEs of this machine for each CPU, rounded up; 0 at the start.
static PES_PER_CPU: AtomicU32 = AtomicU32::new(0);
/// True if the last yield of this process has let another thread run.
static WAS_TO_ANOTHER: AtomicBool = AtomicBool::new(false);

/// A thread that waits, perhaps asleep, until this is dropped. Many of them share the CPUs like
/// peers do.
pub struct WaitingThread(());

impl WaitingThread {
    /// Counts the calling thread.
    pub fn count() -> WaitingThread {
        N_WAITING.fetch_add(1, Ordering::Relaxed);
        WaitingThread(())
    }
}

impl Drop for WaitingThread {
    fn drop(&mut self) {
        N_WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Records the number of PEs for each CPU of the machine, rounded up. Where PEs outnumber the CPUs,
/// a yield lets several of them run one after the other.
pub fn set_pes_per_cpu(n: u32) {
    PES_PER_CPU.store(n, Ordering::Relaxed);
}

/// Returns the shortest time of a yield that shows a thread that computes.
fn long_yield() -> Duration {
    let threads = N_WAITING.load(Ordering::Relaxed).max(1);
    let pes = PES_PER_CPU.load(Ordering::Relaxed).max(1);
    LONG_YIELD * threads.saturating_mul(pes)
}

/// Returns what recent yields of this process have shown.
#[inline]
pub fn last_seen() -> CpuSharing {
    // The results of unit tests must not depend on the load of the machine.
    if cfg!(test) {
        CpuSharing::Alone
    } else if COMPUTING.holds() {
        CpuSharing::Computing
    } else if WAITING.holds() {
        CpuSharing::Waiting
    } else {
        CpuSharing::Alone
    }
}

/// Yields the CPU. If the yield shows that a peer polls on this CPU, sleeps for a moment so that
/// the kernel may move the thread to an idle CPU, unless the thread `stays` on this one. Returns
/// what this yield, together with the one before, has shown.
pub fn yield_now(stays: bool) -> CpuSharing {
    let before = now();
    thread::yield_now();
    let after = now();
    // The results of unit tests must not depend on the load of the machine.
    let took = Duration::from_nanos(if cfg!(test) { 0 } else { after - before });

    let is_to_another = took > YIELD_TO_ANOTHER;
    let was_to_another = WAS_TO_ANOTHER.swap(is_to_another, Ordering::Relaxed);

    if took > long_yield() {
        COMPUTING.renew(after, LONGEST_PERIOD);
        CpuSharing::Computing
    } else if !stays && took > PEER_POLLED && after > STAYS_UNTIL.load(Ordering::Relaxed) {
        STAYS_UNTIL.store(after + MOVE_INTERVAL.as_nanos() as u64, Ordering::Relaxed);
        // The shortest sleep: the kernel chooses a CPU when the thread wakes.
        thread::sleep(Duration::from_nanos(1));
        CpuSharing::Alone
    } else if is_to_another && was_to_another {
        WAITING.renew(after, SHORTEST_PERIOD);
        CpuSharing::Waiting
    } else {
        CpuSharing::Alone
    }
}

/// Returns the time of the monotonic clock in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_again_counts_for_longer() {
        const MS: u64 = 1_000_000;
        let finding = Finding::new();

        for (now, period) in [
            (1000, 10),
            (1011, 20),
            (1035, 40),
            (1080, 80),
            (1200, 160),
            (1400, 250),
            (1700, 250),
            // More than a period after the last one has ended.
            (2201, 10),
        ] {
            finding.renew(now * MS, LONGEST_PERIOD);
            let found = finding.period.load(Ordering::Relaxed);
            assert_eq!(found, period * MS, "at {now} ms");
        }
    }
}
