//! The verbs of one context.
//!
//! An endpoint has a lane for as long as it lives. Puts and gets are the fabric's writes and reads; atomic
//! operations are messages that the target's CPU carries out, so that they compose with those of PEs that
//! share its memory, or the fabric's own where the user asks for them. Own memory is accessed directly.

use crate::block::Range;
use crate::origin::OfiEndpoint;
use crate::shared::lock;
use rushmem_transport::{AmoOp, AmoWidth, Endpoint, Error, Pe, RemoteAddr};
use std::sync::Arc;

impl Endpoint for OfiEndpoint {
    unsafe fn put(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
    ) -> Result<(), Error> {
        let source = Range { base: source.cast_mut(), nbytes };
        // SAFETY: valid during this call.
        unsafe { self.start_put(pe, dest, source, true) }
    }

    unsafe fn put_nbi(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
    ) -> Result<(), Error> {
        let source = Range { base: source.cast_mut(), nbytes };
        // SAFETY: the same contract.
        unsafe { self.start_put(pe, dest, source, false) }
    }

    unsafe fn get(
        &mut self,
        pe: Pe,
        dest: *mut u8,
        source: RemoteAddr,
        nbytes: usize,
    ) -> Result<(), Error> {
        // SAFETY: valid during this call, which waits for the data.
        unsafe { self.start_get(pe, Range { base: dest, nbytes }, source) }?;
        if pe.0 == self.shared.me || nbytes == 0 { Ok(()) } else { self.completed(pe) }
    }

    unsafe fn get_nbi(
        &mut self,
        pe: Pe,
        dest: *mut u8,
        source: RemoteAddr,
        nbytes: usize,
    ) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { self.start_get(pe, Range { base: dest, nbytes }, source) }
    }

    fn amo(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> Result<u64, Error> {
        let mut old = 0u64;
        let (at, whole) = ((&raw mut old).cast(), AmoWidth::Eight);
        // SAFETY: a local that lives until the reply is collected, or forgotten after a loss.
        unsafe { self.start_amo(at, whole, pe, dest, width, op, operand, condition) }?;
        self.answered(pe, at)?;
        // SAFETY: a live local, written through a pointer to it.
        Ok(unsafe { (&raw const old).read() })
    }

    unsafe fn amo_nbi(
        &mut self,
        fetched: *mut u8,
        pe: Pe,
        dest: RemoteAddr,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> Result<(), Error> {
        // SAFETY: valid until the next quiet by contract, which collects the reply.
        unsafe { self.start_amo(fetched, width, pe, dest, width, op, operand, condition) }
    }

    fn update(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
    ) -> Result<(), Error> {
        let nowhere = std::ptr::null_mut();
        // SAFETY: null.
        unsafe { self.start_amo(nowhere, width, pe, dest, width, op, operand, 0) }
    }

    unsafe fn put_signal(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
        signal_addr: RemoteAddr,
        signal: u64,
        op: AmoOp,
    ) -> Result<(), Error> {
        let source = Range { base: source.cast_mut(), nbytes };
        let copied = nbytes <= self.shared.tuning.copy_up_to;
        let in_order = self.shared.keeps_order();
        // SAFETY: valid during this call, which waits for what is not copied.
        unsafe { self.start_put(pe, dest, source, false) }?;
        if !in_order {
            self.delivered(pe)?;
        }
        self.update(pe, signal_addr, AmoWidth::Eight, op, signal)?;
        if copied || !in_order || pe.0 == self.shared.me { Ok(()) } else { self.completed(pe) }
    }

    unsafe fn put_signal_nbi(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
        signal_addr: RemoteAddr,
        signal: u64,
        op: AmoOp,
    ) -> Result<(), Error> {
        let source = Range { base: source.cast_mut(), nbytes };
        // SAFETY: the same contract.
        unsafe { self.start_put(pe, dest, source, false) }?;
        if !self.shared.keeps_order() {
            self.delivered(pe)?;
        }
        self.update(pe, signal_addr, AmoWidth::Eight, op, signal)
    }

    fn fence(&mut self) -> Result<(), Error> {
        if !self.shared.keeps_order() {
            self.all_completed()?;
            self.flush(None)?;
        }
        // Messages are carried out some time after they have come; what is written later may be faster.
        self.due_at_most(0, |_| true)
    }

    fn quiet(&mut self) -> Result<(), Error> {
        self.all_completed()?;
        self.flush(None)?;
        self.due_at_most(0, |_| true)?;
        self.shared.check()
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        self.progress()?;
        let under_way = self.on_lane(|lane| Ok(lane.under_way()))?;
        // Reading back is short once all has left.
        if under_way > 0 || self.any_due() { Ok(false) } else { self.quiet().map(|()| true) }
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        // Nothing is under way towards one that was never connected, such as one whose memory is mapped.
        if !self.shared.is_connected(pe)? {
            return self.shared.check();
        }
        self.delivered(pe)?;
        self.due_at_most(0, |due| due.pe == pe.0)?;
        self.shared.check()
    }

    fn progress(&mut self) -> Result<(), Error> {
        self.shared.poll()?;
        self.collect();
        self.on_lane(|_| Ok(()))
    }
}

impl Drop for OfiEndpoint {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete; the lane is closed.
        if self.quiet().is_ok() {
            lock(&self.shared.spare).push(Arc::clone(&self.cell));
        }
    }
}
