//! Connects an ep to PEs. [`Connections`] decides and calls no library; below it, the ep carries
//! the decisions out.
//!
//! Over a provider that needs connections, the ep sends an empty message at the first use of a PE,
//! which the PE's service ignores, and nothing else until that message is complete. So if the
//! connection is not made, only this message fails, and it can be sent again.
//!
//! ```text
//! Unconnected --permit--> Asking --accepted--> Asked --complete--> Connected
//!      ^                    |                    |                     |
//!      +---- refused -------+------ refused -----+      refused: stays connected
//! ```
//!
//! After a refusal, nothing is sent to the PE until a pause is over. Pauses grow, and end with the
//! loss of the PE.
#![allow(unsafe_code)]

use super::{BufferUse, EpFailure, FiEndpoint, Op, PostStatus};
use crate::permits::{ConnectionPermit, ConnectionPermits, MAX_AT_ONCE};
use libfabric_sys as fi;
use rushmem_connect::Attempts;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of operations that may begin on a usable PE with none in flight: more than an ep has
/// cells. The number for an unconnected PE is 0, so that fresh zeroed memory has the right value.
pub(super) const CONNECTED: i32 = i32::MAX;

/// The codes that mean that a connection was not made.
const NOT_CONNECTED: [i32; 5] = [
    fi::FI_ECONNREFUSED,
    fi::FI_ECONNABORTED,
    fi::FI_ETIMEDOUT,
    fi::FI_EHOSTDOWN,
    fi::FI_EHOSTUNREACH,
];
/// Further codes that mean the same if the message that connects to a PE fails with them.
const NOT_CONNECTED_AT_FIRST: [i32; 5] = [
    fi::FI_ECONNRESET,
    fi::FI_ENOTCONN,
    fi::FI_ENETDOWN,
    fi::FI_ENETUNREACH,
    libc::EPIPE,
];

/// The connections of an ep. A PE without an entry is unused, or connected and was never refused.
pub(super) struct Connections {
    entries: Vec<Connection>,
    /// The provider needs connections.
    connects: bool,
    /// The time for which refused attempts to reach a PE are repeated.
    limit: Duration,
    permits: Arc<ConnectionPermits>,
    /// A connection waits for a permit, and this was logged. Reset once a permit was taken, so that
    /// a wait of many polls is logged once.
    has_logged_wait: bool,
}

/// The connection to one PE.
struct Connection {
    pe: u32,
    state: State,
    /// The refused attempts to reach the PE.
    refused: Option<Attempts>,
}

enum State {
    Unconnected,
    /// The provider has not accepted the message that connects.
    Asking {
        since: Instant,
        /// `None` after it was given back because this takes long.
        permit: Option<ConnectionPermit>,
    },
    /// The message that connects is in flight.
    Asked {
        _permit: Option<ConnectionPermit>,
    },
    Connected,
}

/// What an ep does about a PE to which no operation may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// It lets operations begin.
    Begin,
    /// It sends the message that connects.
    Ask,
    /// It tries again later.
    Wait,
}

impl Connections {
    pub(super) fn new(
        connects: bool,
        limit: Duration,
        permits: Arc<ConnectionPermits>,
    ) -> Connections {
        Connections {
            entries: Vec::new(),
            connects,
            limit,
            permits,
            has_logged_wait: false,
        }
    }

    fn of(&self, pe: u32) -> Option<&Connection> {
        self.entries.iter().find(|entry| entry.pe == pe)
    }

    /// Returns the entry of a PE, which is in the state `otherwise` if it has none yet.
    fn entry(&mut self, pe: u32, otherwise: State) -> &mut Connection {
        let known = self.entries.iter().position(|entry| entry.pe == pe);
        let index = known.unwrap_or_else(|| {
            self.entries.push(Connection {
                pe,
                state: otherwise,
                refused: None,
            });
            self.entries.len() - 1
        });
        &mut self.entries[index]
    }

    /// Returns what to do about a PE to which no operation may begin.
    fn next(&mut self, pe: u32, now: Instant) -> NextStep {
        if !self.connects && self.of(pe).is_none() {
            return NextStep::Begin;
        }

        let permits = Arc::clone(&self.permits);
        // Connections to stopped or ended peers must not keep all permits. After half of the limit,
        // the other half is left to those that have waited meanwhile.
        let permit_limit = self.limit / 2;

        let entry = self.entry(pe, State::Unconnected);
        if let Some(refused) = &entry.refused
            && now < refused.next()
        {
            return NextStep::Wait;
        }

        match &mut entry.state {
            State::Connected => NextStep::Begin,
            State::Asked { .. } => NextStep::Wait,
            State::Asking { since, permit } => {
                if now.saturating_duration_since(*since) >= permit_limit {
                    *permit = None;
                }
                NextStep::Ask
            }
            State::Unconnected => {
                let Some(permit) = permits.take() else {
                    self.log_wait(pe);
                    return NextStep::Wait;
                };

                entry.state = State::Asking {
                    since: now,
                    permit: Some(permit),
                };
                self.has_logged_wait = false;
                NextStep::Ask
            }
        }
    }

    /// Logs that the connection to a PE waits for a permit, unless the log has such a wait already.
    fn log_wait(&mut self, pe: u32) {
        if self.has_logged_wait {
            return;
        }
        self.has_logged_wait = true;

        let why = format!("{MAX_AT_ONCE} connections are being made");
        log(pe, &why, "waits to connect to it");
    }

    /// Records that the provider has accepted the message that connects to a PE.
    fn record_asked(&mut self, pe: u32) {
        let entry = self.entry(pe, State::Unconnected);
        if let State::Asking { permit, .. } = &mut entry.state {
            entry.state = State::Asked {
                _permit: permit.take(),
            };
        }
    }

    /// Records that the message that connects to a PE is complete.
    fn record_connected(&mut self, pe: u32) {
        self.entries.retain(|entry| entry.pe != pe);
        let which = format!("connection {} of this PE", self.permits.count_made());
        log(pe, &which, "connected to it");
    }

    /// Records that the message that connects to a PE has failed with this code, for the reason
    /// `why`. Returns true if another one is to be sent.
    fn refuse_connection(&mut self, pe: u32, code: i32, why: &str, now: Instant) -> bool {
        let limit = self.limit;
        let entry = self.entry(pe, State::Unconnected);
        // Also drops the permit of the attempt.
        entry.state = State::Unconnected;

        if !means_not_connected(code) {
            return false;
        }
        entry.refuse(why, now, limit)
    }

    /// Records that an operation on a PE was refused with this code, for the reason `why`. Returns
    /// true if it is to be tried again.
    pub(super) fn refuse_operation(&mut self, pe: u32, code: i32, why: &str, now: Instant) -> bool {
        // For an operation, codes such as FI_ECONNRESET mean that a connection in use was lost, and
        // with it perhaps earlier operations. That cannot be repaired by another attempt.
        if !NOT_CONNECTED.contains(&-code) {
            return false;
        }

        let limit = self.limit;
        self.entry(pe, State::Connected).refuse(why, now, limit)
    }

    /// Returns the refused attempts to reach a PE, if this code means that there is no connection.
    pub(super) fn refused(&self, pe: u32, code: i32) -> Option<&Attempts> {
        if !means_not_connected(code) {
            return None;
        }
        self.of(pe)?.refused.as_ref()
    }
}

impl Connection {
    /// Records a refusal. Returns false if refusals have lasted for the limit.
    fn refuse(&mut self, why: &str, now: Instant, limit: Duration) -> bool {
        // If no attempt was refused for long, the PE must have been reached meanwhile.
        if let Some(refused) = &self.refused
            && now.saturating_duration_since(refused.next()) > limit
        {
            self.refused = None;
        }

        let attempts = self.refused.get_or_insert_with(|| Attempts::new(now));
        let is_tried_again = attempts.record_refusal(now, limit);
        if is_tried_again {
            log(self.pe, why, "connects once more");
        }
        is_tried_again
    }
}

/// Returns true if this code means that there is no connection when the message that connects to a
/// PE fails with it.
fn means_not_connected(code: i32) -> bool {
    NOT_CONNECTED.contains(&-code) || NOT_CONNECTED_AT_FIRST.contains(&-code)
}

/// Logs the event `what` of a connection to a PE, and its reason.
fn log(pe: u32, why: &str, what: &str) {
    rushmem_system::log::debug!(peer = pe, "{what}: {why}");
}

impl FiEndpoint {
    /// Called when an operation on a PE with this address could not begin: there was no free cell,
    /// or the PE is not usable. The caller tries again later in each case.
    #[cold]
    #[inline(never)]
    pub(super) fn defer(&mut self, pe: u32, fi_addr: fi::fi_addr_t) -> Result<PostStatus, i32> {
        if self.room[pe as usize] > 0 || self.free.is_empty() {
            return Ok(PostStatus::Again);
        }

        match self.connections.next(pe, Instant::now()) {
            NextStep::Begin => self.room[pe as usize] += CONNECTED,
            NextStep::Ask => self.ask(pe, fi_addr)?,
            NextStep::Wait => {}
        }
        Ok(PostStatus::Again)
    }

    /// Sends the message that connects to a PE.
    fn ask(&mut self, pe: u32, fi_addr: fi::fi_addr_t) -> Result<(), i32> {
        let Some(op) = self.free.pop() else {
            return Ok(());
        };

        let endpoint = self.endpoint.raw();
        let desc = self.staging_desc();
        let context = self.context(op);
        let nothing = self.staging.cell(op).base.cast();
        // SAFETY: `endpoint` is open. `context` and `nothing` are in cells of `op`, which was free,
        // so no other operation uses them. `desc` is the descriptor of these cells.
        let code = unsafe { fi::fi_send(endpoint, nothing, 0, desc, fi_addr, context) };
        let code = i32::try_from(code).unwrap_or(-fi::FI_EIO);
        if code == 0 {
            self.ops[op as usize] = Op {
                pe,
                use_: BufferUse::Connect,
            };
            self.connections.record_asked(pe);
            return Ok(());
        }

        self.free.push(op);
        if code == -fi::FI_EAGAIN {
            return Ok(());
        }

        let why = self.strerror(code);
        let is_tried_again = self
            .connections
            .refuse_connection(pe, code, &why, Instant::now());
        if is_tried_again { Ok(()) } else { Err(code) }
    }

    /// Lets operations on a PE begin, since the ended operation `op` was the message that connects
    /// to it.
    #[cold]
    pub(super) fn finish_connect(&mut self, op: u32) {
        let pe = self.ops[op as usize].pe;
        self.room[pe as usize] = CONNECTED;
        self.connections.record_connected(pe);
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

        let is_tried_again = self
            .connections
            .refuse_connection(pe, code, &why, Instant::now());
        if is_tried_again {
            return Ok(());
        }
        Err(EpFailure {
            pe: Some(pe),
            why: self.after_attempts(pe, code, why),
        })
    }
}

#[cfg(test)]
mod tests;
