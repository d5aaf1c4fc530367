//! Connects an ep to PEs, over providers that need connections. At the first use of a PE, the ep
//! sends it an empty message, which its service ignores, and nothing else until that message is
//! complete. So if the connection is not made, only this message fails, and it can be sent again.
#![allow(unsafe_code)]

use super::connecting::{AGAIN, CONNECTED, report};
use super::{BufferUse, EpFailure, FiEndpoint, Op, PostStatus};
use crate::permits::MAX_AT_ONCE;
use libfabric_sys as fi;

impl FiEndpoint {
    /// Returns true if there is a free cell, and the PE is connected or needs no connection.
    pub(super) fn may_begin(&self, pe: u32) -> bool {
        !self.free.is_empty() && self.is_connected(pe)
    }

    /// Returns true if this ep is connected to a PE, or needs no connection.
    pub(crate) fn is_connected(&self, pe: u32) -> bool {
        self.room[pe as usize] > 0 || !self.fabric.info.connects
    }

    /// Called when an operation on a PE with this address could not begin. If the PE is not
    /// connected, starts to connect it, or marks it as usable if the provider makes no connections.
    /// Otherwise there was no free cell. The caller tries again later in each case.
    #[cold]
    #[inline(never)]
    pub(super) fn defer(&mut self, pe: u32, fi_addr: fi::fi_addr_t) -> Result<PostStatus, i32> {
        if self.room[pe as usize] > 0 {
            return Ok(PostStatus::Again);
        }
        let connects = self.fabric.info.connects;
        self.room[pe as usize] = if connects { 0 } else { CONNECTED };
        if connects && !self.connecting.is_sent(pe) && !self.attempts.pauses(pe) {
            self.connect(pe, fi_addr)?;
        }
        Ok(PostStatus::Again)
    }

    /// Sends the message that connects to a PE, if there is a free cell and a permit.
    fn connect(&mut self, pe: u32, fi_addr: fi::fi_addr_t) -> Result<(), i32> {
        let Some(&op) = self.free.last() else {
            return Ok(());
        };
        let connection = self.connecting.take_or_begin(pe, &self.fabric.permits);
        let Some(mut connection) = connection else {
            if self.connecting.start_waiting() {
                let why = format!("{MAX_AT_ONCE} connections are being made");
                report(pe, &why, "waits to connect to it");
            }
            return Ok(());
        };
        let (endpoint, desc, context) =
            (self.endpoint.raw(), self.staging_desc(), self.context(op));
        let nothing = self.staging.cell(op).base.cast();
        // SAFETY: an open endpoint, and a context and a cell that no operation uses.
        let code = unsafe { fi::fi_send(endpoint, nothing, 0, desc, fi_addr, context) };
        match i32::try_from(code).unwrap_or(-fi::FI_EIO) {
            0 => {
                self.free.pop();
                self.ops[op as usize] = Op {
                    pe,
                    use_: BufferUse::Connect,
                };
                connection.is_sent = true;
                self.connecting.keep(connection);
                Ok(())
            }
            code if code == -fi::FI_EAGAIN => {
                self.connecting.keep(connection);
                Ok(())
            }
            code if self.record_failed_connect(pe, code, &self.strerror(code)) => Ok(()),
            code => Err(code),
        }
    }

    /// Records that the message that connects, in the cell `op`, is complete.
    #[cold]
    pub(super) fn finish_connect(&mut self, op: u32) {
        let pe = self.ops[op as usize].pe;
        self.room[pe as usize] = CONNECTED;
        self.attempts.record_reached(pe);
        self.connecting.take(pe);
        let which = format!("connection {} of this PE", self.fabric.permits.count_made());
        report(pe, &which, "connected to it");
    }

    /// Handles the failure with this code of the message that connects, in the cell `op`. The next
    /// operation on the PE sends it again.
    ///
    /// # Errors
    /// If attempts have taken too long, or the code does not mean that there is no connection.
    pub(super) fn fail_connect(
        &mut self,
        op: u32,
        code: i32,
        why: String,
    ) -> Result<(), EpFailure> {
        let pe = self.ops[op as usize].pe;
        self.end(op);
        self.room[pe as usize] = 0;
        self.connecting.take(pe);
        match self.record_failed_connect(pe, code, &why) {
            true => Ok(()),
            false => Err(EpFailure {
                pe: Some(pe),
                why: self.after_attempts(pe, code, why),
            }),
        }
    }

    /// Records that an attempt to connect has failed with this code. Returns true if another
    /// attempt is to be made.
    fn record_failed_connect(&mut self, pe: u32, code: i32, why: &str) -> bool {
        let again = self.attempts.record_refused_connect(pe, code);
        if again {
            report(pe, why, AGAIN);
        }
        again
    }
}
