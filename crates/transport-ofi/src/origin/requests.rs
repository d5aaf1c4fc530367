//! Requests to the targets' CPUs as an ep's streams: their order among themselves and with writes, and the answers to them, few of
//! which are messages of their own (`kit::answers`): who waits for an answer asks for it.
//!
//! This file must never know who polls.
#![allow(unsafe_code)]

use super::{Due, OfiEndpoint};
use crate::ep::Wanted;
use crate::message::{Data, Message, Request, Update};
use rushmem_transport::kit::answers::{Asked, Stream};
use rushmem_transport::kit::wait::Attempt;
use rushmem_transport::{Amos, Error, Follows, Pe, Put, Signal};
use std::sync::atomic::Ordering;

/// What was issued to one PE.
#[derive(Default)]
pub(super) struct Route {
    /// How many fences there were when something was last written to it.
    followed: u32,
    asked: Asked,
    /// It is among the owing.
    is_owing: bool,
}

impl OfiEndpoint {
    /// What is written to a PE or asked of it from now on comes after what was before. Messages are carried out some time after
    /// they have come; and where the provider keeps no order, writes are complete at the target at any time.
    pub(crate) fn begin_fence(&mut self) {
        if !self.owing.is_empty() || !self.shared().keeps_order() {
            self.fences = self.fences.wrapping_add(1);
        }
    }

    /// Waits until a write that follows the last fence may begin towards a PE.
    #[inline(always)]
    pub(crate) fn follow(&mut self, pe: Pe) -> Result<(), Error> {
        if self.is_past_fence(pe) { self.follow_fence(pe) } else { Ok(()) }
    }

    #[inline(never)]
    fn follow_fence(&mut self, pe: Pe) -> Result<(), Error> {
        if pe.index() >= self.shared().peers.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        self.follow_writes(pe)?;
        if !self.is_before_fence_done(pe) {
            self.ask_for_answer(pe)?;
            self.listen(pe, |this| this.is_before_fence_done(pe))?;
        }
        self.route(pe).followed = self.fences;
        Ok(())
    }

    /// Waits until a request that follows the last fence may follow the writes before it. Among themselves requests have an order.
    pub(super) fn follow_writes(&mut self, pe: Pe) -> Result<(), Error> {
        if self.is_past_fence(pe)
            && !self.shared().keeps_order()
            && self.shared().peers.known(pe).is_some()
        {
            self.delivered(pe)?;
        }
        Ok(())
    }

    /// What was issued to a PE.
    fn route(&mut self, pe: Pe) -> &mut Route {
        let told = self.ep.told.by(pe);
        let new = || Route { asked: Asked::after(told), ..Route::default() };
        self.routes.get_or_insert_with(pe, new)
    }

    /// All that was issued is complete, so nothing needs to follow the fences up to now.
    pub(crate) fn settle(&mut self) {
        self.settled = self.fences;
    }

    /// Whether something follows a fence that nothing to this PE has followed.
    #[inline(always)]
    pub(crate) fn is_past_fence(&self, pe: Pe) -> bool {
        self.fences != self.settled && self.is_past_fence_of(pe)
    }

    #[inline(never)]
    fn is_past_fence_of(&self, pe: Pe) -> bool {
        let followed = self.routes.get(pe).map_or(0, |route| route.followed);
        followed != self.fences
    }

    fn is_before_fence_done(&mut self, pe: Pe) -> bool {
        let (fences, told) = (self.fences, self.ep.told.by(pe));
        self.unanswered(pe) == 0 || self.route(pe).asked.is_before_fence_done(fences, told)
    }

    fn unanswered(&self, pe: Pe) -> u32 {
        self.routes.get(pe).map_or(0, |route| route.asked.unanswered(self.ep.told.by(pe)))
    }

    /// Waits until a PE has told enough.
    fn listen(
        &mut self,
        pe: Pe,
        mut is_enough: impl FnMut(&mut OfiEndpoint) -> bool,
    ) -> Result<(), Error> {
        if is_enough(self) {
            return Ok(());
        }
        self.listens = true;
        let heard = self.wait_for(Some(pe.0), |this| match is_enough(this) {
            true => Ok(Attempt::Done(())),
            false => this.poll_ep(),
        });
        self.listens = false;
        heard
    }

    /// Has a PE tell when it has carried out all that it was asked, unless it does so anyway.
    pub(crate) fn ask_for_answer(&mut self, pe: Pe) -> Result<(), Error> {
        let told = self.ep.told.by(pe);
        match self.routes.get(pe).is_some_and(|route| route.asked.must_ask(told)) {
            true => self.send(pe, None, None, None, (true, true)),
            false => Ok(()),
        }
    }

    /// The same of all PEs.
    pub(crate) fn ask_for_answers(&mut self) -> Result<(), Error> {
        for i in 0..self.owing.len() {
            self.ask_for_answer(Pe(self.owing[i]))?;
        }
        Ok(())
    }

    /// Waits until a PE has carried out all that it was asked.
    pub(crate) fn carried_out(&mut self, pe: Pe) -> Result<(), Error> {
        self.ask_for_answer(pe)?;
        self.listen(pe, |this| this.unanswered(pe) == 0)?;
        if std::mem::take(&mut self.route(pe).is_owing) {
            self.owing.retain(|&other| other != pe.0);
        }
        Ok(())
    }

    /// Waits until all PEs have carried out all that they were asked.
    pub(crate) fn all_carried_out(&mut self) -> Result<(), Error> {
        self.ask_for_answers()?;
        while let Some(&pe) = self.owing.last() {
            self.listen(Pe(pe), |this| this.unanswered(Pe(pe)) == 0)?;
            self.route(Pe(pe)).is_owing = false;
            self.owing.pop();
        }
        Ok(())
    }

    /// A slot for an old value.
    pub(super) fn slot(&mut self, pe: Pe, wanted: Wanted) -> Result<u32, Error> {
        if self.slots.is_empty() {
            self.due_at_most(self.shared().tuning.amos - 1, |_| true)?;
        }
        let Some(slot) = self.slots.pop() else {
            return Err(Error::Invalid("more replies are due than there are slots".to_owned()));
        };
        self.due.push(Due { slot, pe: pe.0, wanted });
        Ok(slot)
    }

    /// Sends a request as the next of its stream: after all before it if it is `ordered` or `asks`.
    pub(super) fn send(
        &mut self,
        pe: Pe,
        update: Option<Update>,
        data: Option<Data>,
        slot: Option<u32>,
        (ordered, asks): (bool, bool),
    ) -> Result<(), Error> {
        let window = self.shared().tuning.amos as u32;
        if !asks {
            self.listen(pe, |this| this.unanswered(pe) < window)?;
        }
        let at = self.shared().peers.get(pe)?.at;
        let told = self.ep.told.by(pe);
        let fences = self.fences;
        let place = self.route(pe).asked.place(fences, told, window, (ordered, asks));
        let shared = &self.progress.shared;
        let stream = Stream { pe: shared.me, origin: self.ep.number() };
        let news = shared.answers.for_message_to(pe);
        let message = Message::Request(Request { stream, place, news, slot, data, update });
        let message = message.encode(shared.tag);
        if !std::mem::replace(&mut self.route(pe).is_owing, true) {
            self.owing.push(pe.0);
        }
        self.ep.asked.fetch_add(1, Ordering::Relaxed);
        self.start(pe.0, |ep| ep.send(pe.0, at, &message))
    }

    /// Starts a put of a few bytes, or of none, and the update that signals it as one message; returns whether it could be done so.
    ///
    /// # Safety
    /// The source is valid for reads.
    pub(crate) unsafe fn start_put_signal(
        &mut self,
        pe: Pe,
        put: &Put,
        signal: &Signal,
    ) -> Result<bool, Error> {
        if self.shared().amos == Amos::Network || pe == self.shared().me {
            return Ok(false);
        }
        // SAFETY: valid by contract.
        let data = unsafe { Data::copy(put.dest, put.source) };
        if data.is_none() && put.source.nbytes > 0 {
            return Ok(false);
        }
        self.shared().remote(pe, put.dest, put.source.nbytes)?;
        self.start_signal(pe, signal, data).map(|()| true)
    }

    /// Starts the update of a signal of another PE's that this PE's CPU does not carry out itself.
    pub(crate) fn start_signal(
        &mut self,
        pe: Pe,
        signal: &Signal,
        data: Option<Data>,
    ) -> Result<(), Error> {
        let ordered = signal.follows == Follows::All;
        let keeps_order = self.shared().keeps_order();
        match ordered && !keeps_order {
            true => self.delivered(pe)?,
            false => self.follow_writes(pe)?,
        }
        self.send(pe, Some(Update::of(&signal.amo())), data, None, (ordered, false))
    }
}
