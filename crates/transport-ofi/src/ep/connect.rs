//! Connecting an ep to PEs, over providers that need connections: at the first use of a PE an empty
//! message goes to it, which its service ignores, and nothing else until that has left. So what
//! fails with a connection that was not made is this message alone, which can be sent again.
#![allow(unsafe_code)]

use super::{BufferUse, EpFailure, FiEndpoint, Op, Post};
use crate::turns::{MOST_AT_ONCE, Turn, Turns};
use libfabric_sys as fi;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operations that may begin towards a PE to which the ep is connected: more than it has cells.
pub(super) const CONNECTED: i32 = i32::MAX;

/// How far a connection is that is not made yet.
enum ConnectState {
    /// As many as may be are being made.
    Waits,
    /// The provider makes it, and takes no message before.
    Begun(Turn),
    /// The message is in flight.
    Sent(Turn),
}

/// The connections that an ep has not made yet, by PE.
#[derive(Default)]
pub(super) struct Connecting(BTreeMap<u32, ConnectState>);

impl Connecting {
    /// Whether the message that connects to a PE is in flight.
    fn is_sent(&self, pe: u32) -> bool {
        matches!(self.0.get(&pe), Some(ConnectState::Sent(_)))
    }

    /// The turn to connect to a PE, which is taken if it is free; otherwise the PE waits for it.
    fn turn(&mut self, pe: u32, turns: &Arc<Turns>) -> Option<Turn> {
        let state = self.0.remove(&pe);
        if let Some(ConnectState::Begun(turn)) = state {
            return Some(turn);
        }
        let taken = turns.take();
        if taken.is_none() {
            self.0.insert(pe, ConnectState::Waits);
            if state.is_none() {
                rushmem_log::debug!(
                    peer = pe,
                    "waits to connect to it: {MOST_AT_ONCE} connections are being made"
                );
            }
        }
        taken
    }
}

impl FiEndpoint {
    /// Whether an operation may begin towards a PE now.
    pub(super) fn may_begin(&self, pe: u32) -> bool {
        !self.free.is_empty() && self.is_connected(pe)
    }

    /// Whether this ep is connected to a PE, or needs no connection.
    pub(crate) fn is_connected(&self, pe: u32) -> bool {
        self.room[pe as usize] != 0 || !self.fabric.facts.connects
    }

    /// Begins the first operation towards a PE in the cell `op`; whether it may begin. If it needs
    /// a connection, the cell is free again.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_first(&mut self, pe: u32, op: u32) -> bool {
        let connects = self.fabric.facts.connects;
        self.room[pe as usize] = if connects { 0 } else { CONNECTED - 1 };
        if connects {
            self.free.push(op);
        }
        !connects
    }

    /// Nothing could begin towards a PE with this address: connects to it, unless a free cell is
    /// what is missing.
    #[cold]
    #[inline(never)]
    pub(super) fn not_now(&mut self, pe: u32, at: fi::fi_addr_t) -> Result<Post, i32> {
        if !self.is_connected(pe) && !self.connecting.is_sent(pe) && !self.attempts.pauses(pe) {
            self.connect(pe, at)?;
        }
        Ok(Post::Later)
    }

    /// Sends the message that connects, if it is its turn.
    fn connect(&mut self, pe: u32, at: fi::fi_addr_t) -> Result<(), i32> {
        let Some(&op) = self.free.last() else { return Ok(()) };
        let Some(turn) = self.connecting.turn(pe, &self.fabric.turns) else { return Ok(()) };
        let (endpoint, desc, context) =
            (self.endpoint.raw(), self.staging_desc(), self.context(op));
        let nothing = self.staging.cell(op).base.cast();
        // SAFETY: an open endpoint, a context that is free, and a cell that no operation uses.
        let code = unsafe { fi::fi_send(endpoint, nothing, 0, desc, at, context) };
        match i32::try_from(code).unwrap_or(-fi::FI_EIO) {
            0 => {
                self.free.pop();
                self.ops[op as usize] = Op { pe, use_: BufferUse::Connect };
                self.connecting.0.insert(pe, ConnectState::Sent(turn));
                Ok(())
            }
            code if code == -fi::FI_EAGAIN => {
                self.connecting.0.insert(pe, ConnectState::Begun(turn));
                Ok(())
            }
            code if self.connects_again(pe, code, &self.strerror(code)) => Ok(()),
            code => Err(code),
        }
    }

    /// The message that connects, in the cell `op`, has left.
    #[cold]
    pub(super) fn connected(&mut self, op: u32) {
        let pe = self.ops[op as usize].pe;
        self.room[pe as usize] = CONNECTED;
        if let Some(ConnectState::Sent(turn)) = self.connecting.0.remove(&pe) {
            let connections = turn.made();
            rushmem_log::debug!(peer = pe, connections, "connected to it");
        }
    }

    /// The message that connects, in the cell `op`, has failed with this code.
    ///
    /// # Errors
    /// When the PE was tried for long, or the code means that it is in vain.
    pub(super) fn not_connected(
        &mut self,
        op: u32,
        code: i32,
        why: String,
    ) -> Result<(), EpFailure> {
        let pe = self.ops[op as usize].pe;
        self.end(op);
        self.room[pe as usize] = 0;
        self.connecting.0.remove(&pe);
        match self.connects_again(pe, code, &why) {
            true => Ok(()),
            false => Err(EpFailure { pe: Some(pe), why: self.after_attempts(pe, code, why) }),
        }
    }

    /// An attempt to connect has failed with this code; whether there is to be another one.
    fn connects_again(&mut self, pe: u32, code: i32, why: &str) -> bool {
        let again = self.attempts.may_connect(pe, code);
        if again {
            rushmem_log::debug!(peer = pe, "{why}: connects once more");
        }
        again
    }
}
