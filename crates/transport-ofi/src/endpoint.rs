//! The verbs of one context.
//!
//! An endpoint has an ep for as long as it lives. Puts and gets are the fabric's writes and reads;
//! atomic operations are messages that the target's CPU carries out, so that they compose with
//! those of PEs that share its memory, or the fabric's own where the user asks for them. Own memory
//! is accessed directly.
#![allow(unsafe_code)]

use crate::ep::{Wanted, WriteEnd};
use crate::origin::OfiEndpoint;
use rushmem_transport::{
    AmoRequest, Amos, Completion, Endpoint, Error, Get, OldValue, Pe, Put, SignalUpdate,
    StridedBlocks,
};
use std::sync::Arc;

impl Endpoint for OfiEndpoint {
    unsafe fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error> {
        // SAFETY: the same contract.
        let is_free = unsafe { self.start_put(pe, &put, WriteEnd::AtTarget) }?;
        let waits = put.completion == Completion::Now;
        if waits && !is_free { self.completed(pe) } else { Ok(()) }
    }

    unsafe fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error> {
        // SAFETY: the same contract.
        let has_come = unsafe { self.start_get(pe, &get) }?;
        let waits = get.completion == Completion::Now;
        if waits && !has_come { self.completed(pe) } else { Ok(()) }
    }

    unsafe fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        // SAFETY: the same contract.
        if unsafe { self.gather_put_strided(pe, blocks) }? {
            return Ok(());
        }
        for (dest, source) in blocks.each() {
            let put = Put { dest, source, completion: Completion::Now };
            // SAFETY: a block, valid by contract.
            unsafe { self.put(pe, put) }?;
        }
        Ok(())
    }

    unsafe fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        // SAFETY: the same contract.
        if unsafe { self.gather_get_strided(pe, blocks) }? {
            return Ok(());
        }
        for (source, dest) in blocks.each() {
            let get = Get { dest, source, completion: Completion::AtQuiet };
            // SAFETY: a block, valid by contract.
            unsafe { self.get(pe, get) }?;
        }
        Ok(())
    }

    unsafe fn amo(&mut self, pe: Pe, request: AmoRequest) -> Result<u64, Error> {
        let wanted = match request.old {
            OldValue::Returned => return self.fetch(pe, &request),
            OldValue::AtQuiet(at) => Some(Wanted { at, width: request.width }),
            OldValue::Ignored => None,
        };
        // SAFETY: valid until the next quiet by contract, which collects the old value.
        unsafe { self.start_amo(pe, &request, wanted) }.map(|()| 0)
    }

    unsafe fn put_signal(&mut self, pe: Pe, put: Put, signal: SignalUpdate) -> Result<(), Error> {
        let waits = put.completion == Completion::Now;
        let in_order = self.shared().keeps_order();
        let update = signal.amo();
        self.check_word(pe, update.dest, update.width)?;
        // SAFETY: valid during this call, which waits until it is free, or until the next quiet.
        if let Some(is_free) = unsafe { self.start_put_signal(pe, &put, &signal) }? {
            return if waits && !is_free { self.completed(pe) } else { Ok(()) };
        }
        // The signal is acknowledged after the data that it follows.
        let end = match in_order && self.gathers && pe != self.shared().me {
            true => WriteEnd::SourceFree,
            false => WriteEnd::AtTarget,
        };
        // SAFETY: as above.
        let is_free = unsafe { self.start_put(pe, &put, end) }?;
        if !in_order {
            self.delivered(pe)?;
        }
        if self.shared().amos == Amos::Network || pe == self.shared().me {
            // SAFETY: nothing is fetched.
            unsafe { self.amo(pe, update) }?;
        } else {
            self.start_signal(pe, &signal)?;
        }
        if waits && !is_free && in_order { self.completed(pe) } else { Ok(()) }
    }

    fn session(&mut self, is_open: bool) -> Result<(), Error> {
        if is_open != self.in_session && self.gathers {
            self.complete()?;
            self.begin_session(is_open);
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        if self.uses_proxies() {
            return self.complete();
        }
        self.begin_fence()?;
        self.check()
    }

    fn quiet(&mut self) -> Result<(), Error> {
        self.complete()
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        self.ask_for_acks()?;
        self.poll()?;
        // No other thread polls it for an operation that a call has waited for.
        let in_flight = self.with_ep(|ep| {
            ep.poll(|_| ())?;
            Ok(ep.in_flight())
        })?;
        self.collect()?;
        // Reading back is short once all has left.
        if in_flight > 0 || self.any_due() || self.requests().is_owed() {
            Ok(false)
        } else {
            self.quiet().map(|()| true)
        }
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        if pe.index() >= self.shared().peers.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        if self.uses_proxies() {
            return self.complete();
        }
        if self.shared().peers.known(pe).is_none() {
            // It was never used.
            return self.check();
        }
        self.ask_for_ack(pe)?;
        self.delivered(pe)?;
        self.due_at_most(0, |due| due.pe == pe.0)?;
        self.carried_out(pe)?;
        self.check()
    }
}

impl Drop for OfiEndpoint {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete; the ep is closed.
        if self.session(false).and_then(|()| self.quiet()).is_ok() {
            self.shared().give_back(Arc::clone(&self.ep));
        }
    }
}
