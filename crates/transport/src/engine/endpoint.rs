//! The endpoint of one context: it implements the verbs by the operations of an origin.
//!
//! The runtime accesses a PE's own memory by the CPU, so that no operation comes here, unless the
//! network carries out the atomic operations.
#![allow(unsafe_code)]

use super::acks::RequestOrder;
use super::issuer::Issuer;
use super::keys::check;
use super::origin::Origin;
use super::service_thread::{Driver, Progress};
use crate::peers::check_aligned;
use crate::{
    AmoRequest, AmoWidth, Dest, DestBuf, Endpoint, EndpointUser, Error, Follows, Get, OldValue, Pe,
    Put, Source, StridedBlocks,
};
use std::sync::Arc;

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

    /// Calls `work` with the endpoint's origin, under the lock of that origin.
    fn with_origin<T: Send>(
        &self,
        work: impl FnOnce(&mut Origin<N::Wire>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.progress.issuers.with_origin(&self.issuer, work)
    }

    /// Starts an atomic operation, and waits for its end if it is `awaited`. Stores the old value
    /// at `fetched`, if that is there.
    fn operate(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        fetched: Option<DestBuf>,
        awaited: bool,
    ) -> Result<(), Error> {
        check_aligned(pe, request.dest, request.width)?;
        self.with_origin(|origin| {
            if origin.caps.amos.are_on(request.dest.segment) {
                return origin.operate(pe, request, fetched, awaited);
            }
            check(&*origin.network, pe, request.dest, request.width.nbytes())?;
            match fetched {
                Some(fetched) if awaited => origin.fetch(pe, request, fetched),
                fetched => origin.update(pe, None, request, fetched, RequestOrder::AfterFence),
            }
        })
    }

    /// Carries out an atomic operation. Returns the old value, zero-extended.
    fn fetch(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        let mut old = [0u64];
        // SAFETY: the local outlives the operation: the call returns when that has ended or, after
        // a loss, when the wire was abandoned and no answer is stored any more.
        let fetched = unsafe { DestBuf::new(old.as_mut_ptr().cast(), request.width.nbytes()) };
        self.operate(pe, request, Some(fetched), true)?;
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

impl<N: Driver> Endpoint for WireEndpoint<N> {
    fn put(&mut self, pe: Pe, mut put: Put) -> Result<(), Error> {
        self.with_origin(|origin| origin.transfer(pe, &mut put))
    }

    fn get(&mut self, pe: Pe, mut get: Get) -> Result<(), Error> {
        self.with_origin(|origin| origin.transfer(pe, &mut get))
    }

    fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks<Source>) -> Result<(), Error> {
        self.with_origin(|origin| origin.transfer_strided(pe, blocks))
    }

    fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks<Dest>) -> Result<(), Error> {
        self.with_origin(|origin| origin.transfer_strided(pe, blocks))
    }

    fn amo(&mut self, pe: Pe, request: AmoRequest, old: OldValue) -> Result<u64, Error> {
        let fetched = match old {
            OldValue::Returned => return self.fetch(pe, &request),
            OldValue::AtQuiet(to) => Some(to),
            OldValue::Ignored => None,
        };
        self.operate(pe, &request, fetched, false).map(|()| 0)
    }

    fn put_signal(
        &mut self,
        pe: Pe,
        mut put: Put,
        signal: AmoRequest,
        follows: Follows,
    ) -> Result<(), Error> {
        check_aligned(pe, signal.dest, signal.width)?;
        self.with_origin(|origin| {
            check(&*origin.network, pe, signal.dest, signal.width.nbytes())?;
            if origin.caps.amos.are_on(signal.dest.segment) {
                origin.transfer(pe, &mut put)?;
                // Orders the signal after the data, and after all that was issued before.
                origin.fence()?;
                return origin.operate(pe, &signal, None, false);
            }
            check(&*origin.network, pe, put.remote, put.local.nbytes())?;
            origin.put_signal(pe, &mut put, &signal, follows)
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

impl<N: Driver> Drop for WireEndpoint<N> {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete.
        let _ = self.session(false).and_then(|()| self.quiet());
        self.issuer.remove_user();
    }
}
