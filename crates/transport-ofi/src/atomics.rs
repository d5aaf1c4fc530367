//! Atomic operations of the fabric's own, where the user asks for them.
//!
//! One that the fabric lacks is made of its compare-and-swap, so that all compose with each other. They do not
//! compose with those of a CPU, so this knows of no memory that this PE shares.
#![allow(unsafe_code)]

use crate::ep::{Remote, Wanted};
use crate::native::Amo;
use crate::origin::OfiEndpoint;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::{AmoOp, AmoRequest, AmoWidth, Error, Pe};

impl OfiEndpoint {
    /// Carries an atomic operation of the fabric's out; returns the old value.
    ///
    /// # Errors
    /// When a PE was lost, or the word is none of its memory's.
    pub(crate) fn fetch_native(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        let (remote, amo) = self.native(pe, request)?;
        match self.shared().native.has(amo.op, amo.width) {
            true => self.carry_out_native(&remote, &amo),
            false => self.swap_until_applied(&remote, amo),
        }
    }

    /// Starts an atomic operation of the fabric's.
    ///
    /// # Safety
    /// Where the old value is wanted, if it is, is valid for writes until what is in flight towards the PE has completed.
    ///
    /// # Errors
    /// When a PE was lost, or the word is none of its memory's.
    pub(crate) unsafe fn start_native(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        wanted: Option<Wanted>,
    ) -> Result<(), Error> {
        let (remote, amo) = self.native(pe, request)?;
        if self.shared().native.has(amo.op, amo.width) {
            // SAFETY: by contract.
            return self.start(pe.0, |ep| unsafe { ep.atomic(&remote, &amo, wanted) });
        }
        let old = self.swap_until_applied(&remote, amo)?;
        if let Some(Wanted { at, width }) = wanted {
            // SAFETY: valid for writes by contract.
            unsafe { width.write(at, old) };
        }
        Ok(())
    }

    /// A word and what is done to it, after what it must follow.
    #[inline(always)]
    fn native(&mut self, pe: Pe, request: &AmoRequest) -> Result<(Remote, Amo), Error> {
        let &AmoRequest { dest, width, op, operand, condition, .. } = request;
        check_aligned(pe, dest, width)?;
        self.follow(pe)?;
        let remote = self.shared().remote(pe, dest, width.nbytes())?;
        Ok((remote, Amo { op, width, operand, condition }))
    }

    #[inline(always)]
    fn carry_out_native(&mut self, remote: &Remote, amo: &Amo) -> Result<u64, Error> {
        let mut old = 0u64;
        let wanted = Wanted { at: (&raw mut old).cast(), width: AmoWidth::Eight };
        // SAFETY: a local that lives until the operation has completed, or the ep is closed after a loss.
        self.carry_out(remote.pe, |ep| unsafe { ep.atomic(remote, amo, Some(wanted)) })?;
        // SAFETY: a live local, written through a pointer to it.
        Ok(unsafe { (&raw const old).read() })
    }

    /// Carries an operation out by compare-and-swap; returns the old value.
    fn swap_until_applied(&mut self, remote: &Remote, amo: Amo) -> Result<u64, Error> {
        // Nobody knows what is there: a wrong guess tells.
        let mut guess = 0;
        loop {
            let operand = amo.applied(guess);
            let swap = Amo { op: AmoOp::CompareSwap, operand, condition: guess, ..amo };
            let old = self.carry_out_native(remote, &swap)?;
            if old == guess {
                return Ok(old);
            }
            guess = old;
        }
    }
}
