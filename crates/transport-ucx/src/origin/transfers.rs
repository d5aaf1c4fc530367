//! Puts and gets.
#![allow(unsafe_code)]

use super::Origin;
use crate::pending::{PePending, noted};
use crate::shared::SharedState;
use crate::ucp::{plain, started};
use rushmem_transport::kit::gather::SmallOperation;
use rushmem_transport::{Error, LocalAccess, LocalBuf, Pe, Proxy, RemoteAddr, Segment};
use std::ffi::c_void;
use ucx_sys::ucs_status_ptr_t;

/// What a transfer does, and when its call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferKind {
    Put,
    PutNbi,
    Get,
    GetNbi,
}

impl Origin {
    /// Copies between local memory and a PE's.
    ///
    /// # Safety
    /// The local memory is valid for reads, or for writes, until the call returns or, for the
    /// non-blocking ones, until the transfer is complete.
    pub(crate) unsafe fn transfer(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        kind: TransferKind,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        shared.peers.get(pe)?.address(pe, at, local.nbytes)?;
        let (mut at, mut rest) = (at, local);
        while rest.nbytes > 0 {
            // The target carries out what a session gathers, so no key is wanted.
            let nbytes = match self.gather.in_session()
                && self.may_gather_transfer(pe, kind, at.segment, rest.nbytes)
            {
                true => rest.nbytes,
                false => self.part(shared, pe, at, rest.nbytes)?,
            };
            // SAFETY: a part of what is valid by contract.
            unsafe { self.transfer_part(shared, pe, kind, at, rest.first(nbytes)) }?;
            at.offset += nbytes as u64;
            rest = rest.skip(nbytes);
        }
        Ok(())
    }

    /// Returns true if a transfer to or from a segment, or each block of one, is gathered unless it
    /// is a lone one.
    pub(super) fn may_gather_transfer(
        &self,
        pe: Pe,
        kind: TransferKind,
        segment: Segment,
        nbytes: usize,
    ) -> bool {
        // A batch is a message, of which UCX's fence knows nothing: a put that only that orders
        // would have to wait.
        let is_ordered =
            kind == TransferKind::Put && self.routes[pe].put_before && self.worker.orders();
        kind != TransferKind::Get && !is_ordered && self.may_gather(segment, nbytes)
    }

    /// Works as [`transfer`](Self::transfer), of what one key covers, which was found, or of what
    /// is gathered in a session.
    ///
    /// # Safety
    /// The same.
    pub(super) unsafe fn transfer_part(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        kind: TransferKind,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        let is_put = matches!(kind, TransferKind::Put | TransferKind::PutNbi);
        if self.worker.copies() || self.gather.in_session() {
            let access = if is_put { LocalAccess::Read } else { LocalAccess::Write };
            shared.loss.check_memory(access, local)?;
        }
        let may_gather = self.may_gather_transfer(pe, kind, at.segment, local.nbytes);
        let proxy = match may_gather {
            true => self.gather.proxy(&*shared.host, pe, &[at.segment]),
            false => Proxy::itself(pe),
        };
        let (_, connection) = self.connection(shared, proxy.pe)?;
        self.touch(proxy.pe);
        if may_gather && !self.gather.is_lone(pe) {
            if is_put {
                self.follow_puts(shared, proxy.pe, &connection, false)?;
            }
            let operation = match is_put {
                true => SmallOperation::Put(at, local),
                false => SmallOperation::Get(at, local),
            };
            // SAFETY: valid by contract.
            return unsafe { self.gather(shared, proxy, &[operation]) };
        }
        match kind {
            // This call waits.
            TransferKind::Get => self.send_all_gathered(shared)?,
            _ => self.send_gathered(shared, pe)?,
        }
        // SAFETY: the same contract.
        unsafe { self.begin_transfer(shared, pe, kind, at, local) }?;
        if may_gather {
            self.gather.has_left();
        }
        Ok(())
    }

    /// Has UCX carry out a transfer, and waits for its end where its call does.
    ///
    /// # Safety
    /// As [`transfer`](Origin::transfer).
    unsafe fn begin_transfer(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        kind: TransferKind,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        let remote = shared.peers.get(pe)?.address(pe, at, local.nbytes)?;
        let is_put = matches!(kind, TransferKind::Put | TransferKind::PutNbi);
        let (endpoint, connection) = self.connection(shared, pe)?;
        let key = self.key(shared, pe, at)?;
        if is_put {
            self.follow_requests(shared, pe)?;
            self.follow_puts(shared, pe, &connection, self.worker.orders())?;
            self.routes[pe].dirty = true;
        }
        let blocks = matches!(kind, TransferKind::Put | TransferKind::Get);
        let params = if blocks { plain() } else { noted(&connection) };
        let (ucp, params) = (self.ucp(), &raw const params);
        if !is_put {
            self.room(shared)?;
            let (base, nbytes) = (local.base.cast::<c_void>(), local.nbytes);
            // SAFETY: a live endpoint and its key; the local memory is valid by contract.
            let begun = unsafe { ucp.ucp_get_nbx(endpoint, base, nbytes, remote, key, params) };
            return self.finish_or_note(shared, pe, &connection, blocks, begun);
        }
        let mut done = 0;
        while done < local.nbytes {
            self.room(shared)?;
            let to = remote + done as u64;
            // A piece ends at a word of the target, wherever the put begins.
            let longest = self.worker.longest_put() - (to % 8) as usize;
            let piece = local.skip(done).first(longest);
            let base = piece.base.cast::<c_void>();
            // SAFETY: a live endpoint and its key; the local memory is valid by contract.
            let begun = unsafe { ucp.ucp_put_nbx(endpoint, base, piece.nbytes, to, key, params) };
            self.finish_or_note(shared, pe, &connection, blocks, begun)?;
            done += piece.nbytes;
        }
        Ok(())
    }

    #[inline]
    fn finish_or_note(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        connection: &PePending,
        blocks: bool,
        begun: ucs_status_ptr_t,
    ) -> Result<(), Error> {
        if blocks {
            let request = started(begun).map_err(self.fails(shared, pe))?;
            return self.end(shared, pe, request);
        }
        connection.began(begun).map_err(self.fails(shared, pe))
    }
}
