//! Whether other threads want the CPUs on which threads of this process wait: peers, other jobs, or
//! threads that compute.
//!
//! A thread that has a CPU for itself polls, which is fastest. Where it shares one, the thread that
//! would end its wait may be the one that needs the CPU. Between PEs that all wait, a yield is the
//! fastest way to it. Where another thread computes, a kernel may charge each yield with a whole
//! time slice, while a thread that sleeps gets the CPU back as soon as somebody has news for it.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A yield that takes longer has let a thread run that computes: peers and service threads run for
/// some microseconds and sleep or yield then, and a time slice lasts milliseconds.
const LONG_YIELD: Duration = Duration::from_micros(500);
/// The time for which a CPU counts as shared after a long yield. To find out again takes a wait
/// that spins, and a time slice of the other thread.
const MEMORY: Duration = Duration::from_millis(250);

/// The time until which the CPUs count as shared; 0 at the start.
static SHARED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Returns true if a yield of this process was long a short time ago.
#[inline]
pub(super) fn is_shared() -> bool {
    let until = SHARED_UNTIL.load(Ordering::Relaxed);
    // Unit tests do not depend on what else the machine does.
    !cfg!(test) && until != 0 && now() < until
}

/// Yields the CPU. Returns true if that took long, since a thread that computes had it meanwhile.
pub(super) fn yield_now() -> bool {
    let before = now();
    thread::yield_now();
    let after = now();
    let is_long = after - before > LONG_YIELD.as_nanos() as u64;
    if is_long {
        SHARED_UNTIL.store(after + MEMORY.as_nanos() as u64, Ordering::Relaxed);
    }
    is_long
}

/// Returns the clock's nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
