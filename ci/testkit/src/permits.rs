//! Limits the number of jobs and compilers that a test program runs at the same time, since tests
//! run in more threads than machines have processors.

use std::sync::{Condvar, Mutex, PoisonError};

/// The maximum number of permits, unless RUSHMEM_TEST_JOBS is a number. It suits machines of two
/// processors.
const DEFAULT_LIMIT: usize = 2;

/// Returns the maximum number of permits.
fn limit() -> usize {
    let Ok(text) = std::env::var("RUSHMEM_TEST_JOBS") else {
        return DEFAULT_LIMIT;
    };
    match text.parse() {
        // Without a permit no test would end.
        Ok(0) => 1,
        Ok(limit) => limit,
        Err(_) => DEFAULT_LIMIT,
    }
}

/// The number of permits that are taken.
static TAKEN: Mutex<usize> = Mutex::new(0);
/// Is notified when a permit is given back.
static GIVEN_BACK: Condvar = Condvar::new();

/// The permission to run a job or a compiler, until it is dropped.
pub(crate) struct Permit(());

/// Waits for a [`Permit`].
pub(crate) fn take() -> Permit {
    let limit = limit();
    // A test that panics leaves the number right: the permit is given back by its drop.
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    while *taken >= limit {
        taken = GIVEN_BACK
            .wait(taken)
            .unwrap_or_else(PoisonError::into_inner);
    }
    *taken += 1;
    Permit(())
}

impl Drop for Permit {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        GIVEN_BACK.notify_one();
    }
}
