//! The progress engine: the loop of the service thread, which decides when this thread makes
//! progress on the network of a PE. A thread that waits in the library polls by itself, which is
//! fastest; meanwhile the service thread backs off, since waking up for every message would slow
//! that thread down. While no thread polls, the service thread serves peers. In between it sleeps
//! until there is an event, a call requests a flush, or a time limit passes.
//!
//! A provider implements [`Driver`] for its service thread. This module does not interpret what a
//! poll finds.

use super::backoff::{FLUSH_DELAY, WaitLimits};
use super::schedule::{Schedule, Step, WaitingThreads};
use super::state::ProgressState;
use crate::Error;
use rushmem_system::thread::{self, spawn_service};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest sleep of an idle service thread over libraries that have timers of their own (UCX,
/// libfabric).
pub const MAX_SLEEP: Duration = Duration::from_secs(1);
/// Longest sleep of the service thread while operations are left that must be polled, or while data
/// are in flight over a library that transfers them only while it is polled.
pub const MAX_SLEEP_IN_FLIGHT: Duration = Duration::from_micros(200);

/// The work that a provider does for the service thread of a PE.
pub trait Driver: Send + Sync + 'static {
    /// Returns the state that the service thread shares with threads that wait.
    fn state(&self) -> &ProgressState;

    /// Makes progress on the operations that calls left unfinished, except those that another
    /// thread is polling. Does not wait. Returns true if some are left that must be polled again,
    /// since no descriptor signals their end or their thread is issuing more.
    fn flush(&self) -> bool;

    /// Serves peers, if no other thread does.
    fn serve(&self) -> Served;

    /// Unless there is an event already, calls one method of `sleeper`, with the descriptors that
    /// signal events of peers. Descriptors of unfinished operations are included unless the last
    /// flush returned true (`is_left`).
    fn sleep(&self, is_left: bool, sleeper: &mut Sleeper<'_>);

    /// Returns the longest time for which the service thread may back off now. It is short while
    /// data are in flight that move only when they are polled.
    fn longest_backoff(&self) -> Duration {
        MAX_SLEEP
    }

    /// Returns a function that the service thread calls at the start of each turn.
    fn checks(&self) -> impl FnMut() {
        || ()
    }
}

/// The result of an attempt to serve peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// There was nothing to do.
    Idle,
    /// There was work.
    Worked,
    /// Another thread is serving peers; it may have lost its CPU.
    Contended,
}

/// The sleeps of the service thread. While other threads poll, the loop sleeps by the schedule;
/// otherwise the driver chooses a method.
pub struct Sleeper<'a> {
    state: &'a ProgressState,
    schedule: Schedule,
    /// The length of the next short sleep.
    brief: Duration,
    /// The last attempt to serve peers found work.
    worked: bool,
}

impl Sleeper<'_> {
    /// Sleeps until one of the descriptors is ready or a call requests a flush, for `at_most` at
    /// the longest.
    pub fn until(&mut self, descriptors: &[BorrowedFd<'_>], at_most: Duration) {
        self.state.sleep(descriptors, at_most);
        self.brief = FLUSH_DELAY;
    }

    /// Sleeps until one of the descriptors is ready, or until a time has passed that doubles with
    /// each such sleep, up to `at_most`, because not every event is signaled. Without descriptors
    /// it does not double while there is work. Calls need not request a flush: the thread flushes
    /// soon anyway.
    pub fn briefly(&mut self, descriptors: &[BorrowedFd<'_>], at_most: Duration) {
        self.state.wakeup().set_pending();
        if self.worked && descriptors.is_empty() {
            self.brief = FLUSH_DELAY;
        }
        let time = self.brief.min(at_most);
        self.brief = time * 2;
        self.state.sleep(descriptors, time);
    }
}

/// Runs the loop of the service thread until the state is closed.
fn run(driver: &impl Driver) {
    let state = driver.state();
    let wakeup = state.wakeup();
    let schedule = Schedule::new(state.limits(), state.oversubscribed());
    let mut sleeper = Sleeper {
        state,
        schedule,
        brief: FLUSH_DELAY,
        worked: false,
    };
    let mut checks = driver.checks();
    let (mut seen, mut polled_at) = (0, Instant::now());
    let mut backs_off = false;
    rushmem_system::log::debug!(
        oversubscribed = state.oversubscribed(),
        "the service thread runs"
    );
    while !state.is_closing() {
        checks();
        let all = state.polls();
        let polls = all.wrapping_sub(std::mem::replace(&mut seen, all));
        if polls > 0 {
            polled_at = Instant::now();
        }
        let others = WaitingThreads {
            polls,
            unpolled: polled_at.elapsed(),
            sleep: state.any_sleeping(),
            wait: state.any_waiting(),
        };
        let back_off = || wakeup.back_off();
        let step = sleeper
            .schedule
            .next(others, back_off, || driver.longest_backoff());
        if let Step::Flush(time) | Step::Sleep(time) = step {
            if !std::mem::replace(&mut backs_off, true) {
                let sleeping = others.sleep;
                rushmem_system::log::trace!(
                    sleeping,
                    "the service thread backs off: other threads poll"
                );
            }
            sleeper.brief = FLUSH_DELAY;
            if matches!(step, Step::Flush(_)) {
                wakeup.clear_pending();
                flush_or_request(driver);
            } else {
                wakeup.set_pending();
            }
            state.sleep(&[], time);
            wakeup.end_back_off();
            driver.flush();
            continue;
        }
        if std::mem::take(&mut backs_off) {
            rushmem_system::log::trace!("the service thread takes over: no other thread polls");
        }
        let served = driver.serve();
        sleeper.worked = served == Served::Worked;
        wakeup.clear_pending();
        let is_left = driver.flush();
        match served {
            // The thread that serves may have lost its CPU, and needs one to go on.
            Served::Contended if state.oversubscribed() => {
                sleeper.briefly(&[], WaitLimits::LONGEST);
            }
            Served::Contended => sleeper.briefly(&[], FLUSH_DELAY),
            Served::Idle | Served::Worked => driver.sleep(is_left, &mut sleeper),
        }
        wakeup.set_pending();
    }
    rushmem_system::log::debug!("the service thread ends");
}

/// Flushes, and requests another flush if operations are left, for a thread that will not poll them
/// again soon.
pub fn flush_or_request(driver: &impl Driver) {
    if driver.flush() {
        driver.state().request_flush();
    }
}

/// A running service thread. Dropping this ends the thread and joins it.
pub struct ServiceThread<D: Driver> {
    driver: Arc<D>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Driver> ServiceThread<D> {
    /// Starts the service thread of a driver, with this name.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(name: &str, driver: &Arc<D>) -> Result<ServiceThread<D>, Error> {
        let driver = Arc::clone(driver);
        let its = Arc::clone(&driver);
        let thread = spawn_service(name, move || run(&*its));
        let thread = thread.map_err(|error| Error::Unavailable(thread::refused(&error)))?;
        Ok(ServiceThread {
            driver,
            thread: Some(thread),
        })
    }

    /// Ends the thread and waits for its end.
    pub fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.driver.state().close();
            // A thread that panicked has printed why.
            let _ = thread.join();
        }
    }
}

impl<D: Driver> Drop for ServiceThread<D> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
