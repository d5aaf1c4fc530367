//! What a provider does for the threads that make progress on the network of a PE. Its [`Driver`]
//! polls for threads that wait in the library, serves peers, and says how the
//! [service thread](super::service_thread) sleeps.
//!
//! This module does not interpret what a poll finds.

use super::issuer::{Issuer, Issuers, WireLimit};
use super::origin::Origin;
use super::wire::{Wire, WireNetwork};
use crate::progress::backoff::FLUSH_DELAY;
use crate::progress::events::AwaitedWord;
use crate::progress::schedule::Schedule;
use crate::progress::state::ProgressState;
use crate::{EndpointUser, Error};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest sleep of an idle service thread over libraries that have timers of their own (UCX,
/// libfabric). They check some of these only while they are polled, so this bounds by how much such
/// a timer is late. Longer sleeps would save little, since a turn takes some tens of microseconds
/// of CPU time. The value was chosen without a measurement.
pub const MAX_SLEEP: Duration = Duration::from_secs(1);
/// Longest sleep of the service thread while operations are left that must be polled, or while data
/// are in flight over a library that transfers them only while it is polled. It bounds how long the
/// data wait for the next poll, except after long silence (`MAX_STALLED`). Shorter sleeps would
/// take more of a CPU from the program: with this limit, a transfer over libfabric whose peer did
/// not answer took all threads of two PEs 1.3 s of CPU time in 10 s before `MAX_STALLED` was
/// introduced.
pub const MAX_SLEEP_IN_FLIGHT: Duration = Duration::from_micros(200);
/// The longest of the sleeps that get longer because nothing has happened for long. Each turn takes
/// 25 us of CPU time over libfabric.
const MAX_STALLED: Duration = Duration::from_millis(5);
/// The time since something has last happened, divided by this, is the time for which the next
/// sleep may last. So an event is found late by at most this fraction of the time for which it was
/// awaited, and sleeps get longer than [`MAX_SLEEP_IN_FLIGHT`] only after 10 ms.
const STALLED_PART: u32 = 50;

/// What a provider does for the threads that make progress on its network.
pub trait Driver: WireNetwork + Sized + 'static {
    /// The wire over which endpoints issue operations.
    type Wire: Wire<Network = Self>;

    /// Opens a wire for the endpoints of a user.
    ///
    /// # Errors
    /// When the network has no more endpoints, or a PE was lost.
    fn open_wire(self: &Arc<Self>, user: EndpointUser) -> Result<Self::Wire, Error>;

    /// Polls all issuers ([`Issuers::finish_in_wait`]) and serves peers, for a thread that waits,
    /// and counts the poll ([`ProgressState::count_poll`]). Returns true if there was work for
    /// peers.
    ///
    /// # Errors
    /// When a PE was lost.
    fn poll(&self, issuers: &Issuers<Self::Wire>) -> Result<bool, Error>;

    /// Makes progress on the operations that calls left unfinished, except those that another
    /// thread is polling ([`Issuers::finish_in_service`]), and on what the provider has left, such
    /// as replies for which there was no room. Does not wait. Returns true if some are left that
    /// must be polled again, since no descriptor signals their end or their thread is issuing more.
    fn flush(&self, issuers: &Issuers<Self::Wire>) -> bool;

    /// Serves peers, if no other thread does: carries out what has arrived. One thread at a time
    /// serves; others only try the lock.
    ///
    /// Whatever thread receives, also one that waits, then does the following. Otherwise other
    /// threads may sleep on.
    ///
    /// - If memory of this PE may have changed, it calls [`arrived(0)`](crate::Host::arrived):
    ///   threads wait for words of the program. The conformance suite does not find that this is
    ///   missing, since its host wakes none.
    /// - After any work it calls [`ProgressState::record_event`]: threads wait for replies or
    ///   completions.
    fn serve(&self) -> Served;

    /// Lets the service thread sleep: calls one method of `sleeper`, with the descriptors that
    /// signal events of peers, unless there is an event already. The descriptors include those of
    /// [unfinished operations](Issuers::events), unless the last flush has left some that must be
    /// polled (`is_left`).
    fn sleep(&self, issuers: &Issuers<Self::Wire>, is_left: bool, sleeper: &mut Sleeper<'_>);

    /// Lets a thread sleep as [`Transport::wait`](crate::Transport::wait): prepares the descriptors
    /// to signal an event, calls `is_over`, and sleeps by [`ProgressState::sleep_until_event`]
    /// unless that has returned true. Sleeps briefly if the provider has left something that
    /// nothing signals.
    fn sleep_in_wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Woken;

    /// Returns the longest time for which the service thread may back off now. It is short while
    /// data are in flight that move only when they are polled.
    fn longest_backoff(&self, issuers: &Issuers<Self::Wire>) -> Duration;

    /// Returns a function that the service thread calls at the start of each turn, such as one that
    /// finds silent hosts.
    fn checks(&self) -> impl FnMut();

    /// Leaves the job, after the service thread has ended. A provider that keeps replies for which
    /// there was no room sends them first, for a limited time: a peer may wait for them.
    fn leave(progress: &Arc<Progress<Self>>);
}

/// The network of this PE, and its issuers. Fields are dropped in this order.
pub struct Progress<N: Driver> {
    pub(super) issuers: Issuers<N::Wire>,
    pub(super) network: Arc<N>,
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

    /// Polls all issuers and serves peers as [`Driver::poll`], and wakes the tasks whose operations
    /// are complete then. Returns true if there was work for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    pub fn poll(&self) -> Result<bool, Error> {
        let worked = self.network.poll(&self.issuers)?;
        if worked && self.state().any_tasks() {
            // The data that have arrived may be what a task awaits, and the calling thread may not
            // poll again.
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

    pub(super) fn state(&self) -> &ProgressState {
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
    pub(super) state: &'a ProgressState,
    pub(super) schedule: Schedule,
    /// The length of the next short sleep.
    pub(super) brief: Duration,
    /// True if the last attempt to serve peers found work.
    pub(super) worked: bool,
    /// The time at which an attempt to serve peers has last found work, or at which a sleep has
    /// last ended before its time: by an event, or by a call that requests a flush.
    pub(super) last_event: Instant,
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

    /// Sleeps as [`briefly`](Self::briefly), unless nothing has happened for long. Then the sleep
    /// is [longer](Self::stalled), and a call that requests a flush ends it.
    pub fn briefly_unless_stalled(&mut self, descriptors: &[BorrowedFd<'_>], at_most: Duration) {
        let stalled = self.stalled();
        if stalled > at_most && !descriptors.is_empty() {
            self.sleep(descriptors, stalled);
        } else {
            self.briefly(descriptors, at_most);
        }
    }

    /// Returns the time for which a sleep may last although not every event is signaled: a part of
    /// the time since the last event.
    pub fn stalled(&self) -> Duration {
        (self.last_event.elapsed() / STALLED_PART).min(MAX_STALLED)
    }

    fn sleep(&mut self, descriptors: &[BorrowedFd<'_>], time: Duration) {
        let is_ended_early = self.state.sleep(descriptors, time);
        if is_ended_early {
            self.last_event = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Open;
    use crate::engine::NetworkPe;
    use crate::progress::backoff::WaitLimits;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn sleeps_get_longer_once_nothing_has_happened_for_long() {
        static LIMITS: WaitLimits = WaitLimits::for_tests();
        let local = NetworkPe::<()>::new(&Open::for_tests(), "here".to_owned(), &LIMITS);
        let state = local.expect("a timer").state;
        let long_ago = Instant::now().checked_sub(LONG).expect("a later time");
        let mut sleeper = Sleeper {
            state: &state,
            schedule: Schedule::new(&LIMITS, false),
            brief: FLUSH_DELAY,
            worked: false,
            last_event: long_ago,
        };

        sleeper.until(&[], Duration::ZERO);
        assert_eq!(sleeper.stalled(), MAX_STALLED);

        state.wake();
        sleeper.until(&[], LONG);
        assert!(sleeper.last_event > long_ago);

        sleeper.last_event = Instant::now();
        assert!(sleeper.stalled() < MAX_SLEEP_IN_FLIGHT);
    }
}
