//! An origin: the wire of one or more contexts, and the state of the operations that they have
//! issued over it. Also the wait of a call, which polls the wire and serves peers.

use super::acks::IssuedRequests;
use super::batching::{BatchLimits, Batcher};
use super::keys;
use super::message::{Reply, Request};
use super::replies::{AnswerSlots, Ticket};
use super::wire::{
    NetworkPe, NextEvent, Polled, PolledUntil, PostOutcome, Wire, WireCaps, WireNetwork,
};
use crate::progress::state::ProgressState;
use crate::progress::wait::{Attempt, Waiter, wait};
use crate::segments::heap_blocks::ENTRY;
use crate::{Error, Host, Pe, PeMap};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A request that the wire has not taken yet.
pub(super) struct NumberedRequest {
    pub(super) pe: Pe,
    pub(super) request: Request,
    pub(super) entries: Vec<u8>,
    /// The ticket for the results of the entries, if they have any.
    pub(super) ticket: Option<Ticket>,
}

/// The state of all operations that the contexts of one wire have issued, to every PE.
pub struct Origin<W: Wire> {
    pub(super) wire: W,
    pub(super) caps: WireCaps,
    pub(super) issued: IssuedRequests,
    pub(super) batcher: Batcher,
    /// Small operations are batched at present, unless they are lone.
    pub(super) batches: bool,
    pub(super) slots: AnswerSlots,
    /// Requests that were numbered by a thread that may not wait, and that the wire has not taken
    /// yet.
    pub(super) unsent: VecDeque<NumberedRequest>,
    pub(super) routes: PeMap<Route>,
    /// The PEs to which operations may be in flight, or whose answers are awaited.
    pub(super) active: Vec<Pe>,
    /// The tasks to wake when all operations are complete.
    pub(super) tasks: Vec<Waker>,
    /// The buffer into which an entry of a peer's table of keys is read. It is not on the stack:
    /// the network may write to it after a call has failed.
    pub(super) entry: Box<[u8; ENTRY]>,
    /// The old value of a compare-and-swap. It is not on the stack for the same reason.
    pub(super) swapped: Box<u64>,
    /// The state that all wires share. It outlives the wire.
    pub(super) network: Arc<W::Network>,
}

/// The state of the operations issued to one PE.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// The PE is in [`active`](Origin::active).
    pub(super) is_active: bool,
    /// Writes, or atomic operations of the network, were issued since the last flush began or, over
    /// a wire that orders everything, since the last request or awaited get.
    pub(super) is_dirty: bool,
    /// A flush has begun and is not known to have ended.
    pub(super) is_flushing: bool,
    /// Some writes before the last fence are not known to be complete.
    pub(super) has_writes_before: bool,
    /// The number of requests whose answers have not arrived.
    pub(super) unanswered: u32,
    /// The PE is connected.
    pub(super) is_reached: bool,
    /// The [count of fences](IssuedRequests::fences) when a write was last ordered after the
    /// operations before the last fence.
    pub(super) ordered_at: u64,
}

impl<W: Wire> Origin<W> {
    /// Returns an origin that has issued nothing over a wire.
    pub fn new(wire: W, network: Arc<W::Network>) -> Origin<W> {
        let NetworkPe { acks, clock, .. } = network.local();

        let caps = wire.caps();
        let limits = BatchLimits {
            outside_session: caps.longest_batch,
            in_session: caps.longest_session_batch,
        };
        let n_pes = acks.n_pes();
        let (number, counts) = acks.add_origin();

        Origin {
            wire,
            caps,
            issued: IssuedRequests::new(number, counts, n_pes, caps.window),
            batcher: Batcher::new(n_pes, limits, *clock),
            batches: caps.batches,
            slots: AnswerSlots::default(),
            unsent: VecDeque::new(),
            routes: PeMap::new(n_pes),
            active: Vec::new(),
            tasks: Vec::new(),
            entry: Box::new([0; ENTRY]),
            swapped: Box::new(0),
            network,
        }
    }

    /// Returns the wire, for calls that only its provider makes.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// Returns the number of this origin, and the number of requests that a PE has acknowledged to
    /// it.
    pub fn acked(&self, pe: Pe) -> (u32, u32) {
        (self.issued.stream(pe).origin, self.issued.acked(pe))
    }

    /// Returns true if some operation may complete only if the origin is polled, or if tasks are to
    /// be woken by the poll that finds the operations complete.
    pub(super) fn must_be_polled(&self) -> bool {
        if !self.tasks.is_empty() {
            return true;
        }

        match self.caps.polled {
            PolledUntil::Started => self.waits_to_send(),
            _ => !self.active.is_empty() || !self.unsent.is_empty(),
        }
    }

    /// Returns true if the polls of a thread that waits for something else may end operations. Such
    /// a thread begins no flush that costs a message, so writes that await one are left.
    pub(super) fn may_end_in_wait(&self) -> bool {
        self.caps.flushes_in_wait || self.moves_data() || !self.tasks.is_empty()
    }

    /// Returns true if the wire may have to be polled for requests that it has taken. This remains
    /// true until a call completes them, although their acknowledgments have arrived. Otherwise the
    /// issuer would be listed anew, and the service thread woken, for each signal of a barrier.
    pub(super) fn awaits_acks(&self) -> bool {
        self.caps.polled == PolledUntil::Acknowledged && !self.issued.awaiting_ack().is_empty()
    }

    /// Returns true if batches wait to be sent.
    pub(super) fn waits_to_send(&self) -> bool {
        !self.batcher.pes().is_empty() || !self.unsent.is_empty()
    }

    /// Returns how the next event of the origin is signaled: by nothing while batches wait to be
    /// sent.
    pub(super) fn next_event(&self) -> NextEvent {
        if self.waits_to_send() {
            return NextEvent::Unsignaled;
        }

        let is_unacked = self.caps.polled == PolledUntil::Acknowledged && self.issued.any_unacked();
        self.wire.arm(is_unacked)
    }

    /// Returns true if operations are in flight or batches wait to be sent.
    pub fn moves_data(&self) -> bool {
        self.wire.in_flight() > 0 || self.waits_to_send()
    }

    /// Returns the number of operations in flight and unanswered requests.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.wire.in_flight() + self.slots.n_unanswered()
    }

    /// Connects to a PE, if it is not connected yet, and waits for the connection.
    #[inline]
    pub(super) fn reach(&mut self, pe: Pe) -> Result<(), Error> {
        self.network.local().loss.check()?;
        match self.routes.get(pe) {
            Some(route) if route.is_reached => Ok(()),
            _ => self.reach_first(pe),
        }
    }

    #[cold]
    fn reach_first(&mut self, pe: Pe) -> Result<(), Error> {
        if pe.index() >= self.routes.n_pes() {
            return Err(Error::Unreachable(pe));
        }

        // Makes the entry of the peer, without which a wire cannot connect.
        keys::peer(&*self.network, pe)?;

        // The connection may depend on another PE that waits for an operation in an open batch.
        self.send_open_batches()?;
        if !self.wire.reach(&self.network, pe)? {
            self.until(Some(pe), |origin| origin.wire.reach(&origin.network, pe))?;
        }

        self.routes[pe].is_reached = true;
        Ok(())
    }

    /// Adds a PE to the active ones, since operations to it may be in flight.
    #[inline]
    pub(super) fn activate(&mut self, pe: Pe) {
        if !std::mem::replace(&mut self.routes[pe].is_active, true) {
            self.active.push(pe);
        }
    }

    /// Removes a PE from the active ones after a call has waited for an operation with it, if
    /// nothing else is in flight to it and it is the last in the list.
    #[inline]
    pub(super) fn forget_idle(&mut self, pe: Pe) {
        let route = &mut self.routes[pe];
        let is_idle = route.unanswered == 0 && !route.is_dirty && !route.is_flushing;

        if is_idle
            && self.active.last() == Some(&pe)
            && self.wire.in_flight_to(pe) == 0
            && !self.batcher.has_any(pe)
            && self.unsent.is_empty()
        {
            route.is_active = false;
            route.has_writes_before = false;
            self.active.pop();
        }
    }

    /// Polls the wire, handles what has arrived, and sends numbered batches. Returns true if the
    /// poll found work.
    pub(super) fn progress(&mut self) -> Result<bool, Error> {
        let Origin {
            wire,
            slots,
            routes,
            network,
            ..
        } = self;

        let acks = &network.local().acks;
        let polled = wire.poll(network, &mut |Reply { pe, ack, answer }, follow| {
            acks.acknowledge(pe, ack)?;
            if let Some(answer) = answer {
                routes[slots.answer(&answer, follow)?].unanswered -= 1;
            }
            Ok(())
        })?;

        if polled == Polled::Broke {
            self.confirm_used()?;
        }
        if !self.unsent.is_empty() {
            self.send_unsent()?;
        }

        self.network.local().loss.check()?;
        Ok(polled != Polled::Idle)
    }

    /// Checks that the PEs with which something is pending are alive.
    #[cold]
    fn confirm_used(&mut self) -> Result<(), Error> {
        let awaited = self.issued.awaiting_ack().iter();
        for &pe in self.active.iter().chain(awaited) {
            self.wire.confirm(&self.network, pe)?;
        }
        Ok(())
    }

    /// Cancels the operations in flight after a loss. When this returns, the network accesses no
    /// memory of callers any more.
    ///
    /// # Errors
    /// The reason for which the network may still access some.
    pub(super) fn abandon(&mut self) -> Result<(), String> {
        self.batcher.forget();
        self.slots.forget_destinations();
        self.unsent.clear();
        self.wire.abandon(&self.network)
    }
}

/// The interval at which a thread that waits without an event checks that the awaited PEs are
/// alive. Checks at shorter intervals would cost more messages; with longer ones, a job that has
/// lost a PE would end later. The value was chosen without a measurement.
const UNCONFIRMED_AFTER: Duration = Duration::from_secs(1);

/// An attempt to start an operation.
type TryPost<'a, W> = &'a mut dyn FnMut(
    &mut W,
    &<W as Wire>::Network,
) -> Result<PostOutcome<<W as Wire>::Token>, Error>;

/// An origin with a call that waits.
struct Waiting<'a, W: Wire> {
    origin: &'a mut Origin<W>,
    /// The PE that the call waits for; `None` if it waits for all active ones.
    awaited_pe: Option<Pe>,
    /// When the thread first slept since the last event, or since it last checked that the PEs are
    /// alive.
    silent_since: Option<Instant>,
}

impl<W: Wire> Waiting<'_, W> {
    fn now(&self) -> Instant {
        (self.origin.network.local().clock)()
    }
}

impl<W: Wire> Waiter for Waiting<'_, W> {
    fn state(&self) -> &ProgressState {
        &self.origin.network.local().state
    }

    fn serve(&mut self, worked: bool) -> Result<bool, Error> {
        if self
            .silent_since
            .is_some_and(|since| self.now() - since > UNCONFIRMED_AFTER)
        {
            self.silent_since = None;
            for pe in self.awaited() {
                self.origin.wire.confirm(&self.origin.network, pe)?;
            }
        }

        let origin = &mut *self.origin;
        let served = origin.wire.serve(&origin.network)?;

        let state = &origin.network.local().state;
        if served && state.any_tasks() {
            // What this thread has received may be what tasks of other origins await.
            state.request_flush();
        }

        if worked || served {
            self.silent_since = None;
        }
        Ok(worked || served)
    }

    fn sleep(&mut self, at_most: Duration) {
        if self.silent_since.is_none() {
            self.silent_since = Some(self.now());
        }
        self.origin.wire.sleep(&self.origin.network, at_most);
    }

    fn in_flight(&self) -> u64 {
        (self.origin.in_flight() + self.origin.batcher.n_operations()) as u64
    }

    fn host(&self) -> &dyn Host {
        &*self.origin.network.local().host
    }

    fn awaited(&self) -> Vec<Pe> {
        match self.awaited_pe {
            Some(pe) => vec![pe],
            None => self.origin.active.clone(),
        }
    }
}

impl<W: Wire> Origin<W> {
    /// Waits until `step` returns a value, and serves peers meanwhile. `awaited_pe` is `None` if
    /// the call waits for all active PEs.
    pub(super) fn until_some<T>(
        &mut self,
        awaited_pe: Option<Pe>,
        mut step: impl FnMut(&mut Origin<W>) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let mut waiting = Waiting {
            origin: self,
            awaited_pe,
            silent_since: None,
        };

        wait(&mut waiting, |Waiting { origin, .. }| {
            if let Some(done) = step(origin)? {
                return Ok(Attempt::Done(done));
            }
            if !origin.progress()? {
                return Ok(Attempt::Idle);
            }

            // A poll that found work most often found the awaited event. Serving peers before this
            // second try would delay the call.
            match step(origin)? {
                Some(done) => Ok(Attempt::Done(done)),
                None => Ok(Attempt::Worked),
            }
        })
    }

    /// Waits until `ready` returns true, and serves peers meanwhile, as
    /// [`until_some`](Self::until_some).
    pub(super) fn until(
        &mut self,
        awaited_pe: Option<Pe>,
        mut ready: impl FnMut(&mut Origin<W>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.until_some(awaited_pe, |origin| {
            let is_ready = ready(origin)?;
            Ok(if is_ready { Some(()) } else { None })
        })
    }

    /// Starts an operation, and waits for room if the wire has none.
    #[inline]
    pub(super) fn post(
        &mut self,
        pe: Pe,
        mut post: impl FnMut(&mut W, &W::Network) -> Result<PostOutcome<W::Token>, Error>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        match post(&mut self.wire, &self.network)? {
            PostOutcome::Full => self.post_later(pe, &mut post),
            posted => Ok(posted),
        }
    }

    #[cold]
    #[inline(never)]
    fn post_later(&mut self, pe: Pe, post: TryPost<'_, W>) -> Result<PostOutcome<W::Token>, Error> {
        self.network.local().state.count_retry();
        self.until_some(Some(pe), |origin| {
            Ok(match post(&mut origin.wire, &origin.network)? {
                PostOutcome::Full => None,
                posted => Some(posted),
            })
        })
    }

    /// Waits until an operation with a PE is over, unless its wire has ended it at once.
    #[inline(always)]
    pub(super) fn await_end(&mut self, pe: Pe, posted: PostOutcome<W::Token>) -> Result<(), Error> {
        match posted {
            PostOutcome::Pending(token) => self.await_pending(pe, token),
            _ => Ok(()),
        }
    }

    fn await_pending(&mut self, pe: Pe, token: W::Token) -> Result<(), Error> {
        self.until(Some(pe), |origin| {
            origin.wire.is_over(&origin.network, pe, &token)
        })
    }
}
