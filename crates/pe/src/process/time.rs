//! The clock of this machine, for measurements, statuses and traces.
#![allow(unsafe_code)]

use rushmem_system::clock;

/// Returns the time in nanoseconds, by the clock that all processes of the host read alike.
pub fn nanoseconds() -> u64 {
    clock::nanoseconds_of_host()
}

/// Returns the time in nanoseconds at the last tick of the kernel, which was a few milliseconds ago
/// at most. Takes an eighth of the time of [`nanoseconds`]: with that or the time-stamp counter, an
/// 8-byte put whose write is recorded takes 20 ns more.
pub fn coarse_nanoseconds() -> u64 {
    clock::coarse_nanoseconds_of_host()
}

/// `shmemx_wtime`: the time in seconds since a moment that is the same for all PEs of a machine.
/// The clock never goes back. The library need not be initialized.
pub fn wtime() -> f64 {
    nanoseconds() as f64 * 1e-9
}

#[cfg(not(target_arch = "x86_64"))]
pub use nanoseconds as fast_nanoseconds;
#[cfg(target_arch = "x86_64")]
pub use time_stamp::fast_nanoseconds;

#[cfg(target_arch = "x86_64")]
mod time_stamp {
    //! The time by the time-stamp counter of the processor, which takes a third of the time of
    //! reading the clock: an 8-byte put in a trace would take 20 ns more with the clock, 50 ns with
    //! it at both ends of the record.
    //!
    //! The rate of the counter is computed from the last two reads of the clock by the thread. The
    //! rate is used for as long as the two reads were apart, at most about a millisecond, so that
    //! its error is not larger than that of a read: some ten nanoseconds. A signal takes longer to
    //! reach a PE of the same node. The trace depends on this: it shows the last store before the
    //! end of a wait as the cause of that end.

    use super::nanoseconds;
    use core::arch::x86_64::{__cpuid, _rdtsc, CpuidResult};
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[derive(Clone, Copy)]
    struct ClockRead {
        counter: u64,
        nanoseconds: u64,
        /// True if the read was not interrupted, so that `counter` and `nanoseconds` are of one
        /// moment, and a rate can be computed from them.
        is_whole: bool,
        /// The duration of a tick, in units of 1 / 2^[`RATE_BITS`] nanoseconds.
        rate: u64,
        /// The number of ticks after the read for which the rate is used; 0 if there is no rate.
        valid_ticks: u64,
        /// The lower limit of later results: no earlier result is above it.
        earliest: u64,
    }

    thread_local! {
        /// The last read of this thread. The first call finds one without a rate.
        static LAST: Cell<ClockRead> = const {
            Cell::new(ClockRead {
                counter: 0,
                nanoseconds: 0,
                is_whole: false,
                rate: 0,
                valid_ticks: 0,
                earliest: 0,
            })
        };
    }

    /// The number of fractional bits of a rate.
    const RATE_BITS: u32 = 32;
    /// Maximum number of ticks for which a rate is used: about a millisecond. Its error grows with
    /// this time.
    const MAX_TICKS: u64 = 1 << 22;
    /// Maximum number of ticks of a read that was not interrupted: about a microsecond. With a
    /// larger limit, an interrupted read could spoil a rate until a faster one is seen.
    const READ_TICKS: u64 = 1 << 12;
    /// Twice the ticks of the fastest read so far, at most [`READ_TICKS`]. A slower read is not
    /// used for a rate, since it is not known at which of its ticks the clock was read.
    static FASTEST_TWICE: AtomicU64 = AtomicU64::new(READ_TICKS);

    /// Returns the time in nanoseconds, computed from the counter and the last read of this thread.
    #[inline]
    pub fn fast_nanoseconds() -> u64 {
        let counter = ticks();
        let last = LAST.get();
        let passed = counter.wrapping_sub(last.counter);
        if passed < last.valid_ticks {
            last.after(passed)
        } else {
            // `read` loads `last` itself: as an argument, it would be stored to memory here.
            read()
        }
    }

    impl ClockRead {
        #[inline(always)]
        fn after(&self, ticks: u64) -> u64 {
            (self.nanoseconds + ((ticks * self.rate) >> RATE_BITS)).max(self.earliest)
        }
    }

    /// Reads the clock and the counter, and computes the rate of the counter from this read and the
    /// last one of the thread. Returns the time.
    #[cold]
    #[inline(never)]
    fn read() -> u64 {
        let last = LAST.get();
        let counter = ticks();
        let time = nanoseconds();
        let took = ticks().wrapping_sub(counter);

        // Relaxed: the limit is a number by itself, and another thread's may be missed.
        let is_whole = is_steady() && took <= FASTEST_TWICE.load(Relaxed);
        FASTEST_TWICE.fetch_min(took.saturating_mul(2), Relaxed);

        let mut rate = 0;
        let mut valid_ticks = 0;
        if is_whole && last.is_whole {
            // 1 at least, since a virtual machine may show two reads the same value.
            let passed = counter.wrapping_sub(last.counter).max(1);
            let elapsed = u128::from(time - last.nanoseconds) << RATE_BITS;
            rate = (elapsed / u128::from(passed)) as u64;
            valid_ticks = passed.min(MAX_TICKS);
        }

        // The times that were computed from the last read may be ahead of the clock, and the time
        // must not go back.
        let earliest = last.after(last.valid_ticks).max(time);

        LAST.set(ClockRead {
            counter,
            nanoseconds: time,
            is_whole,
            rate,
            valid_ticks,
            earliest,
        });
        earliest
    }

    #[inline(always)]
    fn ticks() -> u64 {
        // SAFETY: every processor of this architecture has the instruction.
        unsafe { _rdtsc() }
    }

    /// Returns true if the rate of the counter does not depend on the frequency of the processor.
    fn is_steady() -> bool {
        // The bit of leaf 0x8000_0007 for a counter with a constant rate ("invariant TSC").
        const INVARIANT: u32 = 1 << 8;
        static IS_STEADY: OnceLock<bool> = OnceLock::new();
        *IS_STEADY.get_or_init(|| {
            let last_leaf = cpuid(0x8000_0000).eax;
            last_leaf >= 0x8000_0007 && cpuid(0x8000_0007).edx & INVARIANT != 0
        })
    }

    fn cpuid(leaf: u32) -> CpuidResult {
        // Safe in newer versions of Rust.
        #[allow(unused_unsafe)]
        // SAFETY: every processor of this architecture has the instruction.
        unsafe {
            __cpuid(leaf)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_time_never_goes_back_and_stays_near_the_clock() {
            // In nanoseconds: twice the time of the slowest whole read, with a counter of 1 GHz.
            const TOLERANCE: u64 = 2 * READ_TICKS;
            let mut last = 0;
            for _ in 0..100_000 {
                let before = nanoseconds();
                let now = fast_nanoseconds();
                let after = nanoseconds();
                assert!(now >= last, "{now} after {last}");
                assert!(now + TOLERANCE >= before, "{now} is long before {before}");
                assert!(now <= after + TOLERANCE, "{now} is long after {after}");
                last = now;
            }
        }
    }
}
