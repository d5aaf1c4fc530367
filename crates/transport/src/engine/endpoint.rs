//! The endpoint of one context: it implements the verbs by the operations of an origin.
//!
//! The runtime accesses a PE's own memory by the CPU, so that no operation comes here, unless the
//! network carries out the atomic operations.
#![allow(unsafe_code)]

use super::issuer::{Issuer, Issuers};
use super::message::Update;
use super::origin::Origin;
use super::requests::{NOWHERE, RequestParts};
use super::wire::{Wire, WireNetwork};
use crate::peers::check_aligned;
use crate::{
    AmoRequest, AmoWidth, Endpoint, Error, Get, LocalBuf, OldValue, Pe, Put, SignalUpdate,
    StridedBlocks,
};
use std::ptr::null_mut;
use std::sync::Arc;

/// The state of a provider that its endpoints use.
pub trait Issuing: Send + Sync {
    /// The wire over which endpoints issue operations.
    type Wire: Wire;

    /// Returns the issuers of this PE.
    fn issuers(&self) -> &Issuers<Self::Wire>;

    /// Polls all issuers and serves peers, for a thread that waits. Returns true if there was work
    /// for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    fn poll(&self) -> Result<bool, Error>;
}

/// One context's endpoint.
pub struct WireEndpoint<P: Issuing> {
    progress: Arc<P>,
    issuer: Arc<Issuer<P::Wire>>,
    in_session: bool,
}

impl<P: Issuing> WireEndpoint<P> {
    /// Returns an endpoint over an issuer that counts it among its users already.
    pub fn new(progress: Arc<P>, issuer: Arc<Issuer<P::Wire>>) -> WireEndpoint<P> {
        WireEndpoint {
            progress,
            issuer,
            in_session: false,
        }
    }

    /// Returns the issuer of the endpoint, which endpoints of other contexts may share.
    pub fn issuer(&self) -> &Arc<Issuer<P::Wire>> {
        &self.issuer
    }

    /// Calls `work` with the endpoint's origin, under the lock of that origin.
    fn with_origin<T: Send>(
        &self,
        work: impl FnOnce(&mut Origin<P::Wire>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.progress.issuers().with_origin(&self.issuer, work)
    }

    /// Starts an atomic operation, and waits for its end if it is `awaited`. Stores the old value
    /// at `fetched` unless that is null.
    ///
    /// # Safety
    /// `fetched` is null or valid for writes of a word until the operation is complete.
    unsafe fn operate(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
        awaited: bool,
    ) -> Result<(), Error> {
        check_aligned(pe, request.dest, request.width)?;
        self.with_origin(|origin| {
            if P::Wire::carries_out(&origin.network, request.dest.segment) {
                // SAFETY: `fetched` is null or valid until the operation is complete, by contract.
                return unsafe { origin.operate(pe, request, fetched, awaited) };
            }
            origin
                .network
                .check(pe, request.dest, request.width.nbytes())?;
            let update = Update::of(request);
            let parts = RequestParts {
                fetched,
                ..RequestParts::EMPTY
            };
            if !awaited {
                let nothing = (LocalBuf::EMPTY, NOWHERE);
                // SAFETY: `fetched` is null or valid until the operation is complete, by contract;
                // there are no data.
                return unsafe { origin.ask_nbi(pe, nothing, update, parts) };
            }
            let parts = RequestParts {
                update: Some(update),
                ..parts
            };
            // SAFETY: `fetched` is null or valid until the operation is complete, by contract;
            // there are no data.
            let ticket = unsafe { origin.ask(pe, parts) }?;
            origin.answered(pe, ticket)
        })
    }

    /// Carries out an atomic operation. Returns the old value, zero-extended.
    fn fetch(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        let mut old = [0u64];
        let fetched = old.as_mut_ptr().cast();
        // SAFETY: the local outlives the operation: the call returns when that has ended or, after
        // a loss, when the wire was abandoned and no answer is stored any more.
        unsafe { self.operate(pe, request, fetched, true) }?;
        let [old] = old;
        Ok(match request.width {
            // The bytes of the word are the first ones.
            AmoWidth::Four => {
                let [a, b, c, d, ..] = old.to_ne_bytes();
                u64::from(u32::from_ne_bytes([a, b, c, d]))
            }
            AmoWidth::Eight => old,
        })
    }
}

impl<P: Issuing> Endpoint for WireEndpoint<P> {
    unsafe fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error> {
        // SAFETY: the source is valid until the put is complete here, by the contract of the verb.
        self.with_origin(|origin| unsafe { origin.put(pe, &put) })
    }

    unsafe fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error> {
        // SAFETY: the destination is valid until the get is complete, by the contract of the verb.
        self.with_origin(|origin| unsafe { origin.get(pe, &get) })
    }

    unsafe fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        // SAFETY: every block is valid for reads, by the contract of the verb.
        self.with_origin(|origin| unsafe { origin.put_strided(pe, blocks) })
    }

    unsafe fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        // SAFETY: every block is valid until the next quiet, by the contract of the verb.
        self.with_origin(|origin| unsafe { origin.get_strided_nbi(pe, blocks) })
    }

    unsafe fn amo(&mut self, pe: Pe, request: AmoRequest) -> Result<u64, Error> {
        let fetched = match request.old {
            OldValue::Returned => return self.fetch(pe, &request),
            OldValue::AtQuiet(to) => to,
            OldValue::Ignored => null_mut(),
        };
        // SAFETY: null, or valid for a word until the next quiet, by the contract of the verb.
        unsafe { self.operate(pe, &request, fetched, false) }.map(|()| 0)
    }

    unsafe fn put_signal(&mut self, pe: Pe, put: Put, signal: SignalUpdate) -> Result<(), Error> {
        let update = signal.amo();
        check_aligned(pe, update.dest, update.width)?;
        self.with_origin(|origin| {
            origin
                .network
                .check(pe, update.dest, update.width.nbytes())?;
            if P::Wire::carries_out(&origin.network, update.dest.segment) {
                // SAFETY: the source is valid as `put` requires, by the contract of the verb.
                unsafe { origin.put(pe, &put) }?;
                // Orders the signal after the data, and after all that was issued before.
                origin.fence()?;
                // SAFETY: nothing is fetched.
                return unsafe { origin.operate(pe, &update, null_mut(), false) };
            }
            origin.network.check(pe, put.dest, put.source.nbytes)?;
            // SAFETY: the source is valid as `put` requires, by the contract of the verb.
            unsafe { origin.put_signal(pe, &put, &signal) }
        })
    }

    fn session(&mut self, is_open: bool) -> Result<(), Error> {
        if is_open == self.in_session {
            return Ok(());
        }
        self.in_session = is_open;
        self.with_origin(|origin| origin.session(is_open))
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.with_origin(|origin| origin.fence())
    }

    fn quiet(&mut self) -> Result<(), Error> {
        self.with_origin(|origin| origin.quiet())
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        let polled = self.progress.poll();
        self.with_origin(|origin| {
            polled?;
            origin.is_quiet()
        })
    }

    fn in_flight(&mut self) -> Result<Option<Vec<(Pe, u64)>>, Error> {
        let polled = self.progress.poll();
        self.with_origin(|origin| {
            polled?;
            origin.in_flight_by_pe().map(Some)
        })
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        self.with_origin(|origin| origin.pe_quiet(pe))
    }
}

impl<P: Issuing> Drop for WireEndpoint<P> {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete.
        let _ = self.session(false).and_then(|()| self.quiet());
        self.issuer.remove_user();
    }
}
