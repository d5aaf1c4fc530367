//! The verbs of one context.
#![allow(unsafe_code)]

use crate::origin::{Operation, Origin, Transfer};
use crate::peers::Peers;
use crate::shared::{Issuer, Shared};
use rushmem_transport::kit::amos::Amos;
use rushmem_transport::{
    AmoRequest, AmoWidth, Completion, Endpoint, Error, Get, LocalBuf, OldValue, Pe, Put,
    RemoteAddr, Segment, Signal, mem,
};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One context's endpoint.
pub(crate) struct UcxEndpoint {
    shared: Arc<Shared>,
    issuer: Arc<Issuer>,
}

/// No data comes with a request.
const NOTHING: (LocalBuf, RemoteAddr) =
    (LocalBuf::EMPTY, RemoteAddr { segment: Segment::Heap, offset: 0 });

impl UcxEndpoint {
    /// An endpoint that issues by a worker of which it is a user already.
    pub(crate) fn new(shared: Arc<Shared>, issuer: Arc<Issuer>) -> UcxEndpoint {
        UcxEndpoint { shared, issuer }
    }

    fn with<T: Send>(
        &self,
        work: impl FnOnce(&mut Origin, &Shared) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.shared.with_origin(&self.issuer, |origin| work(origin, &self.shared))
    }

    /// A PE reaches its own memory by itself, unless atomic operations do not compose with the CPU's.
    fn is_direct(&self, pe: Pe) -> bool {
        pe == self.shared.me && self.shared.amos == Amos::Software
    }

    /// Whether the target's CPU carries out the operations on a segment. On the library's own flags it
    /// always does, so that whoever waits for one can be rung for.
    fn is_asked(&self, segment: Segment) -> bool {
        self.shared.amos == Amos::Software || segment == Segment::Internal
    }

    /// This PE's own memory, when it is within a segment.
    fn own(&self, at: RemoteAddr, nbytes: usize) -> Result<*mut u8, Error> {
        self.shared.contact(self.shared.me)?.address(self.shared.me, at, nbytes)?;
        self.shared.areas.bytes(at, nbytes).ok_or(Error::Unreachable(self.shared.me))
    }

    /// # Safety
    /// As the verb of this kind.
    unsafe fn transfer(
        &mut self,
        pe: Pe,
        kind: Transfer,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        if self.is_direct(pe) {
            let own = self.own(at, local.nbytes)?;
            return match kind {
                Transfer::Put | Transfer::PutNbi => {
                    // SAFETY: the local memory is valid by contract, the other is in a segment.
                    unsafe { mem::copy_bytes(own, local.base.cast_const(), local.nbytes) };
                    Ok(())
                }
                Transfer::Get | Transfer::GetNbi => {
                    // SAFETY: as above.
                    unsafe { mem::copy_bytes(local.base, own.cast_const(), local.nbytes) };
                    Ok(())
                }
            };
        }
        // SAFETY: the same contract.
        self.with(|origin, shared| unsafe { origin.transfer(shared, pe, kind, at, local) })
    }

    /// Start an atomic operation, and wait for its end if `blocks`.
    ///
    /// # Safety
    /// `fetched` is null or valid for writes of a word until the operation is complete.
    unsafe fn operate(
        &mut self,
        pe: Pe,
        operation: Operation,
        fetched: *mut u8,
        blocks: bool,
    ) -> Result<(), Error> {
        let Operation { word, width, op, operand, condition } = operation;
        check_word(pe, word, width)?;
        if self.is_direct(pe) {
            let own = self.own(word, width.nbytes())?;
            // SAFETY: a word of a segment; its base is aligned as its offset is checked to be.
            let old = unsafe { mem::apply(op, width, own, operand, condition) };
            if !fetched.is_null() {
                // SAFETY: valid by contract.
                unsafe { width.write(fetched, old) };
            }
            return Ok(());
        }
        self.shared.contact(pe)?.address(pe, word, width.nbytes())?;
        let asked = self.is_asked(word.segment);
        self.with(|origin, shared| {
            let begun = match asked {
                // SAFETY: the same contract, and there is no data.
                true => unsafe { origin.ask(shared, pe, operation, fetched, NOTHING, false) },
                // SAFETY: the same contract.
                false => unsafe { origin.operate(shared, pe, operation, fetched) },
            }?;
            if blocks { origin.answered(shared, begun) } else { Ok(()) }
        })
    }

    /// Carry out an atomic operation and wait for the old value.
    fn fetch(&mut self, pe: Pe, request: AmoRequest) -> Result<u64, Error> {
        let mut old = [0u64];
        let fetched = old.as_mut_ptr().cast();
        // SAFETY: a local that lives until the operation has ended or, on an error, is forgotten.
        unsafe { self.operate(pe, request.into(), fetched, true) }?;
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

    /// # Safety
    /// As the verb that blocks, or the one that does not.
    unsafe fn signal(
        &mut self,
        pe: Pe,
        (dest, source): (RemoteAddr, LocalBuf),
        operation: Operation,
        blocks: bool,
    ) -> Result<(), Error> {
        check_word(pe, operation.word, operation.width)?;
        let kind = if blocks { Transfer::Put } else { Transfer::PutNbi };
        if self.is_direct(pe) || !self.is_asked(operation.word.segment) {
            // SAFETY: the same contract.
            unsafe { self.transfer(pe, kind, dest, source) }?;
            self.fence()?;
            // SAFETY: nothing is fetched.
            return unsafe { self.operate(pe, operation, null_mut(), false) };
        }
        let contact = self.shared.contact(pe)?;
        contact.address(pe, dest, source.nbytes)?;
        contact.address(pe, operation.word, operation.width.nbytes())?;
        self.with(|origin, shared| {
            let data = (source, dest);
            // SAFETY: nothing is fetched; the data is valid by contract.
            unsafe { origin.ask(shared, pe, operation, null_mut(), data, blocks) }.map(|_| ())
        })
    }
}

fn check_word(pe: Pe, at: RemoteAddr, width: AmoWidth) -> Result<(), Error> {
    match at.offset.is_multiple_of(width.nbytes() as u64) {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "offset {} of an atomic operation at PE {pe} is not a multiple of {}",
            at.offset,
            width.nbytes()
        ))),
    }
}

impl From<AmoRequest> for Operation {
    fn from(request: AmoRequest) -> Operation {
        let AmoRequest { dest, width, op, operand, condition, .. } = request;
        Operation { word: dest, width, op, operand, condition }
    }
}

impl Endpoint for UcxEndpoint {
    unsafe fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error> {
        let kind = match put.completion {
            Completion::Now => Transfer::Put,
            Completion::AtQuiet => Transfer::PutNbi,
        };
        // SAFETY: the same contract.
        unsafe { self.transfer(pe, kind, put.dest, put.source) }
    }

    unsafe fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error> {
        let kind = match get.completion {
            Completion::Now => Transfer::Get,
            Completion::AtQuiet => Transfer::GetNbi,
        };
        // SAFETY: the same contract.
        unsafe { self.transfer(pe, kind, get.source, get.dest) }
    }

    unsafe fn amo(&mut self, pe: Pe, request: AmoRequest) -> Result<u64, Error> {
        let fetched = match request.old {
            OldValue::Returned => return self.fetch(pe, request),
            OldValue::AtQuiet(to) => to,
            OldValue::Ignored => null_mut(),
        };
        // SAFETY: the same contract.
        unsafe { self.operate(pe, request.into(), fetched, false) }.map(|()| 0)
    }

    unsafe fn put_signal(&mut self, pe: Pe, put: Put, signal: Signal) -> Result<(), Error> {
        let blocks = put.completion == Completion::Now;
        // SAFETY: the same contract.
        unsafe { self.signal(pe, (put.dest, put.source), signal.amo().into(), blocks) }
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.with(|origin, shared| origin.fence(shared))
    }

    fn quiet(&mut self) -> Result<(), Error> {
        self.with(|origin, shared| origin.quiet(shared))
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        let polled = self.shared.poll();
        self.with(|origin, shared| {
            polled?;
            origin.advance(shared).map(|_| !origin.is_unfinished())
        })
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        self.with(|origin, shared| origin.pe_quiet(shared, pe))
    }
}

impl Drop for UcxEndpoint {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete.
        let _ = self.quiet();
        self.issuer.users.fetch_sub(1, Ordering::Release);
    }
}
