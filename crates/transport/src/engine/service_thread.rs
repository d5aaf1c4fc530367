//! The service thread of a PE: its loop decides when this thread makes progress on the network. A
//! thread that waits in the library polls by itself, which is fastest; meanwhile the service thread
//! backs off, since waking up for every message would slow that thread down. While no thread polls,
//! the service thread serves peers. In between it sleeps until there is an event, a call requests a
//! flush, or a time limit passes.

use super::driver::{Driver, Progress, Served, Sleeper};
use crate::Error;
use crate::progress::backoff::{FLUSH_DELAY, WaitLimits};
use crate::progress::schedule::{Schedule, Step, WaitingThreads};
use crate::progress::state::ProgressState;
use rushmem_system::thread::{self, spawn_service};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The polls of other threads that the service thread has seen.
struct SeenPolls {
    count: u64,
    /// The time of the last turn that found new ones.
    last: Instant,
}

impl SeenPolls {
    /// Returns the activity of other threads since the last call.
    fn activity(&mut self, state: &ProgressState) -> WaitingThreads {
        let count = state.polls();
        let polls = count.wrapping_sub(self.count);
        self.count = count;
        if polls > 0 {
            self.last = Instant::now();
        }

        WaitingThreads {
            polls,
            unpolled: self.last.elapsed(),
            any_sleeping: state.any_sleeping(),
            any_waiting: state.any_waiting(),
        }
    }
}

/// Runs the loop of the service thread until the state is closed.
fn run<N: Driver>(progress: &Progress<N>) {
    let driver = &*progress.network;
    let issuers = &progress.issuers;
    let state = progress.state();
    let wakeup = state.wakeup();

    let mut sleeper = Sleeper {
        state,
        schedule: Schedule::new(state.limits(), state.oversubscribed()),
        brief: FLUSH_DELAY,
        worked: false,
        last_event: Instant::now(),
    };
    let mut seen_polls = SeenPolls {
        count: 0,
        last: Instant::now(),
    };
    let mut checks = driver.checks();
    let mut backs_off = false;

    rushmem_system::log::debug!(
        oversubscribed = state.oversubscribed(),
        "the service thread runs"
    );

    while !state.is_closing() {
        checks();

        let others = seen_polls.activity(state);
        let step = sleeper.schedule.next(
            others,
            || wakeup.back_off(),
            || driver.longest_backoff(issuers),
        );

        let backed_off = backs_off;
        backs_off = step != Step::Poll;
        if backs_off && !backed_off {
            rushmem_system::log::trace!(
                sleeping = others.any_sleeping,
                "the service thread backs off: other threads poll"
            );
        } else if backed_off && !backs_off {
            rushmem_system::log::trace!("the service thread takes over: no other thread polls");
        }

        match step {
            Step::Poll => serve_and_sleep(progress, &mut sleeper),
            Step::Flush(time) => {
                // Before the flush: a call that leaves something unfinished later sets the timer.
                wakeup.clear_pending();
                if driver.flush(issuers) {
                    // Sets the timer: threads that sleep do not poll what is left.
                    state.request_flush();
                }
                back_off(progress, &mut sleeper, time);
            }
            Step::Sleep(time) => {
                wakeup.set_pending();
                back_off(progress, &mut sleeper, time);
            }
        }
    }

    rushmem_system::log::debug!("the service thread ends");
}

/// Sleeps for this time on the timer alone, while other threads poll. Afterwards completes what
/// calls have left unfinished meanwhile, perhaps without setting the timer.
fn back_off<N: Driver>(progress: &Progress<N>, sleeper: &mut Sleeper<'_>, time: Duration) {
    let state = progress.state();
    state.sleep(&[], time);
    state.wakeup().end_back_off();

    // The other threads may have found work, so the sleeps after the backoff are short again.
    sleeper.brief = FLUSH_DELAY;
    sleeper.last_event = Instant::now();

    progress.network.flush(&progress.issuers);
}

/// Serves peers, completes what calls have left unfinished, and sleeps as the driver decides.
fn serve_and_sleep<N: Driver>(progress: &Progress<N>, sleeper: &mut Sleeper<'_>) {
    let driver = &*progress.network;
    let issuers = &progress.issuers;
    let state = progress.state();

    let served = driver.serve();
    sleeper.worked = served == Served::Worked;
    if sleeper.worked {
        sleeper.last_event = Instant::now();
    }

    // Before the flush: a call that leaves something unfinished later sets the timer.
    state.wakeup().clear_pending();
    let is_left = driver.flush(issuers);

    match served {
        // The thread that serves may have lost its CPU, and needs one to go on.
        Served::Contended if state.oversubscribed() => {
            sleeper.briefly(&[], WaitLimits::LONGEST);
        }
        Served::Contended => sleeper.briefly(&[], FLUSH_DELAY),
        Served::Idle | Served::Worked => driver.sleep(issuers, is_left, sleeper),
    }

    // The next turn flushes, so calls need not set the timer.
    state.wakeup().set_pending();
}

/// A running service thread. Dropping this ends the thread and joins it.
pub struct ServiceThread<N: Driver> {
    progress: Arc<Progress<N>>,
    thread: Option<JoinHandle<()>>,
}

impl<N: Driver> ServiceThread<N> {
    /// Starts the service thread of a network, with this name.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(name: &str, progress: &Arc<Progress<N>>) -> Result<ServiceThread<N>, Error> {
        let of_thread = Arc::clone(progress);
        let thread = spawn_service(name, move || run(&*of_thread));
        let thread = thread.map_err(|error| Error::Unavailable(thread::refused(&error)))?;

        Ok(ServiceThread {
            progress: Arc::clone(progress),
            thread: Some(thread),
        })
    }

    /// Ends the thread and waits for its end.
    pub fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.progress.state().close();
            // An error says that the thread has panicked, which has printed why.
            let _ = thread.join();
        }
    }
}

impl<N: Driver> Drop for ServiceThread<N> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
