//! Whether other threads want the CPUs on which threads of this process wait: peers, other jobs, or
//! threads that compute.
//!
//! A thread that has a CPU for itself polls, which is fastest. Where it shares one, the thread that
//! would end its wait may be the one that needs the CPU. Between threads that all wait, a yield
//! after each poll is the fastest way to it. Where another thread computes, a kernel may charge
//! each yield with a whole time slice, while a thread that sleeps gets the CPU back as soon as
//! somebody has news for it.
//!
//! Two PEs may also share a CPU while another one is idle, when a kernel has woken both at the same
//! time. It moves neither of them for some 100 ms. A thread that sleeps is placed anew when it
//! wakes, on an idle CPU if the kernel looks for one, which it may not do where most CPUs are busy.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A yield that takes longer has let another thread run. Two in a row show one that waits on this
/// CPU: a service thread does not run as often.
const YIELD_TO_ANOTHER: Duration = Duration::from_micros(2);
/// A yield that takes longer has let a thread run that computes: a few peers and service threads
/// run for some hundred microseconds until they sleep or yield, and a time slice takes longer.
const LONG_YIELD: Duration = Duration::from_millis(1);
/// A yield that takes longer has let a peer poll until it yielded, too.
const PEER_POLLED: Duration = Duration::from_micros(20);
/// The least time between two sleeps whose purpose is another CPU. Such a sleep takes some 60 us.
const MOVE_INTERVAL: Duration = Duration::from_millis(5);

/// The time for which a CPU then counts as shared. A kernel takes about as long to move one of two
/// threads to an idle CPU.
const MEMORY: Duration = Duration::from_millis(10);
/// The longest time for which it counts as shared with a thread that computes. The time doubles
/// each time when it is found so again, since to find out takes a time slice of that thread.
const LONGEST_MEMORY: Duration = Duration::from_millis(250);

/// The threads with which a thread that waits shares its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSharing {
    /// None.
    Alone,
    /// Threads that wait, too.
    Waiting,
    /// Threads that compute.
    Computing,
}

/// What yields have shown, which counts for a time.
struct Memory {
    /// The time until which it counts; 0 if it does not.
    until: AtomicU64,
    /// The nanoseconds for which it was to count last.
    lasting: AtomicU64,
}

impl Memory {
    const fn new() -> Memory {
        Memory { until: AtomicU64::new(0), lasting: AtomicU64::new(0) }
    }

    #[inline]
    fn counts(&self) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && now() < until
    }

    /// Lets it count from `now` on for [`MEMORY`], or for twice as long as the last time if that
    /// has ended no longer ago, at most for `longest`.
    fn renew(&self, now: u64, longest: Duration) {
        let last = self.lasting.load(Ordering::Relaxed);
        let is_again = now < self.until.load(Ordering::Relaxed) + last;
        let lasting = Duration::from_nanos(if is_again { 2 * last } else { 0 });
        let lasting = lasting.clamp(MEMORY, longest).as_nanos() as u64;
        self.lasting.store(lasting, Ordering::Relaxed);
        self.until.store(now + lasting, Ordering::Relaxed);
    }
}

static WAITING: Memory = Memory::new();
static COMPUTING: Memory = Memory::new();
/// The time before which no thread sleeps for another CPU; 0 at the start.
static STAYS_UNTIL: AtomicU64 = AtomicU64::new(0);
/// The last yield of this process has let another thread run.
static WAS_TO_ANOTHER: AtomicBool = AtomicBool::new(false);

/// Returns what the yields of this process have shown a short time ago.
#[inline]
pub fn last_seen() -> CpuSharing {
    // Unit tests do not depend on what else the machine does.
    if cfg!(test) {
        CpuSharing::Alone
    } else if COMPUTING.counts() {
        CpuSharing::Computing
    } else if WAITING.counts() {
        CpuSharing::Waiting
    } else {
        CpuSharing::Alone
    }
}

/// Yields the CPU, and tries to move to an idle one if a peer had this one meanwhile, unless CPUs
/// are `oversubscribed`. Returns what this yield, with the one before, has shown.
pub fn yield_now(oversubscribed: bool) -> CpuSharing {
    let before = now();
    thread::yield_now();
    let after = now();
    let took = Duration::from_nanos(after - before);
    let is_to_another = took > YIELD_TO_ANOTHER;
    let was_to_another = WAS_TO_ANOTHER.swap(is_to_another, Ordering::Relaxed);
    if took > LONG_YIELD {
        COMPUTING.renew(after, LONGEST_MEMORY);
        CpuSharing::Computing
    } else if !oversubscribed && took > PEER_POLLED && after > STAYS_UNTIL.load(Ordering::Relaxed) {
        STAYS_UNTIL.store(after + MOVE_INTERVAL.as_nanos() as u64, Ordering::Relaxed);
        thread::sleep(Duration::from_nanos(1));
        CpuSharing::Alone
    } else if is_to_another && was_to_another {
        WAITING.renew(after, MEMORY);
        CpuSharing::Waiting
    } else {
        CpuSharing::Alone
    }
}

/// Returns the clock's nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_again_counts_for_longer() {
        let memory = Memory::new();
        let ms = |n: u64| n * 1_000_000;
        let mut lasting = |at| {
            memory.renew(ms(at), LONGEST_MEMORY);
            memory.lasting.load(Ordering::Relaxed) / ms(1)
        };
        assert_eq!(
            [1000, 1011, 1035, 1080, 1200, 1400, 1700].map(&mut lasting),
            [10, 20, 40, 80, 160, 250, 250]
        );
        assert_eq!(lasting(2201), 10, "that was long ago");
    }
}
