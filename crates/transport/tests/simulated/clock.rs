//! The time of the simulated world. It stands still while code runs, and jumps from event to event.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// The instant of the time 0, which has no other meaning.
    static START: Instant = Instant::now();
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Sets the time back to 0.
pub fn reset() {
    NOW.set(0);
}

/// Returns the time in nanoseconds.
pub fn now() -> u64 {
    NOW.get()
}

/// Sets the time, unless it is later already.
pub fn advance_to(time: u64) {
    NOW.set(now().max(time));
}

/// Returns the time as the engine reads it.
pub fn instant() -> Instant {
    START.with(|start| *start + Duration::from_nanos(now()))
}
