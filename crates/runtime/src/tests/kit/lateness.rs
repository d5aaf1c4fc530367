//! Makes a PE late at the steps of its collectives, as a seed decides, and counts these steps.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Where a PE is late. Relaxed: threads of the PE may draw the same number.
pub(super) struct Lateness {
    /// The state of the random numbers; `None` for a PE that is never late.
    state: Option<AtomicU64>,
    /// The number of steps that the PE has taken.
    steps: AtomicU64,
}

thread_local! {
    /// The lateness of the PE for which this thread acts.
    static CURRENT: Cell<Option<&'static Lateness>> = const { Cell::new(None) };
}

/// Called before each step of a collective, an agreement or a test, which may make the PE late. The
/// threads of the library are never late.
pub(crate) fn before_step() {
    if let Some(lateness) = CURRENT.get() {
        lateness.before_step();
    }
}

/// Records for which PE the calling thread acts.
pub(super) fn act_for(lateness: &'static Lateness) {
    CURRENT.set(Some(lateness));
}

impl Lateness {
    /// Returns the lateness of a PE with this seed.
    pub(super) fn of(seed: Option<u64>) -> Lateness {
        Lateness {
            state: seed.map(AtomicU64::new),
            steps: AtomicU64::new(0),
        }
    }

    /// Counts a step. Sleeps or yields before some of them.
    fn before_step(&self) {
        self.steps.fetch_add(1, Relaxed);
        let Some(state) = &self.state else {
            return;
        };

        let mut rng = fastrand::Rng::with_seed(state.load(Relaxed));
        let drawn = rng.u32(0..48);
        state.store(rng.get_seed(), Relaxed);
        match drawn {
            0 => thread::sleep(Duration::from_micros(rng.u64(1..300))),
            1..6 => thread::yield_now(),
            _ => {}
        }
    }

    /// Returns the number of steps so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Relaxed)
    }
}
