//! The wait of a thread for operations of its own: the thread polls until they are complete, serves
//! peers meanwhile, and yields and sleeps as [`backoff`](super::backoff) says.

use super::backoff::Pause;
use super::state::{ProgressState, counts_in_flight};
use crate::{AwaitedOperations, Error, Host, Pe, WaitReport};
use std::time::Duration;

/// An object whose thread waits for operations, such as an origin during a call.
pub trait Waiter {
    /// Returns the state that the service thread shares with threads that wait.
    fn state(&self) -> &ProgressState;

    /// Serves peers after an attempt that did not end the wait. `worked` says whether the attempt
    /// found work. Returns true if the attempt or this call found any.
    ///
    /// # Errors
    /// If a PE was lost.
    fn serve(&mut self, worked: bool) -> Result<bool, Error>;

    /// Sleeps until there may be an event, for `at_most` at the longest.
    fn sleep(&mut self, at_most: Duration);

    /// Returns the number of operations that are in flight or batched.
    fn in_flight(&self) -> u64;

    /// Returns the host, to which a long wait is reported.
    fn host(&self) -> &dyn Host;

    /// Returns the PEs to name in the report of a long wait: one, or all with unfinished
    /// operations.
    fn awaited(&self) -> Vec<Pe>;
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt<T> {
    /// The wait is over.
    Done(T),
    /// The wait is not over, but there was work.
    Worked,
    /// There was nothing to do.
    Idle,
}

/// Repeats `attempt` until it is done.
///
/// # Errors
/// Those of `attempt`, and of [`Waiter::serve`].
#[inline]
pub fn wait<W: Waiter, T>(
    waiter: &mut W,
    mut attempt: impl FnMut(&mut W) -> Result<Attempt<T>, Error>,
) -> Result<T, Error> {
    // Counted before the first attempt, which polls and may already complete operations.
    if counts_in_flight() {
        waiter.state().count_in_flight(waiter.in_flight());
    }

    // Made after the first attempt that does not end the wait: most calls need neither.
    let mut backoff = None;
    let mut report = None;

    let result = loop {
        let worked = match attempt(waiter) {
            Ok(Attempt::Done(done)) => break Ok(done),
            Ok(Attempt::Worked) => true,
            Ok(Attempt::Idle) => false,
            Err(error) => break Err(error),
        };

        let backoff = backoff.get_or_insert_with(|| waiter.state().begin_wait());
        let worked = match waiter.serve(worked) {
            Ok(worked) => worked,
            Err(error) => break Err(error),
        };

        if backoff.pause(worked) == Pause::Sleep {
            let at_most = waiter.state().limits().sleep;
            waiter.sleep(at_most);
            report_sleep(&mut report, waiter);
        }
    };

    if let Some(backoff) = backoff {
        waiter.state().end_wait(&backoff);
    }
    result
}

/// Reports that a wait goes on after a sleep.
#[cold]
fn report_sleep(report: &mut Option<Box<dyn WaitReport>>, waiter: &impl Waiter) {
    let report = report.get_or_insert_with(|| waiter.host().report_wait());
    report.check(&mut || AwaitedOperations {
        pes: waiter.awaited(),
        in_flight: waiter.in_flight(),
    });
}
