//! A record of what the threads of a PE have done on its network, for statistics.

use std::sync::atomic::{AtomicBool, Ordering};

/// True if operations in flight are counted. Counting takes time in each wait.
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Enables the count of operations in flight.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

#[inline]
pub(crate) fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Counts since the transport was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkActivity {
    /// Polls of threads that wait. Work that takes as long as several counts as these.
    pub polls: u64,
    /// Sleeps of threads that wait.
    pub sleeps: u64,
    /// Sleeps of the service thread.
    pub service_sleeps: u64,
    /// Operations that found no room in a queue or a window, and were repeated.
    pub retries: u64,
    /// The most operations in flight when a wait began: of one context, or to one PE where the
    /// provider counts so.
    pub most_in_flight: u64,
}

impl NetworkActivity {
    /// Returns the counts by their names.
    pub fn by_name(self) -> [(&'static str, u64); 5] {
        let NetworkActivity { polls, sleeps, service_sleeps, retries, most_in_flight } = self;
        [
            ("polls", polls),
            ("sleeps", sleeps),
            ("service_sleeps", service_sleeps),
            ("retries", retries),
            ("most_in_flight", most_in_flight),
        ]
    }
}
