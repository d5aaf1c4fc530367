//! Atomic operations of the fabric's own, where the user asks for them.
//!
//! One that the fabric lacks is made of its compare-and-swap, so that all compose with each other. They do not
//! compose with those of a CPU, so this knows of no memory that this PE shares.
#![allow(unsafe_code)]

use crate::ep::{Failure, Post, Remote, Wanted};
use crate::native::Amo;
use crate::origin::OfiEndpoint;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::{AmoOp, AmoRequest, AmoWidth, Error, Pe, RemoteAddr};

impl OfiEndpoint {
    /// Attempts an atomic operation that the fabric has, where nothing is in its way. While it polls nobody else need.
    ///
    /// # Safety
    /// Where the old value is wanted is valid for writes until the operation is over, or the ep was closed.
    ///
    /// # Errors
    /// When the fabric says that something failed.
    #[inline(always)]
    pub(crate) unsafe fn fetch_at_once(
        &mut self,
        dest: RemoteAddr,
        amo: Amo,
        pe: Pe,
        wanted: Wanted,
    ) -> Result<Post, Failure> {
        let (shared, nbytes) = (self.shared(), amo.width.nbytes());
        // Where CPUs carry atomic operations out the fabric has none.
        let is_usual =
            shared.native.has(amo.op, amo.width) && dest.offset.is_multiple_of(nbytes as u64);
        if !is_usual || self.is_past_fence(pe) {
            return Ok(Post::Later);
        }
        let Some(remote) = shared.known_remote(pe, dest, nbytes) else { return Ok(Post::Later) };
        let Some(mut ep) = self.ep.ep.own() else { return Ok(Post::Later) };
        let Some(ep) = ep.as_mut() else { return Ok(Post::Later) };
        // SAFETY: by contract.
        match unsafe { ep.atomic(remote, amo, Some(wanted)) } {
            Ok(Post::Started(op)) => ep.poll_for(op),
            _ => Ok(Post::Later),
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
        let &AmoRequest { dest, width, op, operand, condition, .. } = request;
        check_aligned(pe, dest, width)?;
        self.follow(pe)?;
        let remote = self.shared().remote(pe, dest, width.nbytes())?;
        let amo = Amo { op, width, operand, condition };
        if self.shared().native.has(op, width) {
            // SAFETY: by contract.
            return self.start(pe.0, |ep| unsafe { ep.atomic(remote, amo, wanted) });
        }
        let old = self.swap_until_applied(remote, amo)?;
        if let Some(Wanted { at, width }) = wanted {
            // SAFETY: valid for writes by contract.
            unsafe { width.write(at, old) };
        }
        Ok(())
    }

    /// Carries an operation out by compare-and-swap; returns the old value.
    fn swap_until_applied(&mut self, remote: Remote, amo: Amo) -> Result<u64, Error> {
        // Nobody knows what is there: a wrong guess tells.
        let mut guess = 0;
        loop {
            let operand = amo.applied(guess);
            let swap = Amo { op: AmoOp::CompareSwap, operand, condition: guess, ..amo };
            let mut old = 0u64;
            let wanted = Wanted { at: (&raw mut old).cast(), width: AmoWidth::Eight };
            // SAFETY: a local that lives until the swap has completed, or the ep is closed after a loss.
            self.start(remote.pe, |ep| unsafe { ep.atomic(remote, swap, Some(wanted)) })?;
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
