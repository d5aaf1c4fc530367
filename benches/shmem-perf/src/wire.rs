//! Measures exchanges of two PEs without the library under test: the floors of a library whose PEs
//! share no memory.
//!
//! One PE leads: it transfers and takes the times. The other one follows: it answers until the leader
//! ends the measurement.

use std::io;

/// The connection of one PE to the other one.
pub trait BareWire {
    /// Transfers `samples` times `group` windows. Returns the nanoseconds of each sample.
    fn lead(&mut self, exchange: Exchange, samples: u64, group: u64) -> io::Result<Vec<u64>>;

    /// Makes `follow` of the other PE return.
    fn end(&mut self, exchange: Exchange) -> io::Result<()>;

    /// Answers the leader until it calls `end`.
    fn follow(&mut self, exchange: Exchange) -> io::Result<()>;
}

/// A window of transfers, and what completes it.
#[derive(Clone, Copy)]
pub struct Exchange {
    pub nbytes: u64,
    /// Transfers before each completion.
    pub window: u64,
    /// The PE that issues the transfers, and how the other one answers.
    pub way: Direction,
}

/// The kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Messages of the leader, which the other PE answers by one byte.
    Stream,
    /// A message of the leader, and one as long that answers it.
    RoundTrip,
    /// The leader writes memory of the other PE.
    Put,
    /// The leader reads memory of the other PE.
    Get,
}
