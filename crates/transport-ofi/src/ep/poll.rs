//! Takes completions from the queue of an ep.
#![allow(unsafe_code)]

use super::{BufferUse, EpFailure, FiEndpoint, ReceiveOutcome};
use crate::message::HEAD;
use libfabric_sys as fi;
use rushmem_transport::mem;
use std::mem::MaybeUninit;
use std::slice;

/// The errors of an operation that this PE and not its peer has caused: the local memory cannot be
/// accessed or sent.
const OF_THIS_PE: [i32; 3] = [libc::EFAULT, libc::ENOBUFS, libc::ENOMEM];

/// Maximum number of times that a poll fails to read an error that the queue reports and tries
/// again. After one more failure the queue counts as broken. Without a limit, a provider that
/// reports an error and never hands it out would keep the poll forever.
const READS: u32 = 100;

/// Maximum number of completions taken at once. Their entries are on the stack. A smaller number
/// would mean more calls of libfabric while many operations complete.
pub(super) const ENTRIES: usize = 32;

impl FiEndpoint {
    /// Polls the provider and handles completions. Calls `arrived` with the outcome of each
    /// receive. Returns the number of completions, without those of failed operations.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        mut arrived: impl FnMut(ReceiveOutcome<'_>),
    ) -> Result<usize, EpFailure> {
        let mut taken = 0;
        let mut unread = 0;
        loop {
            let mut entries = [const { MaybeUninit::<fi::fi_cq_msg_entry>::uninit() }; ENTRIES];
            let to = entries.as_mut_ptr().cast();
            // SAFETY: `cq` is open, its entries are of this kind (`FI_CQ_FORMAT_MSG`), and `to` has
            // room for `ENTRIES` of them.
            let n = unsafe { fi::fi_cq_read(self.cq.cq.raw(), to, ENTRIES) };

            match n {
                1.. => {
                    let n = (n as usize).min(ENTRIES);
                    for entry in &entries[..n] {
                        // SAFETY: the call has written the first `n` entries.
                        let entry = unsafe { entry.assume_init() };
                        self.complete(entry.op_context.cast(), entry.len, &mut arrived);
                    }
                    taken += n;

                    // With fewer than there is room for, the queue was empty a moment ago. To look
                    // once more would cost each poll a second call.
                    if n < ENTRIES {
                        return Ok(taken);
                    }
                }
                n if n == -(fi::FI_EAVAIL as isize) => match self.read_error(unread)? {
                    Some(entry) => self.handle_error(&entry, &mut arrived)?,
                    None => unread += 1,
                },
                0 => return Ok(taken),
                n if n == -(fi::FI_EAGAIN as isize) => return Ok(taken),
                n => {
                    return Err(EpFailure {
                        pe: None,
                        why: self.strerror(n as i32),
                    });
                }
            }
        }
    }

    /// Ends the operation with this context, which has succeeded. `nbytes` is the length of the
    /// message if the operation is a receive.
    #[inline]
    fn complete(
        &mut self,
        context: *const u8,
        nbytes: usize,
        arrived: &mut impl FnMut(ReceiveOutcome<'_>),
    ) {
        // Each operation has a context of this ep. A completion with another one is ignored.
        let Some(op) = self.contexts.index(context) else {
            return;
        };

        if matches!(self.ops[op as usize].use_, BufferUse::Receive) {
            let cell = self.staging.cell(op);
            let nbytes = nbytes.min(cell.nbytes);
            // SAFETY: `cell.base` points to `cell.nbytes` bytes of the ep, which were initialized
            // when they were allocated. The receive is over, so nothing writes to them before
            // `end_receive` frees the cell.
            let message = unsafe { slice::from_raw_parts(cell.base, nbytes) };
            arrived(ReceiveOutcome::Whole(message));
            return self.end_receive(op);
        }

        if let Some(untracked) = &mut self.untracked {
            untracked[self.ops[op as usize].pe as usize] = 0;
        }

        match self.end(op) {
            BufferUse::Landing(to) => {
                let from = self.staging.cell(op).base;
                // SAFETY: `to` is the destination of the operation, whose creator has kept it valid
                // for writes until now. `from` is the cell into which the operation has read as
                // many bytes.
                unsafe { mem::copy_bytes::<mem::VolatileLoads>(to.base, from, to.nbytes) };
            }
            BufferUse::Connect => self.finish_connect(op),
            BufferUse::None
            | BufferUse::Plain
            | BufferUse::Registered { .. }
            | BufferUse::Receive => {}
        }
    }

    /// Frees the cell of a receive that has ended.
    fn end_receive(&mut self, op: u32) {
        self.ops[op as usize].use_ = BufferUse::None;
        self.free.push(op);
        self.receiving -= 1;
    }

    /// Returns the error that the queue reports; `None` if it cannot be read at present. `unread`
    /// is the number of attempts before this one that returned `None`.
    #[cold]
    fn read_error(&mut self, unread: u32) -> Result<Option<fi::fi_cq_err_entry>, EpFailure> {
        // SAFETY: a C struct of numbers and pointers, for which zeros mean none.
        let mut entry: fi::fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: `cq` is open, and the call fills in `entry`.
        let n = unsafe { fi::fi_cq_readerr(self.cq.cq.raw(), &mut entry) };
        if n > 0 {
            return Ok(Some(entry));
        }

        let is_absent = n == 0 || n == -(fi::FI_EAGAIN as isize);
        if is_absent && unread < READS {
            return Ok(None);
        }

        let why = if is_absent {
            "nothing".to_owned()
        } else {
            self.strerror(n as i32)
        };
        let why = format!("{why} where its queue reports an error");
        Err(EpFailure { pe: None, why })
    }

    /// Handles a failed operation. A failed receive is passed to `arrived`, a failed connection is
    /// tried again if possible; the failure of another operation is returned.
    #[cold]
    fn handle_error(
        &mut self,
        entry: &fi::fi_cq_err_entry,
        arrived: &mut impl FnMut(ReceiveOutcome<'_>),
    ) -> Result<(), EpFailure> {
        let why = self.why_failed(entry);
        let Some(op) = self.contexts.index(entry.op_context.cast()) else {
            return Err(EpFailure { pe: None, why });
        };

        match self.ops[op as usize].use_ {
            BufferUse::Receive => {
                self.fail_receive(op, entry, &why, arrived);
                Ok(())
            }
            BufferUse::Connect => self.fail_connect(op, -entry.err, why),
            BufferUse::None
            | BufferUse::Plain
            | BufferUse::Registered { .. }
            | BufferUse::Landing(_) => {
                let pe = self.ops[op as usize].pe;
                if OF_THIS_PE.contains(&entry.err) {
                    // This PE's own failure, although the operation is with another one.
                    let why = format!("{why}, of local memory of an operation with PE {pe}");
                    return Err(EpFailure { pe: None, why });
                }
                Err(EpFailure { pe: Some(pe), why })
            }
        }
    }

    /// Passes the failure of the receive in the cell `op` to `arrived`, and frees the cell.
    fn fail_receive(
        &mut self,
        op: u32,
        entry: &fi::fi_cq_err_entry,
        why: &str,
        arrived: &mut impl FnMut(ReceiveOutcome<'_>),
    ) {
        let start = self.staging.cell(op).first(HEAD).base;
        // SAFETY: `start` points to `HEAD` bytes of the ep, which were initialized when they were
        // allocated. The receive is over, so nothing writes to them before `end_receive` frees the
        // cell.
        let start = unsafe { slice::from_raw_parts(start, HEAD) };

        match entry.err {
            // The endpoint was closed.
            libc::ECANCELED => {}
            err if err == fi::FI_ETRUNC as i32 => {
                arrived(ReceiveOutcome::Truncated {
                    start,
                    nbytes: entry.len + entry.olen,
                });
            }
            _ => arrived(ReceiveOutcome::Failed {
                start,
                why: format!("{why}, of a message"),
            }),
        }
        self.end_receive(op);
    }

    /// Returns the texts of libfabric and of the provider for a failed operation.
    fn why_failed(&self, entry: &fi::fi_cq_err_entry) -> String {
        let mut text = [0; 256];
        // SAFETY: `cq` is open, `entry` is one of its entries, and `text` has room for `text.len()`
        // bytes.
        let detail =
            unsafe { fi::fi_cq_strerror(self.cq.cq.raw(), entry, text.as_mut_ptr(), text.len()) };

        let mut why = self.strerror(entry.err);
        if !detail.is_null() {
            // SAFETY: `detail` points to a string that ends with a zero: one of libfabric's, or
            // `text`.
            let detail = unsafe { std::ffi::CStr::from_ptr(detail) }.to_string_lossy();
            if !detail.is_empty() && *detail != *why {
                why += &format!(" ({detail})");
            }
        }
        why
    }
}

#[cfg(test)]
mod tests;
