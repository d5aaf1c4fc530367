//! The endpoint of one context. A verb takes the lock of its origin, has the origin carry it out,
//! and releases the lock.
//!
//! The runtime accesses a PE's own memory by the CPU, so that no operation comes here, unless the
//! network carries out the atomic operations.
#![allow(unsafe_code)]

use super::driver::{Driver, Progress};
use super::issuer::Issuer;
use super::origin::Origin;
use crate::{
    AmoRequest, Completion, Dest, DestBuf, Endpoint, EndpointUser, Error, Get, OldValue, Pe, Put,
    SignalOrder, Source, StridedBlocks,
};
use std::sync::Arc;
use std::task::Waker;

/// One context's endpoint.
pub struct WireEndpoint<N: Driver> {
    progress: Arc<Progress<N>>,
    issuer: Arc<Issuer<N::Wire>>,
    in_session: bool,
}

impl<N: Driver> Progress<N> {
    /// Returns a new endpoint for a user.
    ///
    /// # Errors
    /// The errors of [`Driver::open_wire`], if there is no wire to share.
    pub fn endpoint(self: &Arc<Self>, user: EndpointUser) -> Result<WireEndpoint<N>, Error> {
        Ok(WireEndpoint {
            progress: Arc::clone(self),
            issuer: self.issuer(user)?,
            in_session: false,
        })
    }
}

impl<N: Driver> WireEndpoint<N> {
    /// Returns the issuer of the endpoint, which endpoints of other contexts may share.
    pub fn issuer(&self) -> &Arc<Issuer<N::Wire>> {
        &self.issuer
    }

    /// Carries out a verb under the lock of the origin. At the release, the service thread is asked
    /// to look for what the verb has left unfinished, and tasks are woken if nothing is.
    #[inline(always)]
    fn verb<T>(
        &self,
        carry_out: impl FnOnce(&mut Origin<N::Wire>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut origin = self.issuer.lock();
        let done = carry_out(&mut origin);
        self.progress.issuers.release(&self.issuer, origin, done)
    }

    /// Carries out an atomic operation. Returns the old value, zero-extended.
    fn fetch(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        // A word of 4 bytes is stored in the first ones. On a little-endian machine these are the
        // low ones, and the others stay 0.
        let mut old = 0u64;
        let word = (&raw mut old).cast();
        // SAFETY: `word` is the address of `old`, 8 aligned bytes, which outlive the operation: the
        // call returns when that has ended or, after a loss, when the wire was abandoned and no
        // answer is stored any more.
        let fetched = unsafe { DestBuf::new(word, request.width.nbytes()) };

        self.verb(|origin| origin.amo(pe, request, Some(fetched), Completion::Now))?;
        Ok(old)
    }
}

impl<N: Driver> Endpoint for WireEndpoint<N> {
    fn put(&mut self, pe: Pe, mut put: Put) -> Result<(), Error> {
        self.verb(|origin| origin.transfer(pe, &mut put))
    }

    fn get(&mut self, pe: Pe, mut get: Get) -> Result<(), Error> {
        self.verb(|origin| origin.transfer(pe, &mut get))
    }

    fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks<Source>) -> Result<(), Error> {
        self.verb(|origin| origin.transfer_strided(pe, blocks))
    }

    fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks<Dest>) -> Result<(), Error> {
        self.verb(|origin| origin.transfer_strided(pe, blocks))
    }

    fn amo(&mut self, pe: Pe, request: AmoRequest, old: OldValue) -> Result<u64, Error> {
        let fetched = match old {
            OldValue::Returned => return self.fetch(pe, &request),
            OldValue::AtQuiet(to) => Some(to),
            OldValue::Ignored => None,
        };

        self.verb(|origin| origin.amo(pe, &request, fetched, Completion::AtQuiet))
            .map(|()| 0)
    }

    fn put_signal(
        &mut self,
        pe: Pe,
        mut put: Put,
        signal: AmoRequest,
        order: SignalOrder,
    ) -> Result<(), Error> {
        self.verb(|origin| origin.put_signal(pe, &mut put, &signal, order))
    }

    fn session(&mut self, is_open: bool) -> Result<(), Error> {
        if is_open == self.in_session {
            return Ok(());
        }
        self.in_session = is_open;

        self.verb(|origin| origin.session(is_open))
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.verb(|origin| origin.fence())
    }

    fn quiet(&mut self) -> Result<(), Error> {
        self.verb(|origin| origin.quiet())
    }

    fn free_sources(&mut self, pe: Option<Pe>) -> Result<(), Error> {
        self.verb(|origin| origin.free_sources(pe))
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        self.verb(|origin| origin.pe_quiet(pe))
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        let polled = self.progress.poll();
        self.verb(|origin| polled.and_then(|_| origin.is_quiet()))
    }

    fn when_quiet(&mut self, task: &Waker) -> Result<bool, Error> {
        let polled = self.progress.poll();
        self.verb(|origin| polled.and_then(|_| origin.when_quiet(task)))
    }

    fn in_flight(&mut self) -> Result<Vec<(Pe, u64)>, Error> {
        let polled = self.progress.poll();
        self.verb(|origin| polled.and_then(|_| origin.in_flight_by_pe()))
    }
}

impl<N: Driver> Drop for WireEndpoint<N> {
    fn drop(&mut self) {
        // These fail only after a loss, when there is nothing left to complete; the loss itself was
        // reported to the host.
        let _ = self.session(false).and_then(|()| self.quiet());
        self.issuer.remove_user();
    }
}
