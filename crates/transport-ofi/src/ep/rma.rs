//! Starts writes and reads on an ep. Addresses, keys and descriptors are those of libfabric.
#![allow(unsafe_code)]

use super::{BufferUse, FiEndpoint, PostStatus, RmaAddress};
use libfabric_sys as fi;
use rushmem_transport::{DestBuf, LocalBuf, SourceBuf, mem};
use std::ptr::null_mut;

/// The codes that may mean that the provider does not support an operation with these flags.
const UNSUPPORTED: [i32; 5] = [
    fi::FI_EINVAL,
    fi::FI_ENOSYS,
    fi::FI_EOPNOTSUPP,
    fi::FI_EMSGSIZE,
    fi::FI_EBADFLAGS as i32,
];

/// Maximum number of untracked writes to a PE between two completions of operations on it. This
/// limits what libfabric keeps of writes to a PE that takes none: to this number after each
/// operation that was in flight.
const MAX_UNTRACKED: u8 = 64;

impl FiEndpoint {
    #[inline(always)]
    pub(crate) fn injects(&self, nbytes: usize) -> bool {
        nbytes <= self.inject_up_to
    }

    /// Starts a write of at most as many bytes as the ep [injects](Self::injects). Its source may
    /// be reused at once.
    #[inline(always)]
    pub(crate) fn write_injected(
        &mut self,
        to: RmaAddress,
        from: &SourceBuf,
    ) -> Result<PostStatus, i32> {
        let Some(op) = self.begin(to.pe, BufferUse::Plain) else {
            return self.defer(to.pe, to.fi_addr);
        };

        let flags = self.completion | fi::FI_INJECT;
        // SAFETY: a `SourceBuf` is valid for reads during this call, and libfabric does not access
        // injected memory after it.
        let code = unsafe { self.write_message(op, to, from.range(), null_mut(), flags) };

        match self.begun(code, op) {
            Err(code) => self.stop_injecting(code),
            posted => posted,
        }
    }

    /// Starts a write of at most as many bytes as the ep [injects](Self::injects), without a
    /// completion: where the target's CPU would send it as a message of its own, a word arrives
    /// sooner and with half of the messages. Its source may be reused at once, and a read shows
    /// that it has arrived. Returns `None` if the write must be tracked: the ep makes no such
    /// writes, or has made many since the last completion.
    #[inline]
    pub(crate) fn write_untracked(
        &mut self,
        to: RmaAddress,
        from: &SourceBuf,
    ) -> Option<Result<PostStatus, i32>> {
        let untracked = &mut self.untracked.as_mut()?[to.pe as usize];
        let may_begin = self.room[to.pe as usize] > 0;
        if !may_begin || *untracked == MAX_UNTRACKED {
            return None;
        }
        *untracked += 1;

        let LocalBuf { base, nbytes } = from.range();
        let endpoint = self.endpoint.raw();
        // SAFETY: the endpoint is open. A `SourceBuf` is valid for reads during this call, and
        // libfabric does not access injected memory after it.
        let code = unsafe {
            fi::fi_inject_write(
                endpoint,
                base.cast(),
                nbytes,
                to.fi_addr,
                to.address,
                to.key,
            )
        };
        Some(match code {
            0 => Ok(PostStatus::Started),
            code => self.refuse(code, to.pe),
        })
    }

    /// Handles the error of an injected write. If the provider does not support injection with a
    /// completion, injects no further writes, and the caller issues this one again; otherwise
    /// returns the error.
    #[cold]
    #[inline(never)]
    fn stop_injecting(&mut self, code: i32) -> Result<PostStatus, i32> {
        if !UNSUPPORTED.contains(&-code) {
            return Err(code);
        }

        self.inject_up_to = 0;
        Ok(PostStatus::Again)
    }

    /// Starts a write of at most `copy_up_to` bytes from a copy in a cell. Its source may be reused
    /// at once.
    pub(crate) fn write_staged(
        &mut self,
        to: RmaAddress,
        from: &SourceBuf,
    ) -> Result<PostStatus, i32> {
        let Some(op) = self.begin(to.pe, BufferUse::Plain) else {
            return self.defer(to.pe, to.fi_addr);
        };

        let LocalBuf { base, nbytes } = from.range();
        let cell = self.staging.cell(op).first(nbytes);
        // SAFETY: a `SourceBuf` is valid for reads during this call. A cell has `copy_up_to` bytes
        // or more, and no other operation uses that of `op`.
        unsafe { mem::copy_bytes::<mem::VolatileLoads>(cell.base, base, nbytes) };

        let desc = self.staging_desc();
        // SAFETY: `cell` is a part of the cell of `op`, which stays its own until it completes.
        let code = unsafe { self.write_message(op, to, cell, desc, self.completion) };
        self.begun(code, op)
    }

    /// Starts a write. `known` is the descriptor of the registration that contains the source, if
    /// there is one. If `source_free`, the write completes when the source may be reused, otherwise
    /// when the data are in the target's memory, if the provider reports that.
    pub(crate) fn write(
        &mut self,
        to: RmaAddress,
        from: &SourceBuf,
        known: Option<usize>,
        source_free: bool,
    ) -> Result<PostStatus, i32> {
        if !self.may_begin(to.pe) {
            return self.defer(to.pe, to.fi_addr);
        }

        // SAFETY: the creator of a `SourceBuf` keeps it valid for reads until its operation is
        // done.
        let (desc, use_) = unsafe { self.describe(from.range(), known, fi::FI_WRITE) }?;
        let Some(op) = self.begin(to.pe, use_) else {
            return self.defer(to.pe, to.fi_addr);
        };

        let completion = if source_free {
            fi::FI_COMPLETION | fi::FI_TRANSMIT_COMPLETE
        } else {
            self.completion
        };

        // SAFETY: the creator of a `SourceBuf` keeps it valid for reads until its operation is
        // done.
        let code = unsafe { self.write_message(op, to, from.range(), desc, completion) };
        self.begun(code, op)
    }

    /// Calls libfabric for a write that has begun in the cell `op`. Returns its code.
    ///
    /// # Safety
    /// The range is valid for reads: with `FI_INJECT` during the call, else until completion.
    #[inline(always)]
    unsafe fn write_message(
        &mut self,
        op: u32,
        to: RmaAddress,
        from: LocalBuf,
        desc: *mut core::ffi::c_void,
        flags: u64,
    ) -> isize {
        let context = self.context(op);
        let message = self.write_arguments.of(to, from, desc, context);
        // SAFETY: the endpoint is open, and `message` and the lists to which it points live during
        // the call. `context` is the cell of `op`, and `from` is valid by contract.
        unsafe { fi::fi_writemsg(self.endpoint.raw(), message, flags) }
    }

    /// Starts a read of a byte whose value is ignored.
    pub(crate) fn read_and_forget(&mut self, from: RmaAddress) -> Result<PostStatus, i32> {
        self.read_staged(from, 1, BufferUse::Plain)
    }

    /// Starts a read. `known` is the descriptor of the registration that contains `dest`, if any.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        from: RmaAddress,
        dest: &DestBuf,
        known: Option<usize>,
    ) -> Result<PostStatus, i32> {
        if self.staging_mr.is_some() {
            return self.read_into_registered(from, dest, known);
        }
        let Some(op) = self.begin(from.pe, BufferUse::Plain) else {
            return self.defer(from.pe, from.fi_addr);
        };

        // SAFETY: the creator of a `DestBuf` keeps it valid for writes until its operation is done.
        let code = unsafe { self.read_into(op, from, dest.range(), null_mut()) };
        self.begun(code, op)
    }

    /// Starts a read for a provider that needs registered memory. Short data for unregistered
    /// memory are read into a cell and copied at completion.
    #[inline(never)]
    fn read_into_registered(
        &mut self,
        from: RmaAddress,
        dest: &DestBuf,
        known: Option<usize>,
    ) -> Result<PostStatus, i32> {
        if known.is_none() && dest.nbytes() <= self.copy_up_to {
            return self.read_staged(from, dest.nbytes(), BufferUse::Landing(dest.range()));
        }
        if !self.may_begin(from.pe) {
            return self.defer(from.pe, from.fi_addr);
        }

        // SAFETY: the creator of a `DestBuf` keeps it valid for writes until its operation is done.
        let (desc, use_) = unsafe { self.describe(dest.range(), known, fi::FI_READ) }?;
        let Some(op) = self.begin(from.pe, use_) else {
            return self.defer(from.pe, from.fi_addr);
        };

        // SAFETY: the creator of a `DestBuf` keeps it valid for writes until its operation is done.
        let code = unsafe { self.read_into(op, from, dest.range(), desc) };
        self.begun(code, op)
    }

    /// Starts a read of at most `copy_up_to` bytes into a cell.
    fn read_staged(
        &mut self,
        from: RmaAddress,
        nbytes: usize,
        use_: BufferUse,
    ) -> Result<PostStatus, i32> {
        let Some(op) = self.begin(from.pe, use_) else {
            return self.defer(from.pe, from.fi_addr);
        };

        let cell = self.staging.cell(op).first(nbytes);
        // SAFETY: `cell` is a part of the cell of `op`, which stays its own until it completes.
        let code = unsafe { self.read_into(op, from, cell, self.staging_desc()) };
        self.begun(code, op)
    }

    /// Calls libfabric for a read that has begun in the cell `op`. Returns its code.
    ///
    /// # Safety
    /// The range is valid for writes until completion.
    #[inline(always)]
    unsafe fn read_into(
        &self,
        op: u32,
        from: RmaAddress,
        to: LocalBuf,
        desc: *mut core::ffi::c_void,
    ) -> isize {
        let context = self.context(op);
        // SAFETY: the endpoint is open, `context` is the cell of `op`, and `to` is valid by
        // contract.
        unsafe {
            fi::fi_read(
                self.endpoint.raw(),
                to.base.cast(),
                to.nbytes,
                desc,
                from.fi_addr,
                from.address,
                from.key,
                context,
            )
        }
    }
}

#[cfg(test)]
mod tests;
