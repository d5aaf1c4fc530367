//! Starts sends and receives of messages on an ep.
#![allow(unsafe_code)]

use super::{BufferUse, FiEndpoint, PostStatus, refused};
use crate::message::HEAD;
use libfabric_sys as fi;
use rushmem_transport::{LocalBuf, SourceBuf, mem};
use std::ptr::null_mut;

impl FiEndpoint {
    /// Returns true if a message with `nbytes` bytes after its head is copied to a cell, so that
    /// the source of its data may be reused at once.
    pub(crate) fn copies_data(&self, nbytes: usize) -> bool {
        HEAD + nbytes <= self.cell
    }

    /// Starts to send a message: a head, a copy of the bytes `copied`, and `data`, which are
    /// [copied](Self::copies_data) if there is room, or sent from the memory of the caller. The
    /// message is not injected, since an injected message has no completion.
    pub(crate) fn send(
        &mut self,
        pe: u32,
        to: fi::fi_addr_t,
        head: &[u8; HEAD],
        copied: &[u8],
        data: &SourceBuf,
    ) -> Result<PostStatus, i32> {
        let data = data.range();
        let start = HEAD + copied.len();
        if start > self.cell || start + data.nbytes > self.longest_message {
            return Err(-fi::FI_EMSGSIZE);
        }

        let Some(op) = self.begin(pe, BufferUse::Plain) else {
            return self.defer(pe, to);
        };

        let cell = self.staging.cell(op);
        // SAFETY: `cell` has `self.cell` bytes or more, and `start` is at most `self.cell`, as was
        // checked above; the head are the first of them. No other operation uses the cell of `op`.
        unsafe { cell.base.cast::<[u8; HEAD]>().write(*head) };

        let rest = cell.skip(HEAD).base;
        // SAFETY: `copied` is a slice, so valid for reads. `rest` points to the bytes of the cell
        // from `HEAD` on, of which there are `copied.len()` up to `start`; the slice is not in the
        // cell, to which no other code has a reference.
        unsafe { rest.copy_from_nonoverlapping(copied.as_ptr(), copied.len()) };

        let endpoint = self.endpoint.raw();
        let desc = self.staging_desc();
        let context = self.context(op);

        if self.copies_data(copied.len() + data.nbytes) {
            let body = cell.skip(start).base;
            // SAFETY: a `SourceBuf` is valid for reads, and `copies_data` says that the cell has
            // room for the data after `start`.
            unsafe { mem::copy_bytes::<mem::VolatileLoads>(body, data.base, data.nbytes) };

            let from = cell.base.cast();
            let nbytes = start + data.nbytes;
            // SAFETY: `endpoint` is open. `context` and the first `nbytes` bytes at `from` are in
            // cells of `op`, which stay its own until it completes.
            let code = unsafe { fi::fi_send(endpoint, from, nbytes, desc, to, context) };
            return self.begun(code, op);
        }

        // Only a provider that needs no registered memory gets data that do not fit a cell
        // (`FiInfo::streams`), so they have no descriptor.
        let parts = [iovec(cell.first(start)), iovec(data)];
        let mut descs = [desc, null_mut()];
        // SAFETY: `endpoint` is open, and `parts` and `descs` have two elements each, which
        // libfabric reads during the call. `context` and the first part are in cells of `op`. The
        // creator of the `SourceBuf` keeps `data` valid until the operation is done.
        let code =
            unsafe { fi::fi_sendv(endpoint, parts.as_ptr(), descs.as_mut_ptr(), 2, to, context) };
        self.begun(code, op)
    }

    /// Posts a receive for one more message.
    pub(crate) fn post_receive(&mut self) -> Result<PostStatus, i32> {
        let Some(op) = self.free.pop() else {
            return Ok(PostStatus::Again);
        };

        let to = self.staging.cell(op).base;
        // A failed receive reports the head that its buffer holds. That of an earlier message would
        // name a wrong sender.
        // SAFETY: `to` is the start of a cell, which has room for a head and, since `op` was free,
        // is used by no operation.
        unsafe { to.cast::<[u8; HEAD]>().write([0; HEAD]) };

        let endpoint = self.endpoint.raw();
        let desc = self.staging_desc();
        let context = self.context(op);
        // SAFETY: `endpoint` is open. `context` and `to` are in cells of `op`, which no other
        // operation uses, and an ep that receives has cells of `longest_message` bytes.
        let code = unsafe { fi::fi_recv(endpoint, to.cast(), self.longest_message, desc, context) };
        if code != 0 {
            self.free.push(op);
            return refused(code);
        }

        self.ops[op as usize].use_ = BufferUse::Receive;
        self.receiving += 1;
        Ok(PostStatus::Started)
    }
}

fn iovec(buf: LocalBuf) -> fi::iovec {
    fi::iovec {
        iov_base: buf.base.cast(),
        iov_len: buf.nbytes,
    }
}
