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

    /// Starts to send a message with a copy of these bytes after its head, and then data, which are
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
        // SAFETY: a cell that is this operation's, with room for a head.
        unsafe { cell.base.cast::<[u8; HEAD]>().write(*head) };

        let rest = cell.skip(HEAD).base;
        // SAFETY: a slice, and a cell that is this operation's, with room for it after the head.
        unsafe { rest.copy_from_nonoverlapping(copied.as_ptr(), copied.len()) };

        let endpoint = self.endpoint.raw();
        let desc = self.staging_desc();
        let context = self.context(op);
        if self.copies_data(copied.len() + data.nbytes) {
            let body = cell.skip(start).base;
            // SAFETY: the data of this message, and a cell with room for them.
            unsafe { mem::copy_bytes::<mem::VolatileLoads>(body, data.base, data.nbytes) };
            let from = cell.base.cast();
            let nbytes = start + data.nbytes;
            // SAFETY: an open endpoint, a context that is the operation's, and a cell that is this
            // operation's.
            let code = unsafe { fi::fi_send(endpoint, from, nbytes, desc, to, context) };
            return self.begun(code, op);
        }

        // Only a provider that needs no registered memory gets data that do not fit a cell
        // (`FiInfo::streams`), so they have no descriptor.
        let parts = [iovec(cell.first(start)), iovec(data)];
        let mut descs = [desc, null_mut()];
        // SAFETY: an open endpoint, a context that is the operation's, lists that live during the
        // call, a cell that is this operation's, and its data.
        let code =
            unsafe { fi::fi_sendv(endpoint, parts.as_ptr(), descs.as_mut_ptr(), 2, to, context) };
        self.begun(code, op)
    }

    /// Posts a receive for one more message.
    pub(crate) fn post_receive(&mut self) -> Result<PostStatus, i32> {
        let Some(op) = self.free.pop() else {
            return Ok(PostStatus::Again);
        };

        let endpoint = self.endpoint.raw();
        let desc = self.staging_desc();
        let context = self.context(op);
        let to = self.staging.cell(op).base;
        // A failed receive reports the head that its buffer holds. That of an earlier message would
        // name a wrong sender.
        // SAFETY: memory of this ep's own, which no operation uses, with room for a head.
        unsafe { to.cast::<[u8; HEAD]>().write([0; HEAD]) };

        // SAFETY: an open endpoint, and a context and a cell that no other operation uses. An ep
        // that receives has cells of the longest message.
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
