//! Atomic operations, and the replies with old values.
#![allow(unsafe_code)]

use super::OfiEndpoint;
use crate::ep::Wanted;
use crate::replies::{Answer, Due};
use crate::requests::How;
use crate::requests::Requests;
use crate::shared::SharedEp;
use rushmem_transport::kit::gather::SmallOperation;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::kit::violation::RefusedMessage;
use rushmem_transport::kit::wait::Attempt;
use rushmem_transport::{AmoRequest, AmoWidth, Amos, Error, OldValue, Pe, RemoteAddr};
use std::ptr::null_mut;

impl SharedEp {
    /// Stores the answers that have come to its requests, whose slots are free then.
    ///
    /// # Errors
    /// When an answer is not what was requested.
    pub(crate) fn collect(&self, requests: &mut Requests) -> Result<(), RefusedMessage> {
        let (Requests { due, slots, .. }, mut collected) = (requests, Ok(()));
        due.retain_mut(|due| {
            let Some((old, bytes)) = self.replies.take(due.slot) else { return true };
            match &mut due.answer {
                // SAFETY: valid for a word of this width until now, by the contract of `start_amo`.
                Answer::Old(Wanted { at, width }) => unsafe { width.write(*at, old) },
                Answer::Batch(answers) => {
                    // SAFETY: valid until now by the contracts of `start_amo` and `start_get`.
                    let stored = unsafe { answers.store(&bytes) };
                    if let Err(violation) = stored {
                        collected = Err(RefusedMessage::of(Pe(due.pe), violation));
                    }
                }
            }
            slots.push(due.slot);
            false
        });
        collected
    }
}

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
            Amos::Software => self.due_at_most(0, |due| due.is_to(wanted.at)),
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
        let (update, awaited) = (Update::of(request), request.old == OldValue::Returned);
        if awaited {
            self.send_gathered(pe, How::default())?;
        } else {
            let fetched = wanted.map_or(null_mut(), |wanted| wanted.at);
            let amo = SmallOperation::Amo(update, fetched);
            // SAFETY: valid until the answers are stored by contract, or forgotten after a loss.
            if unsafe { self.gather(pe, &[dest.segment], &[amo]) }? {
                return Ok(());
            }
        }
        let slot = wanted.map(|wanted| self.slot(pe, Answer::Old(wanted))).transpose()?;
        self.send(pe, Some(update), &[], slot, How { awaited, ..How::default() })?;
        if !awaited {
            self.small_has_left();
        }
        Ok(())
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

    /// Takes the replies that have come. Returns whether there were any.
    pub(crate) fn collect(&mut self) -> Result<bool, Error> {
        let came = self.ep.replies.came();
        if came == self.seen {
            return Ok(false);
        }
        self.seen = came;
        let collected = self.ep.collect(&mut self.requests());
        let collected = collected.map_err(|message| self.shared().refuse(&message));
        self.or_close(collected).map(|()| true)
    }

    /// Returns true if replies are due.
    pub(crate) fn any_due(&self) -> bool {
        !self.requests().due.is_empty()
    }

    /// Waits until at most `most` of the replies that `which` chooses are due.
    pub(crate) fn due_at_most(
        &mut self,
        most: usize,
        which: impl Fn(&Due) -> bool,
    ) -> Result<(), Error> {
        self.wait_for(None, |this| {
            this.collect()?;
            let left = this.requests().due.iter().filter(|due| which(due)).count();
            match left <= most {
                true => Ok(Attempt::Done(())),
                false => this.poll_ep(),
            }
        })
    }

    /// A slot for an answer. The thread that polls may take one meanwhile.
    pub(super) fn slot(&mut self, pe: Pe, answer: Answer) -> Result<u32, Error> {
        let slot = loop {
            if let Some(slot) = self.requests().slots.pop() {
                break slot;
            }
            self.due_at_most(self.shared().tuning.amos - 1, |_| true)?;
        };
        self.requests().due.push(Due { slot, pe: pe.0, answer });
        Ok(slot)
    }
}
