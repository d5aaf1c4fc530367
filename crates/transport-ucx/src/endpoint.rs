//! The verbs of one context.
//!
//! A PE accesses its own memory directly, unless UCX carries out the atomic operations.
#![allow(unsafe_code)]

use crate::issuer::Issuer;
use crate::origin::Origin;
use crate::origin::transfers::TransferKind;
use crate::progress::Progress;
use crate::shared::SharedState;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::{
    AmoRequest, AmoWidth, Amos, Completion, Endpoint, Error, Follows, Get, LocalBuf, OldValue, Pe,
    Put, RemoteAddr, Segment, SignalUpdate, StridedBlocks,
};
use std::ptr::null_mut;
use std::sync::Arc;

/// One context's endpoint.
pub(crate) struct UcxEndpoint {
    progress: Arc<Progress>,
    issuer: Arc<Issuer>,
    in_session: bool,
}

/// No data comes with a request.
const NOTHING: (LocalBuf, RemoteAddr) =
    (LocalBuf::EMPTY, RemoteAddr { segment: Segment::Heap, offset: 0 });

impl UcxEndpoint {
    /// An endpoint that issues by a worker of which it is a user already.
    pub(crate) fn new(progress: Arc<Progress>, issuer: Arc<Issuer>) -> UcxEndpoint {
        UcxEndpoint { progress, issuer, in_session: false }
    }

    fn shared(&self) -> &SharedState {
        &self.progress.shared
    }

    fn with<T: Send>(
        &self,
        work: impl FnOnce(&mut Origin, &SharedState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.progress.with_origin(&self.issuer, work)
    }

    /// Returns true if `pe` is this PE and its memory is accessed directly: not if UCX carries out
    /// atomic operations, since they are not atomic with respect to the CPU's.
    fn is_direct(&self, pe: Pe) -> bool {
        pe == self.shared().me && self.shared().amos == Amos::Software
    }

    /// Returns true if the target's CPU carries out the operations on a segment. On the library's
    /// own flags it always does, so that it can wake a thread that waits for one.
    fn is_by_target(&self, segment: Segment) -> bool {
        self.shared().amos == Amos::Software || segment == Segment::Internal
    }

    /// Refuses what does not lie within a segment of a PE.
    fn check(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<(), Error> {
        self.shared().peers.get(pe)?.address(pe, at, nbytes).map(|_| ())
    }

    fn check_word(&self, pe: Pe, request: &AmoRequest) -> Result<(), Error> {
        check_aligned(pe, request.dest, request.width)?;
        self.check(pe, request.dest, request.width.nbytes())
    }

    /// Returns what this PE did with its own memory was within it.
    fn expect(&self, is_within: bool) -> Result<(), Error> {
        is_within.then_some(()).ok_or(Error::Unreachable(self.shared().me))
    }

    /// # Safety
    /// As the verb of this kind.
    unsafe fn transfer(
        &mut self,
        pe: Pe,
        kind: TransferKind,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        if self.is_direct(pe) {
            self.check(pe, at, local.nbytes)?;
            let segments = &self.shared().segments;
            return self.expect(match kind {
                // SAFETY: the local memory is valid by contract.
                TransferKind::Put | TransferKind::PutNbi => unsafe {
                    segments.write_from(at, local)
                },
                // SAFETY: the local memory is valid by contract.
                TransferKind::Get | TransferKind::GetNbi => unsafe {
                    segments.read_into(at, local)
                },
            });
        }
        // SAFETY: the same contract.
        self.with(|origin, shared| unsafe { origin.transfer(shared, pe, kind, at, local) })
    }

    /// # Safety
    /// As the verb of this kind.
    unsafe fn transfer_strided(
        &mut self,
        pe: Pe,
        kind: TransferKind,
        blocks: StridedBlocks,
    ) -> Result<(), Error> {
        if self.is_direct(pe) {
            for (at, local) in blocks.each() {
                // SAFETY: a block, valid by contract.
                unsafe { self.transfer(pe, kind, at, local) }?;
            }
            return Ok(());
        }
        // SAFETY: the same contract.
        self.with(|origin, shared| unsafe { origin.transfer_strided(shared, pe, kind, blocks) })
    }

    /// Starts an atomic operation, and waits for its end if it `blocks`.
    ///
    /// # Safety
    /// `fetched` is null or valid for writes of a word until the operation is complete.
    unsafe fn operate(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
        blocks: bool,
    ) -> Result<(), Error> {
        self.check_word(pe, request)?;
        if self.is_direct(pe) {
            let old = self.shared().segments.apply(request);
            if let Some(old) = old.filter(|_| !fetched.is_null()) {
                // SAFETY: valid by contract.
                unsafe { request.width.write(fetched, old) };
            }
            return self.expect(old.is_some());
        }
        let is_by_target = self.is_by_target(request.dest.segment);
        self.with(|origin, shared| {
            if is_by_target && !blocks {
                // SAFETY: the same contract, and there is no data.
                return unsafe {
                    origin.ask_nbi(shared, pe, request, fetched, NOTHING, (false, false))
                };
            }
            let begun = match is_by_target {
                // SAFETY: the same contract, and there is no data.
                true => unsafe {
                    origin.ask(shared, pe, request, fetched, NOTHING, (false, false))
                },
                // SAFETY: the same contract.
                false => unsafe { origin.operate(shared, pe, request, fetched) },
            }?;
            if blocks { origin.answered(shared, pe, begun) } else { Ok(()) }
        })
    }

    /// Carries out an atomic operation and waits for the old value.
    fn fetch(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        let mut old = [0u64];
        let fetched = old.as_mut_ptr().cast();
        // SAFETY: a local that lives until the operation has ended or, on an error, is forgotten.
        unsafe { self.operate(pe, request, fetched, true) }?;
        let [old] = old;
        Ok(match request.width {
            // The word's bytes are the first ones, whatever the order of bytes is.
            AmoWidth::Four => {
                let [a, b, c, d, ..] = old.to_ne_bytes();
                u64::from(u32::from_ne_bytes([a, b, c, d]))
            }
            AmoWidth::Eight => old,
        })
    }
}

impl Endpoint for UcxEndpoint {
    unsafe fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error> {
        let kind = match put.completion {
            Completion::Now => TransferKind::Put,
            Completion::AtQuiet => TransferKind::PutNbi,
        };
        // SAFETY: the same contract.
        unsafe { self.transfer(pe, kind, put.dest, put.source) }
    }

    unsafe fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error> {
        let kind = match get.completion {
            Completion::Now => TransferKind::Get,
            Completion::AtQuiet => TransferKind::GetNbi,
        };
        // SAFETY: the same contract.
        unsafe { self.transfer(pe, kind, get.source, get.dest) }
    }

    unsafe fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { self.transfer_strided(pe, TransferKind::Put, blocks) }
    }

    unsafe fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { self.transfer_strided(pe, TransferKind::GetNbi, blocks) }
    }

    unsafe fn amo(&mut self, pe: Pe, request: AmoRequest) -> Result<u64, Error> {
        let fetched = match request.old {
            OldValue::Returned => return self.fetch(pe, &request),
            OldValue::AtQuiet(to) => to,
            OldValue::Ignored => null_mut(),
        };
        // SAFETY: the same contract.
        unsafe { self.operate(pe, &request, fetched, false) }.map(|()| 0)
    }

    unsafe fn put_signal(&mut self, pe: Pe, put: Put, signal: SignalUpdate) -> Result<(), Error> {
        let update = signal.amo();
        self.check_word(pe, &update)?;
        if self.is_direct(pe) || !self.is_by_target(update.dest.segment) {
            // SAFETY: the same contract.
            unsafe { self.put(pe, put) }?;
            // It orders all that was issued before, too.
            self.fence()?;
            // SAFETY: nothing is fetched.
            return unsafe { self.operate(pe, &update, null_mut(), false) };
        }
        self.check(pe, put.dest, put.source.nbytes)?;
        let blocks = put.completion == Completion::Now && put.source.nbytes > 0;
        let follows_all = signal.follows == Follows::All;
        self.with(|origin, shared| {
            let data = (put.source, put.dest);
            // SAFETY: nothing is fetched; the data is valid by contract.
            unsafe { origin.ask_nbi(shared, pe, &update, null_mut(), data, (follows_all, blocks)) }
        })
    }

    fn session(&mut self, is_open: bool) -> Result<(), Error> {
        if is_open == self.in_session {
            return Ok(());
        }
        self.in_session = is_open;
        self.with(|origin, shared| origin.session(shared, is_open))
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.with(|origin, shared| origin.fence(shared))
    }

    fn quiet(&mut self) -> Result<(), Error> {
        self.with(|origin, shared| origin.quiet(shared))
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        let polled = self.progress.poll();
        self.with(|origin, shared| {
            polled?;
            origin.is_quiet(shared)
        })
    }

    fn in_flight(&mut self) -> Result<Option<Vec<(Pe, u64)>>, Error> {
        let polled = self.progress.poll();
        self.with(|origin, shared| {
            polled?;
            origin.in_flight(shared).map(Some)
        })
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        self.with(|origin, shared| origin.pe_quiet(shared, pe))
    }
}

impl Drop for UcxEndpoint {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete.
        let _ = self.session(false).and_then(|()| self.quiet());
        self.issuer.remove_user();
    }
}
