//! An endpoint of libfabric with its queue, and the operations that are in flight on it.
//!
//! Every operation has a cell: a context that the provider may use until it completes, and memory
//! for short transfers, so that their source is free at once. Who uses an ep has its lock.
//!
//! The parts: `open` opens and closes it, `connect` makes connections, which `connecting` lists, to
//! PEs, `rma`, with its `arguments`, `message` and `atomic` start operations,
//! `attempts` counts those that were refused, `poll` takes completions.
#![allow(unsafe_code)]

mod arguments;
mod atomic;
mod attempts;
mod connect;
mod connecting;
mod message;
mod open;
mod poll;
mod rma;

use crate::block::CellBlock;
use crate::fabric::{Cq, Fabric};
use crate::fid::Fid;
pub(crate) use arguments::Remote;
use arguments::WriteArguments;
use attempts::RefusedAttempts;
use connecting::{AGAIN, CONNECTED, Connecting, report};
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The use that an operation makes of memory when it completes.
enum BufferUse {
    /// There is no operation, or it is over.
    None,
    /// Nothing: the memory is the caller's, or nobody wants it.
    Plain,
    /// The memory is the caller's and was registered for this operation alone.
    Registered { _mr: Fid<fi::fid_mr> },
    /// The first bytes in the cell go there.
    Landing(LocalBuf),
    /// A message came into the cell.
    Receive,
    /// Nothing: its message connects to the PE.
    Connect,
}

struct Op {
    pe: u32,
    use_: BufferUse,
}

/// The reason for a failure, and the PE that it concerns if that is known.
#[derive(Debug)]
pub(crate) struct EpFailure {
    pub(crate) pe: Option<u32>,
    pub(crate) why: String,
}

/// The outcome of a receive.
pub(crate) enum ReceiveOutcome<'a> {
    /// A message.
    Whole(&'a [u8]),
    /// One that is longer than any PE of the job sends: its start, and how many bytes it has as far
    /// as the provider says.
    Truncated { start: &'a [u8], nbytes: usize },
    /// The receive failed, perhaps in the middle of a message with this start.
    Failed { start: &'a [u8], why: String },
}

/// The result of an attempt to start an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostStatus {
    /// It is in flight.
    Started,
    /// There is no room for now: FI_EAGAIN.
    Again,
}

/// The sizes in bytes for which an endpoint is to have buffers.
#[derive(Clone, Copy)]
pub(crate) struct BufferSizes {
    /// A message that comes, and a transfer or message that is copied.
    pub(crate) cell: usize,
    /// The longest transfer that is copied.
    pub(crate) copy_up_to: usize,
    /// The longest message, whose data may be sent from where they are.
    pub(crate) longest_message: usize,
}

/// One endpoint. Registrations are closed before what they belong to, and memory is freed after it
/// was closed.
pub(crate) struct FiEndpoint {
    ops: Vec<Op>,
    staging_mr: Option<Fid<fi::fid_mr>>,
    pub(crate) endpoint: ManuallyDrop<Fid<fi::fid_ep>>,
    pub(crate) cq: Arc<Cq>,
    contexts: ManuallyDrop<CellBlock>,
    staging: ManuallyDrop<CellBlock>,
    free: Vec<u32>,
    /// Per PE, how many more operations may begin: none before it is used, and then `CONNECTED`
    /// less those in flight.
    room: Vec<i32>,
    connecting: Connecting,
    /// Receives that wait for a message.
    pub(crate) receiving: usize,
    /// Bytes of a cell.
    cell: usize,
    copy_up_to: usize,
    longest_message: usize,
    /// Writes up to this long are injected, with a completion; 0 if the provider does not take them
    /// so.
    inject_up_to: usize,
    write_arguments: WriteArguments,
    attempts: RefusedAttempts,
    /// The meaning of a write's completion, in libfabric's flags.
    completion: u64,
    pub(crate) fabric: Arc<Fabric>,
}

impl FiEndpoint {
    /// Operations in flight, receives not counted.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.ops.len() - self.free.len() - self.receiving) as u32
    }

    /// Operations in flight towards a PE, what connects to it not counted.
    pub(crate) fn pending(&self, pe: u32) -> u32 {
        match self.room[pe as usize] {
            0 => 0,
            room => CONNECTED.abs_diff(room),
        }
    }

    fn context(&self, op: u32) -> *mut core::ffi::c_void {
        self.contexts.cell(op).base.cast()
    }

    /// Begins an operation towards a PE: its cell, if there is a free one and the PE is connected;
    /// otherwise [`not_now`](Self::not_now) is next. It counts as in flight from now on, so that
    /// little is left to do when libfabric has taken it.
    #[inline(always)]
    fn begin(&mut self, pe: u32, use_: BufferUse) -> Option<u32> {
        let left = self.free.len().wrapping_sub(1);
        let op = *self.free.get(left)?;
        let room = &mut self.room[pe as usize];
        *room -= 1;
        if *room < 0 {
            // `not_now` follows, which corrects the number.
            return None;
        }
        // SAFETY: fewer than there are.
        unsafe { self.free.set_len(left) };
        // The operation that a free cell had is over: there is nothing to drop.
        std::mem::forget(std::mem::replace(&mut self.ops[op as usize], Op { pe, use_ }));
        Some(op)
    }

    /// Frees the cell of an operation that has ended. Returns the operation's use of memory.
    #[inline(always)]
    fn end(&mut self, op: u32) -> BufferUse {
        let Op { pe, use_ } = &mut self.ops[op as usize];
        self.room[*pe as usize] += 1;
        self.free.push(op);
        std::mem::replace(use_, BufferUse::None)
    }

    /// Returns what became of an operation that has begun, by libfabric's code.
    #[inline(always)]
    fn begun(&mut self, code: isize, op: u32) -> Result<PostStatus, i32> {
        if code == 0 { Ok(PostStatus::Started) } else { self.not_begun(code, op) }
    }

    #[cold]
    #[inline(never)]
    fn not_begun(&mut self, code: isize, op: u32) -> Result<PostStatus, i32> {
        let pe = self.ops[op as usize].pe;
        self.end(op);
        refused(code).or_else(|code| match self.attempts.go_on(pe, code) {
            true => {
                report(pe, &self.strerror(code), AGAIN);
                Ok(PostStatus::Again)
            }
            false => Err(code),
        })
    }

    /// Returns true if the next attempt at a PE that has refused has to wait.
    pub(crate) fn pauses(&self, pe: u32) -> bool {
        self.attempts.pauses(pe)
    }

    /// Returns libfabric's text for a code with which an operation on a PE finally failed.
    pub(crate) fn why_refused(&self, pe: u32, code: i32) -> String {
        self.after_attempts(pe, code, self.strerror(code))
    }

    /// Returns `why`, with the number of the attempts at the PE, their time and advice if the code
    /// means that there is no connection to it.
    fn after_attempts(&self, pe: u32, code: i32, why: String) -> String {
        match self.attempts.made(pe, code) {
            Some((n, time)) => format!(
                "{why} (attempt {n}, after {:.1} s); where a NIC has too many connections, start fewer PEs on a node, set \
                 SHMEM_OFI_PROVIDER to a provider without connections, which `shmem-info --doctor` names, or set \
                 SHMEM_HOST_LIMIT to a longer time",
                time.as_secs_f64()
            ),
            None => why,
        }
    }

    pub(crate) fn strerror(&self, code: i32) -> String {
        self.fabric.library.strerror(code)
    }
}

/// Converts the code with which libfabric rejected an operation.
#[cold]
fn refused(code: isize) -> Result<PostStatus, i32> {
    match i32::try_from(code).unwrap_or(-fi::FI_EIO) {
        code if code == -fi::FI_EAGAIN => Ok(PostStatus::Again),
        code => Err(code),
    }
}
