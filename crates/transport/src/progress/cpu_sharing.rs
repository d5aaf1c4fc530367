//! Whether other threads want the CPUs on which threads of this process wait: peers, other jobs, or
//! threads that compute.
//!
//! A thread that has a CPU for itself polls, which is fastest. Where it shares one, the thread that
//! would end its wait may be the one that needs the CPU. Between PEs that all wait, a yield is the
//! fastest way to it. Where another thread computes, a kernel may charge each yield with a whole
//! time slice, while a thread that sleeps gets the CPU back as soon as somebody has news for it.
//!
//! Two PEs may also share a CPU while another one is idle, when a kernel has woken both at the same
//! time. It moves neither of them for some 100 ms, in which each waits for the other to yield. A
//! thread that sleeps is placed anew when it wakes, on an idle CPU if there is one.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A yield that takes longer has let a thread run that computes: peers and service threads run for
/// some microseconds and sleep or yield then, and a time slice lasts milliseconds.
const LONG_YIELD: Duration = Duration::from_micros(500);
/// A yield that takes longer has let a peer poll until it yielded, too.
const PEER_POLLED: Duration = Duration::from_micros(20);
/// The least time between two sleeps whose purpose is another CPU. Such a sleep takes some 60 us.
const MOVE_INTERVAL: Duration = Duration::from_millis(5);
/// The time for which a CPU counts as shared after a long yield. To find out again takes a wait
/// that spins, and a time slice of the other thread.
const MEMORY: Duration = Duration::from_millis(250);

/// The time until which the CPUs count as shared; 0 at the start.
static SHARED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// The time before which no thread sleeps for another CPU; 0 at the start.
static STAYS_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Returns true if a yield of this process was long a short time ago.
#[inline]
pub fn is_shared() -> bool {
    let until = SHARED_UNTIL.load(Ordering::Relaxed);
    // Unit tests do not depend on what else the machine does.
    !cfg!(test) && until != 0 && now() < until
}

/// Yields the CPU, and moves to an idle one if a peer had this one meanwhile, unless CPUs are
/// `oversubscribed`. Returns true if a thread that computes had it.
pub fn yield_now(oversubscribed: bool) -> bool {
    let before = now();
    thread::yield_now();
    let after = now();
    let has_passed = |time: Duration| after - before > time.as_nanos() as u64;
    if has_passed(LONG_YIELD) {
        SHARED_UNTIL.store(after + MEMORY.as_nanos() as u64, Ordering::Relaxed);
        return true;
    }
    if !oversubscribed && has_passed(PEER_POLLED) && after > STAYS_UNTIL.load(Ordering::Relaxed) {
        STAYS_UNTIL.store(after + MOVE_INTERVAL.as_nanos() as u64, Ordering::Relaxed);
        thread::sleep(Duration::from_nanos(1));
    }
    false
}

/// Returns the clock's nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
