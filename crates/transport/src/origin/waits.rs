//! The wait of an origin: it polls its wire and, at times, serves peers.

use super::state::Origin;
use super::wire::{PostOutcome, Wire, WireNetwork};
use crate::kit::backoff::Backoff;
use crate::kit::peers::damaged;
use crate::kit::progress_state::ProgressState;
use crate::kit::wait::{Attempt, Waiter, wait};
use crate::{Error, Host, Pe};
use std::time::{Duration, Instant};

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
