//! What is known of what an origin has issued, and how a call waits: it polls the wire and, at
//! times, serves peers.

use super::acks::IssuedRequests;
use super::batching::Batcher;
use super::message::{Reply, Request};
use super::replies::AnswerSlots;
use super::wire::{PolledUntil, PostOutcome, Wire, WireCaps, WireNetwork};
use crate::peers::damaged;
use crate::progress::backoff::Backoff;
use crate::progress::state::ProgressState;
use crate::progress::wait::{Attempt, Waiter, wait};
use crate::segments::heap_blocks::ENTRY;
use crate::{Error, Host, Pe, PeMap};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A batch that found no room.
pub(super) struct UnsentRequest {
    pub(super) pe: Pe,
    pub(super) request: Request,
    pub(super) batch: Vec<u8>,
}

/// The state of all that the contexts of one wire issue, to every peer.
pub struct Origin<W: Wire> {
    pub(super) wire: W,
    pub(super) caps: WireCaps,
    pub(super) issued: IssuedRequests,
    pub(super) batcher: Batcher,
    /// Small operations are batched now, unless they are lone ones.
    pub(super) batches: bool,
    pub(super) slots: AnswerSlots,
    /// Requests that were issued while their owner was elsewhere, and found no room.
    pub(super) unsent: VecDeque<UnsentRequest>,
    pub(super) routes: PeMap<Route>,
    /// The PEs towards which the wire may have something to do, or that owe an answer.
    pub(super) active: Vec<Pe>,
    /// Counts the polls of calls that wait.
    pub(super) polls: u32,
    /// The buffer into which the entry of a block is read. It outlives a call that fails.
    pub(super) entry: Box<[u8; ENTRY]>,
}

/// The record of what was issued to one PE.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// It is among the active ones.
    pub(super) active: bool,
    /// There were writes, or atomic operations of the network's, since the last flush began.
    pub(super) dirty: bool,
    /// A flush has begun that is not known to have ended.
    pub(super) flushing: bool,
    /// Before the last fence there were writes that were not known to be complete.
    pub(super) writes_before: bool,
    /// The number of requests without an answer.
    pub(super) unanswered: u32,
    /// The PE was reached.
    pub(super) reached: bool,
    /// The [count of fences](IssuedRequests::fences) when a write was last made to follow what was
    /// issued before.
    pub(super) ordered_at: u64,
}

impl<W: Wire> Origin<W> {
    /// Returns an origin over a wire of a PE.
    pub fn new(wire: W, network: &W::Network) -> Origin<W> {
        let acks = &network.local().acks;
        let (caps, n_pes) = (wire.caps(), acks.n_pes());
        let (number, counts) = acks.origin();
        Origin {
            wire,
            caps,
            issued: IssuedRequests::new(number, counts, n_pes, caps.window),
            batcher: Batcher::new(n_pes, caps.longest_batch),
            batches: caps.batches,
            slots: AnswerSlots::default(),
            unsent: VecDeque::new(),
            routes: PeMap::new(n_pes),
            active: Vec::new(),
            polls: 0,
            entry: Box::new([0; ENTRY]),
        }
    }

    /// Returns the wire.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// Returns the number of this origin, and that of the requests that a PE has acknowledged.
    pub fn acked(&self, pe: Pe) -> (u32, u32) {
        (self.issued.stream(pe).origin, self.issued.acked(pe))
    }

    /// Returns true if it must be polled for something to complete.
    pub(super) fn is_unfinished(&self) -> bool {
        match self.caps.polled {
            PolledUntil::Started => self.waits_to_send(),
            _ => !self.active.is_empty() || !self.unsent.is_empty(),
        }
    }

    /// Returns true if the wire may have to be polled for requests that it has taken. That stays so
    /// until a call completes them: otherwise each signal of a barrier would wake the service
    /// thread.
    pub(super) fn awaits_acks(&self) -> bool {
        self.caps.polled == PolledUntil::Acknowledged && !self.issued.awaiting_ack().is_empty()
    }

    /// Returns true if small operations wait to be sent.
    pub(super) fn waits_to_send(&self) -> bool {
        !self.batcher.pes().is_empty() || !self.unsent.is_empty()
    }

    /// Returns true if no descriptor signals what is next.
    pub(super) fn must_be_polled(&self) -> bool {
        let is_unacked = self.caps.polled == PolledUntil::Acknowledged && self.issued.any_unacked();
        self.waits_to_send() || !self.wire.arm(is_unacked)
    }

    /// Returns true if operations are in flight, or small ones wait to be sent.
    pub fn moves_data(&self) -> bool {
        self.wire.in_flight() > 0 || self.waits_to_send()
    }

    /// Returns the number of operations and requests that have not ended.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.wire.in_flight() + self.slots.n_unanswered()
    }

    /// Connects to a PE of the job, unless that was done before.
    #[inline]
    pub(super) fn reach(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        network.local().loss.check()?;
        match self.routes.get(pe) {
            Some(route) if route.reached => Ok(()),
            _ => self.reach_first(network, pe),
        }
    }

    #[cold]
    fn reach_first(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        if pe.index() >= self.routes.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        // The connection may depend on another PE that waits for an operation in an open batch.
        self.send_open_batches(network)?;
        if !self.wire.reach(network, pe)? {
            self.until(network, Some(pe), |origin| origin.wire.reach(network, pe))?;
        }
        self.routes[pe].reached = true;
        Ok(())
    }

    /// Records that the wire may have something to do towards a PE.
    #[inline]
    pub(super) fn activate(&mut self, pe: Pe) {
        if !std::mem::replace(&mut self.routes[pe].active, true) {
            self.active.push(pe);
        }
    }

    /// Removes a PE from the list to poll if nothing is left to do towards it, after a call has
    /// waited for its operation.
    #[inline]
    pub(super) fn forget_idle(&mut self, pe: Pe) {
        let route = &mut self.routes[pe];
        let is_idle = route.unanswered == 0 && !route.dirty && !route.flushing;
        if is_idle
            && self.active.last() == Some(&pe)
            && self.wire.in_flight_to(pe) == 0
            && !self.batcher.has_any(pe)
            && self.unsent.is_empty()
        {
            (route.active, route.writes_before) = (false, false);
            self.active.pop();
        }
    }

    /// Lets the wire work and takes what has come. Returns whether there was anything to do.
    pub(super) fn progress(&mut self, network: &W::Network) -> Result<bool, Error> {
        let Origin { wire, slots, routes, issued, .. } = self;
        let acks = &network.local().acks;
        let worked = wire.poll(network, &mut |Reply { pe, ack, old }, bytes| {
            acks.acknowledge(pe, ack)?;
            if let Some((slot, old)) = old {
                routes[slots.answer(slot, old, bytes)?].unanswered -= 1;
            }
            Ok(())
        })?;
        let mut is_used =
            |pe| routes.get(pe).is_some_and(|route| route.active) || issued.awaits_ack_of(pe);
        if let Some((pe, why)) = wire.broken(&mut is_used) {
            return Err(network.lose(pe, &why));
        }
        if !self.unsent.is_empty() {
            self.send_unsent(network)?;
        }
        network.local().loss.check().map(|()| worked)
    }

    /// Ends the operations in flight after a loss, so that the network uses no memory of callers
    /// any more.
    ///
    /// # Errors
    /// Why it may still use some.
    pub(super) fn abandon(&mut self, network: &W::Network) -> Result<(), String> {
        self.batcher.forget();
        self.slots.forget();
        self.unsent.clear();
        self.wire.abandon(network)
    }
}

/// The interval at which a waiting PE that receives no event checks that its peers are alive.
const UNCONFIRMED_AFTER: Duration = Duration::from_secs(1);

/// An attempt to start an operation.
type TryPost<'a, W> = &'a mut dyn FnMut(&mut W) -> Result<PostOutcome<<W as Wire>::Token>, Error>;

/// An origin whose owner waits.
struct Waiting<'a, W: Wire> {
    origin: &'a mut Origin<W>,
    network: &'a W::Network,
    /// The PE that it waits for, if it is one.
    towards: Option<Pe>,
    /// The first sleep since there was an event.
    silent_since: Option<Instant>,
}

impl<W: Wire> Waiter for Waiting<'_, W> {
    fn state(&self) -> &ProgressState {
        &self.network.local().state
    }

    fn poll(&mut self, worked: bool, _: &mut Backoff) -> Result<bool, Error> {
        if self.silent_since.is_some_and(|since| since.elapsed() > UNCONFIRMED_AFTER) {
            self.silent_since = None;
            for pe in self.awaited() {
                self.origin.wire.confirm(self.network, pe)?;
            }
        }
        let origin = &mut *self.origin;
        origin.polls = origin.polls.wrapping_add(1);
        let is_unacked = self.towards.is_some_and(|pe| origin.issued.unacked(pe) > 0);
        let expects = is_unacked || origin.slots.n_unanswered() > 0;
        let served = origin.wire.serve(self.network, origin.polls, expects)?;
        if worked || served {
            self.silent_since = None;
        }
        Ok(worked || served)
    }

    fn sleep(&mut self, at_most: Duration) {
        self.silent_since.get_or_insert_with(Instant::now);
        self.origin.wire.sleep(self.network, at_most);
    }

    fn in_flight(&self) -> u64 {
        (self.origin.in_flight() + self.origin.batcher.n_operations()) as u64
    }

    fn host(&self) -> &dyn Host {
        &*self.network.local().host
    }

    fn awaited(&self) -> Vec<Pe> {
        match self.towards {
            Some(pe) => vec![pe],
            None => self.origin.active.clone(),
        }
    }
}

impl<W: Wire> Origin<W> {
    /// Waits until `step` yields something, and serves peers meanwhile. `towards` is the PE that is
    /// waited for.
    pub(super) fn until_some<T>(
        &mut self,
        network: &W::Network,
        towards: Option<Pe>,
        mut step: impl FnMut(&mut Origin<W>) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let mut waiting = Waiting { origin: self, network, towards, silent_since: None };
        wait(&mut waiting, |Waiting { origin, .. }| {
            // The awaited event has come, most often, when the wire has worked: peers, who are
            // served next, would delay it.
            if let Some(done) = step(origin)? {
                return Ok(Attempt::Done(done));
            }
            if !origin.progress(network)? {
                return Ok(Attempt::Idle);
            }
            Ok(step(origin)?.map_or(Attempt::Worked, Attempt::Done))
        })
    }

    /// Waits until `ready`.
    pub(super) fn until(
        &mut self,
        network: &W::Network,
        towards: Option<Pe>,
        mut ready: impl FnMut(&mut Origin<W>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.until_some(network, towards, |origin| ready(origin).map(|is| is.then_some(())))
    }

    /// Starts an operation as soon as there is room.
    #[inline]
    pub(super) fn post(
        &mut self,
        network: &W::Network,
        pe: Pe,
        mut post: impl FnMut(&mut W) -> Result<PostOutcome<W::Token>, Error>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let first = post(&mut self.wire)?;
        self.post_again(network, pe, first, &mut post)
    }

    /// Works as [`post`](Self::post), after the `first` attempt.
    #[inline]
    pub(super) fn post_again(
        &mut self,
        network: &W::Network,
        pe: Pe,
        first: PostOutcome<W::Token>,
        post: TryPost<'_, W>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        match first {
            PostOutcome::Full => self.post_later(network, pe, post),
            posted => Ok(posted),
        }
    }

    /// Starts an operation on a range that one key covers, as soon as there is room.
    pub(super) fn post_covered(
        &mut self,
        network: &W::Network,
        pe: Pe,
        post: impl FnMut(&mut W) -> Result<PostOutcome<W::Token>, Error>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        match self.post(network, pe, post)? {
            PostOutcome::Uncovered => Err(damaged(pe, "key")),
            posted => Ok(posted),
        }
    }

    #[cold]
    #[inline(never)]
    fn post_later(
        &mut self,
        network: &W::Network,
        pe: Pe,
        post: TryPost<'_, W>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        network.local().state.count_retry();
        self.until_some(network, Some(pe), |origin| {
            if origin.wire.pauses(pe) {
                return Ok(None);
            }
            Ok(match post(&mut origin.wire)? {
                PostOutcome::Full => None,
                posted => Some(posted),
            })
        })
    }

    /// Waits until an operation with a PE is over, if it is in flight.
    #[inline(always)]
    pub(super) fn end(
        &mut self,
        network: &W::Network,
        pe: Pe,
        posted: PostOutcome<W::Token>,
    ) -> Result<(), Error> {
        match posted {
            PostOutcome::Pending(token) => self.end_pending(network, pe, token),
            _ => Ok(()),
        }
    }

    fn end_pending(&mut self, network: &W::Network, pe: Pe, token: W::Token) -> Result<(), Error> {
        let ended =
            self.until(network, Some(pe), |origin| origin.wire.is_over(network, pe, &token));
        self.wire.forget(token);
        ended
    }
}
