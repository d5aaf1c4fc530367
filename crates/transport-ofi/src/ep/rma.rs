//! Starting writes and reads on an ep.
#![allow(unsafe_code)]

use super::{FiEndpoint, Post, Remote, Use};
use libfabric_sys as fi;
use rushmem_transport::{LocalBuf, mem};
use std::ptr::null_mut;

impl FiEndpoint {
    /// Starts a write of at most `copy_up_to` bytes, whose source is free at once.
    ///
    /// # Safety
    /// The range is valid for reads.
    #[inline(always)]
    pub(crate) unsafe fn write_copy(&mut self, to: &Remote, from: LocalBuf) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        if from.nbytes <= self.inject_up_to {
            let flags = self.completion | fi::FI_INJECT;
            // SAFETY: valid by contract, and injected memory is free when the call returns.
            let code = unsafe { self.write_message(op, to, from, null_mut(), flags) };
            if code == 0 {
                return Ok(self.started(op, to.pe, Use::Plain));
            }
            if code == -(fi::FI_EAGAIN as isize) {
                return Ok(Post::Later);
            }
            self.injects_not(code)?;
        }
        // SAFETY: the same contract.
        unsafe { self.write_staged(op, to, from) }
    }

    /// An injected write was refused: from now on none is injected, if the provider does not do this at all.
    #[cold]
    fn injects_not(&mut self, code: isize) -> Result<(), i32> {
        let code = i32::try_from(code).unwrap_or(-fi::FI_EIO);
        if !is_refusal(code) {
            return Err(code);
        }
        self.inject_up_to = 0;
        Ok(())
    }

    /// As [`write_copy`](Self::write_copy), by way of a cell.
    ///
    /// # Safety
    /// The same.
    #[inline(never)]
    unsafe fn write_staged(&mut self, op: u32, to: &Remote, from: LocalBuf) -> Result<Post, i32> {
        let cell = self.staging.cell(op).skip(0).first(from.nbytes);
        // SAFETY: the source is valid by contract, and a cell has as many bytes.
        unsafe { mem::copy_bytes(cell.base, from.base, from.nbytes) };
        // SAFETY: the cell is this operation's until it completes.
        let code =
            unsafe { self.write_message(op, to, cell, self.staging_desc(), self.completion) };
        self.decide(code, op, to.pe, Use::Plain)
    }

    /// Starts a write. `known` is the descriptor of the segment that the source is in, if it is in one.
    ///
    /// # Safety
    /// The range is valid for reads until the operation completes or the ep is dropped.
    pub(crate) unsafe fn write(
        &mut self,
        to: Remote,
        from: LocalBuf,
        known: Option<usize>,
    ) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        // SAFETY: valid until the operation completes, by contract.
        let (desc, use_) = unsafe { self.describe(from, known, fi::FI_WRITE) }?;
        // SAFETY: by contract.
        let code = unsafe { self.write_message(op, &to, from, desc, self.completion) };
        self.decide(code, op, to.pe, use_)
    }

    /// # Safety
    /// The range is valid for reads: with `FI_INJECT` during the call, else until completion.
    #[inline(always)]
    unsafe fn write_message(
        &self,
        op: u32,
        to: &Remote,
        from: LocalBuf,
        desc: *mut core::ffi::c_void,
        flags: u64,
    ) -> isize {
        let iov = fi::iovec { iov_base: from.base.cast(), iov_len: from.nbytes };
        let mut desc = [desc];
        let rma = fi::fi_rma_iov { addr: to.address, len: from.nbytes, key: to.key };
        let message = fi::fi_msg_rma {
            msg_iov: &raw const iov,
            desc: desc.as_mut_ptr(),
            iov_count: 1,
            addr: to.at,
            rma_iov: &raw const rma,
            rma_iov_count: 1,
            context: self.context(op),
            data: 0,
        };
        // SAFETY: an open endpoint, a context that is free, and vectors that live during the call.
        unsafe { fi::fi_writemsg(self.endpoint.raw(), &message, flags) }
    }

    /// Starts a read into a cell; `dest`, of at most `copy_up_to` bytes, is written when it completes.
    ///
    /// # Safety
    /// `dest` is valid for writes until the operation completes or the ep is dropped.
    pub(crate) unsafe fn read_copy(&mut self, from: Remote, dest: LocalBuf) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let cell = self.staging.cell(op).skip(0).first(dest.nbytes);
        // SAFETY: the cell is this operation's until it completes.
        let code = unsafe { self.read_into(op, from, cell, self.staging_desc()) };
        self.decide(code, op, from.pe, Use::Landing(dest))
    }

    /// Starts a read of a byte that nobody wants.
    pub(crate) fn read_and_forget(&mut self, from: Remote) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let cell = self.staging.cell(op).skip(0).first(1);
        // SAFETY: the cell is this operation's until it completes.
        let code = unsafe { self.read_into(op, from, cell, self.staging_desc()) };
        self.decide(code, op, from.pe, Use::Plain)
    }

    /// Starts a read.
    ///
    /// # Safety
    /// `dest` is valid for writes until the operation completes or the ep is dropped.
    pub(crate) unsafe fn read(
        &mut self,
        from: Remote,
        dest: LocalBuf,
        known: Option<usize>,
    ) -> Result<Post, i32> {
        if self.staging_mr.is_some() && known.is_none() && dest.nbytes <= self.copy_up_to {
            // SAFETY: the same contract.
            return unsafe { self.read_copy(from, dest) };
        }
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        // SAFETY: valid until the operation completes, by contract.
        let (desc, use_) = unsafe { self.describe(dest, known, fi::FI_READ) }?;
        // SAFETY: by contract.
        let code = unsafe { self.read_into(op, from, dest, desc) };
        self.decide(code, op, from.pe, use_)
    }

    /// # Safety
    /// The range is valid for writes until completion.
    #[inline]
    unsafe fn read_into(
        &self,
        op: u32,
        from: Remote,
        to: LocalBuf,
        desc: *mut core::ffi::c_void,
    ) -> isize {
        let (endpoint, context) = (self.endpoint.raw(), self.context(op));
        let (Remote { at, address, key, .. }, LocalBuf { base, nbytes }) = (from, to);
        // SAFETY: an open endpoint, a context that is free, and memory that is valid by contract.
        unsafe { fi::fi_read(endpoint, base.cast(), nbytes, desc, at, address, key, context) }
    }
}

/// The provider does not do this at all.
fn is_refusal(code: i32) -> bool {
    let flags = fi::FI_EBADFLAGS as i32;
    [fi::FI_EINVAL, fi::FI_ENOSYS, fi::FI_EOPNOTSUPP, fi::FI_EMSGSIZE, flags].contains(&-code)
}
