//! The progress engine: the loop of the service thread, which decides when this thread makes
//! progress on the network of a PE. A thread that waits in the library polls by itself, which is
//! fastest; meanwhile the service thread backs off, since waking up for every message would slow
//! that thread down. While no thread polls, the service thread serves peers. In between it sleeps
//! until there is an event, a call requests a flush, or a time limit passes.
//!
//! A provider implements [`Driver`] for its network. This module does not interpret what a poll
//! finds.

use super::issuer::{Issuer, Issuers, WireLimit};
use super::origin::Origin;
use super::wire::{Wire, WireNetwork};
use crate::progress::backoff::{FLUSH_DELAY, WaitLimits};
use crate::progress::events::AwaitedWord;
use crate::progress::schedule::{Schedule, Step, WaitingThreads};
use crate::progress::state::ProgressState;
use crate::{EndpointUser, Error};
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
/// The longest of the sleeps that get longer because nothing has happened for long. Each turn takes
/// 25 us of CPU time over libfabric.
const MAX_STALLED: Duration = Duration::from_millis(5);
/// The part of the time since something has last happened for which the next sleep may last. So
/// nothing is found later than by this part of its wait, and sleeps get longer than
/// [`MAX_SLEEP_IN_FLIGHT`] only after 10 ms.
const STALLED_PART: u32 = 50;

/// What a provider does for the threads that make progress on its network: threads that wait, and
/// the service thread.
pub trait Driver: WireNetwork + Sized + 'static {
    /// The wire over which endpoints issue operations.
    type Wire: Wire<Network = Self>;

    /// Opens a wire for the endpoints of a user.
    ///
    /// # Errors
    /// When the network has no more endpoints, or a PE was lost.
    fn open_wire(self: &Arc<Self>, user: EndpointUser) -> Result<Self::Wire, Error>;

    /// Polls all issuers and serves peers, for a thread that waits. Returns true if there was work
    /// for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    fn poll(&self, issuers: &Issuers<Self::Wire>) -> Result<bool, Error>;

    /// Makes progress on the operations that calls left unfinished, except those that another
    /// thread is polling. Does not wait. Returns true if some are left that must be polled again,
    /// since no descriptor signals their end or their thread is issuing more.
    fn flush(&self, issuers: &Issuers<Self::Wire>) -> bool;

    /// Serves peers, if no other thread does.
    fn serve(&self) -> Served;

    /// Unless there is an event already, calls one method of `sleeper`, with the descriptors that
    /// signal events of peers. [Events](Issuers::events) of unfinished operations are included
    /// unless the last flush returned true (`is_left`).
    fn sleep(&self, issuers: &Issuers<Self::Wire>, is_left: bool, sleeper: &mut Sleeper<'_>);

    /// Lets a thread sleep as [`Transport::wait`](crate::Transport::wait).
    fn sleep_in_wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Woken;

    /// Returns the longest time for which the service thread may back off now. It is short while
    /// data are in flight that move only when they are polled.
    fn longest_backoff(&self, issuers: &Issuers<Self::Wire>) -> Duration;

    /// Returns a function that the service thread calls at the start of each turn.
    fn checks(&self) -> impl FnMut();

    /// Leaves the job, after the service thread has ended.
    fn leave(progress: &Arc<Progress<Self>>);
}

/// The network of this PE, and its issuers. Fields are dropped in this order.
pub struct Progress<N: Driver> {
    pub(super) issuers: Issuers<N::Wire>,
    network: Arc<N>,
    wire_limit: WireLimit,
}

impl<N: Driver> Progress<N> {
    /// Returns a network without issuers.
    pub fn new(network: N, wire_limit: WireLimit) -> Progress<N> {
        Progress {
            issuers: Issuers::default(),
            network: Arc::new(network),
            wire_limit,
        }
    }

    /// Returns the network.
    pub fn network(&self) -> &Arc<N> {
        &self.network
    }

    /// Returns the issuers.
    pub fn issuers(&self) -> &Issuers<N::Wire> {
        &self.issuers
    }

    /// Works as [`Driver::poll`], and wakes the tasks whose operations are complete then.
    ///
    /// # Errors
    /// When a PE was lost.
    pub fn poll(&self) -> Result<bool, Error> {
        let worked = self.network.poll(&self.issuers)?;
        if worked && self.state().any_tasks() {
            // The calling thread may not poll again.
            self.issuers.finish_in_wait();
        }
        Ok(worked)
    }

    /// Returns an issuer for one more endpoint of a user: a new one, or one that others use, too.
    ///
    /// # Errors
    /// The errors of [`Driver::open_wire`], if there is no wire to share.
    pub(super) fn issuer(&self, user: EndpointUser) -> Result<Arc<Issuer<N::Wire>>, Error> {
        self.issuers.issuer(user, self.wire_limit, || {
            // This runs under the lock of the list of issuers, so replies to which the wire adds
            // itself get the same number as the origin.
            let wire = self.network.open_wire(user)?;
            Ok(Origin::new(wire, Arc::clone(&self.network)))
        })
    }

    fn state(&self) -> &ProgressState {
        &self.network.local().state
    }
}

/// Why a thread that [sleeps in a wait](Driver::sleep_in_wait) does not sleep any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Another thread has received what arrived.
    ByOthers,
    /// There may be work, for which the thread polls.
    ToPoll,
    /// There was an event, so the thread must not sleep at once again after its poll.
    ByEvent,
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

/// The sleeps of the service thread while no other thread polls: the driver calls one of the
/// methods. While others poll, the loop of the thread sleeps by the schedule.
pub struct Sleeper<'a> {
    state: &'a ProgressState,
    schedule: Schedule,
    /// The length of the next short sleep.
    brief: Duration,
    /// The last attempt to serve peers found work.
    worked: bool,
    /// The time at which an attempt to serve peers has last found work, or something else than the
    /// time has ended a sleep: an event, or a call that requests a flush.
    happened: Instant,
}

impl Sleeper<'_> {
    /// Sleeps until one of the descriptors is ready or a call requests a flush, for `at_most` at
    /// the longest.
    pub fn until(&mut self, descriptors: &[BorrowedFd<'_>], at_most: Duration) {
        self.sleep(descriptors, at_most);
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
        self.sleep(descriptors, time);
    }

    /// Works as [`briefly`](Self::briefly) until nothing has happened for long. Then the sleep is
    /// [longer](Self::stalled), and a call that requests a flush ends it.
    pub fn briefly_unless_stalled(&mut self, descriptors: &[BorrowedFd<'_>], at_most: Duration) {
        let stalled = self.stalled();
        if stalled > at_most && !descriptors.is_empty() {
            self.sleep(descriptors, stalled);
        } else {
            self.briefly(descriptors, at_most);
        }
    }

    /// Returns the time for which a sleep may last because nothing has happened for long, although
    /// not every event is signaled.
    pub fn stalled(&self) -> Duration {
        (self.happened.elapsed() / STALLED_PART).min(MAX_STALLED)
    }

    fn sleep(&mut self, descriptors: &[BorrowedFd<'_>], time: Duration) {
        let is_ended = self.state.sleep(descriptors, time);
        if is_ended {
            self.happened = Instant::now();
        }
    }
}

/// Runs the loop of the service thread until the state is closed.
fn run<N: Driver>(progress: &Progress<N>) {
    let driver = &*progress.network;
    let issuers = &progress.issuers;
    let state = progress.state();

    let wakeup = state.wakeup();
    let schedule = Schedule::new(state.limits(), state.oversubscribed());
    let mut sleeper = Sleeper {
        state,
        schedule,
        brief: FLUSH_DELAY,
        worked: false,
        happened: Instant::now(),
    };

    let mut checks = driver.checks();
    let mut seen = 0;
    let mut polled_at = Instant::now();
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

        let step = sleeper.schedule.next(
            others,
            || wakeup.back_off(),
            || driver.longest_backoff(issuers),
        );

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
                flush_or_request(progress);
            } else {
                wakeup.set_pending();
            }

            state.sleep(&[], time);
            sleeper.happened = Instant::now();
            wakeup.end_back_off();
            driver.flush(issuers);
            continue;
        }

        if std::mem::take(&mut backs_off) {
            rushmem_system::log::trace!("the service thread takes over: no other thread polls");
        }

        let served = driver.serve();
        sleeper.worked = served == Served::Worked;
        if sleeper.worked {
            sleeper.happened = Instant::now();
        }
        wakeup.clear_pending();
        let is_left = driver.flush(issuers);

        match served {
            // The thread that serves may have lost its CPU, and needs one to go on.
            Served::Contended if state.oversubscribed() => {
                sleeper.briefly(&[], WaitLimits::LONGEST);
            }
            Served::Contended => sleeper.briefly(&[], FLUSH_DELAY),
            Served::Idle | Served::Worked => driver.sleep(issuers, is_left, &mut sleeper),
        }

        wakeup.set_pending();
    }

    rushmem_system::log::debug!("the service thread ends");
}

/// Flushes, and requests another flush if operations are left, for a thread that will not poll them
/// again soon.
fn flush_or_request<N: Driver>(progress: &Progress<N>) {
    if progress.network.flush(&progress.issuers) {
        progress.state().request_flush();
    }
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
        let progress = Arc::clone(progress);
        let its = Arc::clone(&progress);

        let thread = spawn_service(name, move || run(&*its));
        let thread = thread.map_err(|error| Error::Unavailable(thread::refused(&error)))?;

        Ok(ServiceThread {
            progress,
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
