//! Starting to send messages on an ep, and to receive them.
#![allow(unsafe_code)]

use super::{BufferUse, FiEndpoint, Post, refused};
use crate::message::NBYTES;
use libfabric_sys as fi;
use rushmem_transport::mem;

impl FiEndpoint {
    /// Starts a message. It is not injected: an injected message has no completion, so nobody would
    /// know when it has left.
    pub(crate) fn send(
        &mut self,
        pe: u32,
        to: fi::fi_addr_t,
        message: &[u8; NBYTES],
    ) -> Result<Post, i32> {
        let endpoint = self.endpoint.raw();
        let Some(op) = self.begin(pe, BufferUse::Plain) else { return Ok(Post::Later) };
        let cell = self.staging.cell(op);
        // SAFETY: a cell has at least as many bytes.
        unsafe { mem::copy_bytes::<mem::VolatileLoads>(cell.base, message.as_ptr(), NBYTES) };
        let (desc, context) = (self.staging_desc(), self.context(op));
        // SAFETY: an open endpoint, a context that is the operation's, and a cell that is this
        // operation's.
        let code = unsafe { fi::fi_send(endpoint, cell.base.cast(), NBYTES, desc, to, context) };
        self.begun(code, op)
    }

    /// Waits for one more message.
    pub(crate) fn receive(&mut self) -> Result<Post, i32> {
        let Some(op) = self.free.pop() else { return Ok(Post::Later) };
        let (endpoint, desc, context) =
            (self.endpoint.raw(), self.staging_desc(), self.context(op));
        let to = self.staging.cell(op).base.cast();
        // SAFETY: an open endpoint, a context that is free, and a cell that is this operation's.
        let code = unsafe { fi::fi_recv(endpoint, to, NBYTES, desc, context) };
        if code != 0 {
            self.free.push(op);
            return refused(code);
        }
        self.ops[op as usize].use_ = BufferUse::Receive;
        self.receiving += 1;
        Ok(Post::Started)
    }
}
