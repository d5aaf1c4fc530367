//! Atomic operations of the fabric's own, where the user asks for them.
//!
//! One that the fabric lacks is made of its compare-and-swap, so that all compose with each other.
//! They do not compose with those of a CPU, so this knows of no memory that this PE shares.
#![allow(unsafe_code)]

use crate::ep::{Remote, Wanted};
use crate::native::NativeAmo;
use crate::origin::OfiEndpoint;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::{AmoOp, AmoRequest, AmoWidth, Error, OldValue, Pe};

impl OfiEndpoint {
    /// Starts an atomic operation of the fabric's.
    ///
    /// # Safety
    /// Where the old value is wanted, if it is, is valid for writes until what is in flight towards
    /// the PE has completed.
    ///
    /// # Errors
    /// When a PE was lost, or the word is none of its memory's.
    pub(crate) unsafe fn start_native(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        wanted: Option<Wanted>,
    ) -> Result<(), Error> {
        let &AmoRequest { dest, width, op, operand, condition, .. } = request;
        check_aligned(pe, dest, width)?;
        self.follow(pe)?;
        let remote = self.word(pe, dest, width.nbytes())?;
        let amo = NativeAmo { op, width, operand, condition };
        if self.shared().native.has(op, width) {
            let awaited = request.old == OldValue::Returned;
            // SAFETY: by contract.
            return self.start(pe.0, awaited, |ep| unsafe { ep.atomic(&remote, &amo, wanted) });
        }
        let old = self.swap_until_applied(remote, amo)?;
        if let Some(Wanted { at, width }) = wanted {
            // SAFETY: valid for writes by contract.
            unsafe { width.write(at, old) };
        }
        Ok(())
    }

    /// Carries an operation out by compare-and-swap; returns the old value.
    fn swap_until_applied(&mut self, remote: Remote, amo: NativeAmo) -> Result<u64, Error> {
        // The value is unknown: a wrong guess returns it.
        let mut guess = 0;
        loop {
            let operand = amo.applied(guess);
            let swap = NativeAmo { op: AmoOp::CompareSwap, operand, condition: guess, ..amo };
            let mut old = 0u64;
            let wanted = Wanted { at: (&raw mut old).cast(), width: AmoWidth::Eight };
            // SAFETY: a local that lives until the swap has completed, or the ep is closed after a
            // loss.
            self.start(remote.pe, true, |ep| unsafe { ep.atomic(&remote, &swap, Some(wanted)) })?;
            self.completed(Pe(remote.pe))?;
            // SAFETY: a live local, written through a pointer to it.
            let old = unsafe { (&raw const old).read() };
            if old == guess {
                return Ok(old);
            }
            guess = old;
        }
    }
}
