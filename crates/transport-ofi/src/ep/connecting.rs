//! The connections that an ep is making, and how they are reported.
#![forbid(unsafe_code)]

use crate::turns::TakenTurn;

/// How many operations may begin towards a PE that an ep is connected to: more than it has cells.
/// Before that it is 0, as in memory that was not used.
pub(super) const CONNECTED: i32 = i32::MAX;

/// What is done after an attempt to reach a PE has failed, if there is time.
pub(super) const AGAIN: &str = "connects once more";

/// A connection that is being made.
pub(super) struct BegunConnection {
    pub(super) pe: u32,
    pub(super) turn: TakenTurn,
    /// The message is in flight. Before, the provider takes none.
    pub(super) is_sent: bool,
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
    pub(super) fn is_sent(&self, pe: u32) -> bool {
        self.begun.iter().any(|one| one.pe == pe && one.is_sent)
    }

    /// Takes the turn of the connection to a PE.
    pub(super) fn take(&mut self, pe: u32) -> Option<TakenTurn> {
        let place = self.begun.iter().position(|one| one.pe == pe)?;
        Some(self.begun.swap_remove(place).turn)
    }

    /// A connection is being made.
    pub(super) fn begin(&mut self, connection: BegunConnection) {
        self.waits = false;
        self.begun.push(connection);
    }

    /// A PE waits for a turn; whether that is new.
    pub(super) fn begins_to_wait(&mut self) -> bool {
        !std::mem::replace(&mut self.waits, true)
    }
}

/// Reports what becomes of a connection to a PE, and why.
pub(super) fn report(pe: u32, why: &str, what: &str) {
    rushmem_log::debug!(peer = pe, "{what}: {why}");
}
