//! Limits the number of jobs and compilers that a test program runs at the same time, since tests
//! run in more threads than machines have processors.

use std::sync::{Condvar, Mutex, PoisonError};

/// Returns the maximum number of permits: RUSHMEM_TEST_JOBS, but at least 1, or 2 by default.
fn limit() -> usize {
    std::env::var("RUSHMEM_TEST_JOBS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2)
        .max(1)
}

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

/// The permission to run a job or a compiler, until it is dropped.
pub(crate) struct Permit(());

/// Waits for a [`Permit`].
pub(crate) fn take() -> Permit {
    let limit = limit();
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
