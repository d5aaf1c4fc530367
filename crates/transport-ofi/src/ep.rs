//! An endpoint (ep) of libfabric with its completion queue, and the operations in flight on it.
//!
//! Every operation has a cell: a context that the provider may use until the operation completes,
//! and memory for short transfers, so that their source may be reused at once. An ep has no lock of
//! its own; the lock of the origin or of the service that owns it protects it.
//!
//! Files: `open` opens and closes an ep; `connecting` makes connections to PEs; `rma`, with its
//! `arguments`, `message` and `atomic` start operations; `poll` takes completions.
#![allow(unsafe_code)]

mod arguments;
mod atomic;
mod connecting;
mod message;
mod open;
mod poll;
mod rma;

use crate::block::CellBlock;
use crate::fabric::{Cq, Fabric, Fid};
pub(crate) use arguments::RmaAddress;
use arguments::WriteArguments;
use connecting::{CONNECTED, Connections};
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;

/// The memory of an operation, by what happens to it at completion.
enum BufferUse {
    /// The cell is free.
    None,
    /// Nothing happens: the memory is the caller's, or its contents are ignored.
    Plain,
    /// The memory is the caller's and was registered for this operation alone. The registration is
    /// closed.
    Registered { _mr: Fid<fi::fid_mr> },
    /// The first bytes of the cell are copied to this memory, the destination of the operation.
    Landing(LocalBuf),
    /// The cell is the buffer of a receive, whose message is handled.
    Receive,
    /// The empty message that connects to the PE: the PE is connected.
    Connect,
}

struct Op {
    pe: u32,
    use_: BufferUse,
}

/// A failure that the job cannot survive: the reason, and the PE that it concerns if that is known.
#[derive(Debug)]
pub(crate) struct EpFailure {
    pub(crate) pe: Option<u32>,
    pub(crate) why: String,
}

/// The outcome of a receive.
pub(crate) enum ReceiveOutcome<'a> {
    /// A whole message.
    Whole(&'a [u8]),
    /// The message did not fit the buffer, so it is longer than any that a PE of the job sends.
    /// `start` is as long as a head; `nbytes` is the length of the message as far as the provider
    /// reports it.
    Truncated { start: &'a [u8], nbytes: usize },
    /// The receive failed, perhaps in the middle of a message with this start.
    Failed { start: &'a [u8], why: String },
}

/// The result of an attempt to start an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostStatus {
    /// The operation is in flight.
    Started,
    /// Not started; the caller tries again after a poll. libfabric has no room (FI_EAGAIN), no cell
    /// is free, the PE is not connected yet, or an attempt to reach it was refused and a pause is
    /// not over.
    Again,
}

/// The owner of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EpOwner {
    /// The service, which receives messages, and on whose queue threads sleep.
    Service,
    /// An origin, which receives nothing.
    Origin,
}

/// The sizes in bytes of the buffers of an endpoint.
#[derive(Clone, Copy)]
pub(crate) struct BufferSizes {
    /// A cell: the longest message that is received, and the longest transfer or message that is
    /// copied.
    pub(crate) cell: usize,
    /// The longest transfer that is copied.
    pub(crate) copy_up_to: usize,
    /// The longest message; its data may be sent from the memory of the caller.
    pub(crate) longest_message: usize,
}

/// An endpoint. Its drop closes registrations before the objects that they belong to, and frees
/// memory after the endpoint was closed.
pub(crate) struct FiEndpoint {
    /// The operation that uses each cell. Operations are known by the numbers of their cells.
    ops: Vec<Op>,
    /// The registration of `staging`, if the provider requires one.
    staging_mr: Option<Fid<fi::fid_mr>>,
    pub(crate) endpoint: ManuallyDrop<Fid<fi::fid_ep>>,
    pub(crate) cq: Arc<Cq>,
    /// The context of each operation.
    contexts: ManuallyDrop<CellBlock>,
    /// The memory of each operation for a message or a short transfer.
    staging: ManuallyDrop<CellBlock>,
    /// The numbers of the cells that no operation uses.
    free: Vec<u32>,
    /// For each PE, the number of operations that may still begin, if it is positive: `CONNECTED`
    /// minus those in flight. Otherwise none may begin, since the PE is unconnected or an attempt
    /// to reach it was refused, and the number is minus those in flight.
    room: Vec<i32>,
    connections: Connections,
    /// The number of receives that wait for a message.
    pub(crate) receiving: usize,
    /// The minimum length of a cell in bytes, as requested.
    cell: usize,
    copy_up_to: usize,
    longest_message: usize,
    /// Maximum number of bytes of a write that is injected, with a completion; 0 if the provider
    /// does not support that.
    inject_up_to: usize,
    /// For each PE, the number of untracked writes since the last completion; `None` if the ep
    /// makes none.
    untracked: Option<Vec<u8>>,
    write_arguments: WriteArguments,
    /// libfabric's flags for the completion of a write: the data are in the target's memory, or, if
    /// the provider does not report that, were transmitted.
    completion: u64,
    pub(crate) fabric: Arc<Fabric>,
}

impl FiEndpoint {
    /// Returns the number of operations in flight, without receives.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.ops.len() - self.free.len() - self.receiving) as u32
    }

    /// Returns the number of operations in flight to a PE, without the message that connects to it.
    pub(crate) fn pending(&self, pe: u32) -> u32 {
        match self.room[pe as usize] {
            room @ 1.. => CONNECTED.abs_diff(room),
            room => room.unsigned_abs(),
        }
    }

    /// Returns true if there is a free cell and operations on a PE may begin.
    fn may_begin(&self, pe: u32) -> bool {
        !self.free.is_empty() && self.room[pe as usize] > 0
    }

    /// Returns true if operations on a PE may begin, or begin at the first use of the PE since the
    /// provider makes no connections.
    pub(crate) fn is_connected(&self, pe: u32) -> bool {
        self.room[pe as usize] > 0 || !self.fabric.info.connects
    }

    fn context(&self, op: u32) -> *mut core::ffi::c_void {
        self.contexts.cell(op).base.cast()
    }

    /// Begins an operation on a PE: takes a free cell and counts the operation as in flight, so
    /// that little is left to do when libfabric has accepted it. Returns `None` if there is no free
    /// cell or the PE is not usable; the caller then calls [`defer`](Self::defer).
    #[inline(always)]
    fn begin(&mut self, pe: u32, use_: BufferUse) -> Option<u32> {
        // The cell stays in the list until it is known that the PE is usable.
        let last = self.free.len().wrapping_sub(1);
        let op = *self.free.get(last)?;

        let room = &mut self.room[pe as usize];
        if *room <= 0 {
            return None;
        }
        *room -= 1;

        // SAFETY: `last` is an index of `free`, so it is less than the length, and the elements
        // before it are initialized.
        unsafe { self.free.set_len(last) };
        // A free cell has `BufferUse::None`. `forget` spares the check that there is nothing to
        // drop.
        std::mem::forget(std::mem::replace(
            &mut self.ops[op as usize],
            Op { pe, use_ },
        ));
        Some(op)
    }

    /// Frees the cell of an operation on a PE that has ended. Returns its use of memory, which the
    /// caller handles or drops.
    #[inline(always)]
    fn end(&mut self, op: u32) -> BufferUse {
        let Op { pe, use_ } = &mut self.ops[op as usize];
        self.room[*pe as usize] += 1;

        self.free.push(op);
        std::mem::replace(use_, BufferUse::None)
    }

    /// Returns the outcome of starting an operation that has begun, from the code that libfabric
    /// returned. Ends the operation if libfabric refused it.
    #[inline(always)]
    fn begun(&mut self, code: isize, op: u32) -> Result<PostStatus, i32> {
        if code == 0 {
            Ok(PostStatus::Started)
        } else {
            self.end_refused(code, op)
        }
    }

    /// Ends an operation that libfabric refused.
    #[cold]
    #[inline(never)]
    fn end_refused(&mut self, code: isize, op: u32) -> Result<PostStatus, i32> {
        let pe = self.ops[op as usize].pe;
        self.end(op);
        self.refuse(code, pe)
    }

    /// Handles the code with which libfabric refused an operation on a PE, which is not in flight.
    /// The caller tries it again later if there was no room, or if the PE could not be reached and
    /// the attempts have not taken too long.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, code: isize, pe: u32) -> Result<PostStatus, i32> {
        let code = match refused(code) {
            Ok(posted) => return Ok(posted),
            Err(code) => code,
        };
        let why = self.strerror(code);
        let is_tried_again = self
            .connections
            .refuse_operation(pe, code, &why, Instant::now());
        if !is_tried_again {
            return Err(code);
        }

        // No operation on the PE begins before the pause is over. `defer` then reverses this.
        self.room[pe as usize] -= CONNECTED;
        Ok(PostStatus::Again)
    }

    /// Returns libfabric's text for a code with which an operation on a PE finally failed, with the
    /// attempts to reach the PE if the code means that there is no connection.
    pub(crate) fn why_refused(&self, pe: u32, code: i32) -> String {
        self.after_attempts(pe, code, self.strerror(code))
    }

    /// Returns `why`. If the code means that there is no connection to the PE, adds the number and
    /// duration of the attempts, and advice.
    fn after_attempts(&self, pe: u32, code: i32, why: String) -> String {
        match self.connections.refused(pe, code) {
            Some(refused) => format!(
                "{why} (attempt {}, after {:.1} s); where a NIC has too many connections, start fewer PEs on a node, set \
                 SHMEM_OFI_PROVIDER to a provider without connections, which `shmem-info --doctor` names, or set \
                 SHMEM_HOST_LIMIT to a longer time",
                refused.n(),
                refused.elapsed().as_secs_f64()
            ),
            None => why,
        }
    }

    pub(crate) fn strerror(&self, code: i32) -> String {
        self.fabric.library.strerror(code)
    }
}

/// Returns the outcome for the code with which libfabric refused an operation.
#[cold]
fn refused(code: isize) -> Result<PostStatus, i32> {
    match i32::try_from(code).unwrap_or(-fi::FI_EIO) {
        code if code == -fi::FI_EAGAIN => Ok(PostStatus::Again),
        code => Err(code),
    }
}
