//! Connecting an ep to PEs, over providers that need connections: at the first use of a PE an empty
//! message goes to it, which its service ignores, and nothing else until that has left. So what
//! fails with a connection that was not made is this message alone, which can be sent again.
#![allow(unsafe_code)]

use super::{BufferUse, EpFailure, FiEndpoint, Op, Post};
use crate::turns::{MOST_AT_ONCE, Turn};
use libfabric_sys as fi;

/// Stands for the operations in flight towards a PE to which the ep is not connected: a number that
/// stays negative with one more and with one less.
const UNCONNECTED: i32 = i32::MIN / 2;

/// The operations in flight of an ep in which there are none yet.
pub(super) fn none_pending(n_pes: usize, connects: bool) -> Vec<i32> {
    vec![if connects { UNCONNECTED } else { 0 }; n_pes]
}

/// What is done after an attempt to reach a PE has failed, if there is time.
pub(super) const AGAIN: &str = "connects once more";

/// A connection that is being made.
struct BegunConnection {
    pe: u32,
    turn: Turn,
    /// The message is in flight. Before, the provider takes none.
    is_sent: bool,
}

/// The connections that an ep is making: no more than there are turns.
#[derive(Default)]
pub(super) struct Connecting {
    begun: Vec<BegunConnection>,
    /// A PE waits for a turn, and this was reported.
    waits: bool,
}

impl Connecting {
    /// Whether the message that connects to a PE is in flight.
    fn is_sent(&self, pe: u32) -> bool {
        self.begun.iter().any(|one| one.pe == pe && one.is_sent)
    }

    /// Takes the turn of the connection to a PE.
    fn take(&mut self, pe: u32) -> Option<Turn> {
        let place = self.begun.iter().position(|one| one.pe == pe)?;
        Some(self.begun.swap_remove(place).turn)
    }
}

impl FiEndpoint {
    /// Whether an operation may begin towards a PE now.
    pub(super) fn may_begin(&self, pe: u32) -> bool {
        !self.free.is_empty() && self.is_connected(pe)
    }

    /// Whether this ep is connected to a PE, or needs no connection.
    pub(crate) fn is_connected(&self, pe: u32) -> bool {
        self.pending[pe as usize] >= 0
    }

    /// Nothing could begin towards a PE with this address: connects to it, unless a free cell is
    /// what is missing.
    #[cold]
    #[inline(never)]
    pub(super) fn not_now(&mut self, pe: u32, at: fi::fi_addr_t) -> Result<Post, i32> {
        if self.is_connected(pe) {
            return Ok(Post::Later);
        }
        self.pending[pe as usize] = UNCONNECTED;
        if !self.connecting.is_sent(pe) && !self.attempts.pauses(pe) {
            self.connect(pe, at)?;
        }
        Ok(Post::Later)
    }

    /// Sends the message that connects, if it is its turn.
    fn connect(&mut self, pe: u32, at: fi::fi_addr_t) -> Result<(), i32> {
        let Some(&op) = self.free.last() else { return Ok(()) };
        let known = self.connecting.take(pe);
        let Some(turn) = known.or_else(|| self.fabric.turns.take()) else {
            if !std::mem::replace(&mut self.connecting.waits, true) {
                let why = format!("{MOST_AT_ONCE} connections are being made");
                report(pe, &why, "waits to connect to it");
            }
            return Ok(());
        };
        self.connecting.waits = false;
        let (endpoint, desc, context) =
            (self.endpoint.raw(), self.staging_desc(), self.context(op));
        let nothing = self.staging.cell(op).base.cast();
        // SAFETY: an open endpoint, a context that is free, and a cell that no operation uses.
        let code = unsafe { fi::fi_send(endpoint, nothing, 0, desc, at, context) };
        match i32::try_from(code).unwrap_or(-fi::FI_EIO) {
            0 => {
                self.free.pop();
                self.ops[op as usize] = Op { pe, use_: BufferUse::Connect };
                self.connecting.begun.push(BegunConnection { pe, turn, is_sent: true });
                Ok(())
            }
            code if code == -fi::FI_EAGAIN => {
                self.connecting.begun.push(BegunConnection { pe, turn, is_sent: false });
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
        self.pending[pe as usize] = 0;
        self.attempts.reached(pe);
        if let Some(turn) = self.connecting.take(pe) {
            let which = format!("connection {} of this PE", turn.made());
            report(pe, &which, "connected to it");
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
        self.pending[pe as usize] = UNCONNECTED;
        self.connecting.take(pe);
        match self.connects_again(pe, code, &why) {
            true => Ok(()),
            false => Err(EpFailure { pe: Some(pe), why: self.after_attempts(pe, code, why) }),
        }
    }

    /// An attempt to connect has failed with this code; whether there is to be another one.
    fn connects_again(&mut self, pe: u32, code: i32, why: &str) -> bool {
        let again = self.attempts.may_connect(pe, code);
        if again {
            report(pe, why, AGAIN);
        }
        again
    }
}

/// Reports what becomes of a connection to a PE, and why.
pub(super) fn report(pe: u32, why: &str, what: &str) {
    rushmem_log::debug!(peer = pe, "{why}: {what}");
}
