//! Atomic operations, and the replies with old values.
#![allow(unsafe_code)]

use super::OfiEndpoint;
use super::requests::How;
use crate::ep::Wanted;
use crate::message::NO_DATA;
use crate::replies::Due;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::kit::wait::Attempt;
use rushmem_transport::{AmoRequest, AmoWidth, Amos, Error, OldValue, Pe, RemoteAddr};

impl OfiEndpoint {
    /// Refuses a word that no atomic operation can be about, before anything is started for it.
    pub(crate) fn check_word(&self, pe: Pe, at: RemoteAddr, width: AmoWidth) -> Result<(), Error> {
        check_aligned(pe, at, width)?;
        if pe == self.shared().me && self.shared().segments.word(at, width).is_some() {
            return Ok(());
        }
        self.shared().check(pe, at, width.nbytes())
    }

    /// Carries out an atomic operation and returns the old value.
    pub(crate) fn fetch(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        let mut old = 0u64;
        let wanted = Wanted { at: (&raw mut old).cast(), width: AmoWidth::Eight };
        // SAFETY: a local that lives until the operation is over, or the ep is closed after a loss.
        unsafe { self.start_amo(pe, request, Some(wanted)) }?;
        match self.shared().amos {
            Amos::Network => self.completed(pe),
            Amos::Software => self.due_at_most(0, |due| due.wanted.at == wanted.at),
        }?;
        // SAFETY: a live local, written through a pointer to it.
        Ok(unsafe { (&raw const old).read() })
    }

    /// Starts an atomic operation.
    ///
    /// # Safety
    /// Where the old value is wanted, if it is, is valid for writes until its reply is collected.
    pub(crate) unsafe fn start_amo(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        wanted: Option<Wanted>,
    ) -> Result<(), Error> {
        if self.shared().amos == Amos::Network {
            // SAFETY: by contract.
            return unsafe { self.start_native(pe, request, wanted) };
        }
        let &AmoRequest { dest, width, .. } = request;
        check_aligned(pe, dest, width)?;
        if self.update_own(pe, request, wanted) {
            return Ok(());
        }
        self.follow_writes(pe)?;
        self.shared().check(pe, dest, width.nbytes())?;
        let slot = wanted.map(|wanted| self.slot(pe, wanted)).transpose()?;
        let how = How { awaited: request.old == OldValue::Returned, ..How::default() };
        self.send(pe, Some(Update::of(request)), NO_DATA, slot, how)
    }

    /// Updates a word of this PE; whether it is one.
    fn update_own(&mut self, pe: Pe, request: &AmoRequest, wanted: Option<Wanted>) -> bool {
        if pe != self.shared().me {
            return false;
        }
        let Some(old) = self.shared().segments.apply(request) else { return false };
        if let Some(Wanted { at, width }) = wanted {
            // SAFETY: valid by the contract of `start_amo`.
            unsafe { width.write(at, old) };
        }
        self.shared().host.arrived();
        true
    }

    /// Takes the replies that have come; whether there were any.
    pub(crate) fn collect(&mut self) -> bool {
        let came = self.ep.replies.came();
        if came == self.seen {
            return false;
        }
        self.seen = came;
        let (replies, slots) = (&self.ep.replies, &mut self.slots);
        self.due.retain(|due| {
            let Some(old) = replies.take(due.slot) else { return true };
            // SAFETY: valid for a word of this width until now, by the contract of `start_amo`.
            unsafe { due.wanted.width.write(due.wanted.at, old) };
            slots.push(due.slot);
            false
        });
        true
    }

    /// Whether replies are due.
    pub(crate) fn any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Waits until at most `most` of the replies that `which` chooses are due.
    pub(crate) fn due_at_most(
        &mut self,
        most: usize,
        which: impl Fn(&Due) -> bool,
    ) -> Result<(), Error> {
        self.wait_for(None, |this| {
            this.collect();
            match this.due.iter().filter(|due| which(due)).count() <= most {
                true => Ok(Attempt::Done(())),
                false => this.poll_ep(),
            }
        })
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
}
