//! The endpoint of one context. A verb takes the lock of its origin, has the origin carry it out,
//! and releases the lock.
//!
//! The runtime accesses a PE's own memory by the CPU, so that no operation comes here, unless the
//! network carries out the atomic operations.
#![allow(unsafe_code)]

use super::issuer::Issuer;
use super::origin::Origin;
use super::service_thread::{Driver, Progress};
use crate::{
    AmoRequest, Completion, Dest, DestBuf, Endpoint, EndpointUser, Error, Get, OldValue, Pe, Put,
    SignalOrder, Source, StridedBlocks,
};
use std::sync::{Arc, MutexGuard};
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

    /// Ends a verb whose result is `done`: see [`Issuers::release`](super::Issuers).
    #[inline]
    fn release<T>(
        &self,
        origin: MutexGuard<'_, Origin<N::Wire>>,
        done: Result<T, Error>,
    ) -> Result<T, Error> {
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

        let mut origin = self.issuer.lock();
        let done = origin.amo(pe, request, Some(fetched), Completion::Now);
        self.release(origin, done)?;
        Ok(old)
    }
}

impl<N: Driver> Endpoint for WireEndpoint<N> {
    fn put(&mut self, pe: Pe, mut put: Put) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.transfer(pe, &mut put);
        self.release(origin, done)
    }

    fn get(&mut self, pe: Pe, mut get: Get) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.transfer(pe, &mut get);
        self.release(origin, done)
    }

    fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks<Source>) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.transfer_strided(pe, blocks);
        self.release(origin, done)
    }

    fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks<Dest>) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.transfer_strided(pe, blocks);
        self.release(origin, done)
    }

    fn amo(&mut self, pe: Pe, request: AmoRequest, old: OldValue) -> Result<u64, Error> {
        let fetched = match old {
            OldValue::Returned => return self.fetch(pe, &request),
            OldValue::AtQuiet(to) => Some(to),
            OldValue::Ignored => None,
        };

        let mut origin = self.issuer.lock();
        let done = origin.amo(pe, &request, fetched, Completion::AtQuiet);
        self.release(origin, done).map(|()| 0)
    }

    fn put_signal(
        &mut self,
        pe: Pe,
        mut put: Put,
        signal: AmoRequest,
        order: SignalOrder,
    ) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.put_signal(pe, &mut put, &signal, order);
        self.release(origin, done)
    }

    fn session(&mut self, is_open: bool) -> Result<(), Error> {
        if is_open == self.in_session {
            return Ok(());
        }
        self.in_session = is_open;

        let mut origin = self.issuer.lock();
        let done = origin.session(is_open);
        self.release(origin, done)
    }

    fn fence(&mut self) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.fence();
        self.release(origin, done)
    }

    fn quiet(&mut self) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.quiet();
        self.release(origin, done)
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        let mut origin = self.issuer.lock();
        let done = origin.pe_quiet(pe);
        self.release(origin, done)
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        let polled = self.progress.poll();
        let mut origin = self.issuer.lock();
        let done = polled.and_then(|_| origin.is_quiet());
        self.release(origin, done)
    }

    fn when_quiet(&mut self, task: &Waker) -> Result<bool, Error> {
        let polled = self.progress.poll();
        let mut origin = self.issuer.lock();
        let done = polled.and_then(|_| origin.when_quiet(task));
        self.release(origin, done)
    }

    fn in_flight(&mut self) -> Result<Vec<(Pe, u64)>, Error> {
        let polled = self.progress.poll();
        let mut origin = self.issuer.lock();
        let done = polled.and_then(|_| origin.in_flight_by_pe());
        self.release(origin, done)
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
