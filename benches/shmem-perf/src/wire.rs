//! Measures exchanges of two PEs without the library under test: the floors of a library whose PEs
//! share no memory.
//!
//! One leads and the other one follows until it is ended.

use std::io;

/// Two PEs that are connected.
pub trait BareWire {
    /// Returns the nanoseconds of each of `samples` times `group` windows.
    fn lead(&mut self, exchange: Exchange, samples: u64, group: u64) -> io::Result<Vec<u64>>;

    /// Ends what the other PE follows.
    fn end(&mut self, exchange: Exchange) -> io::Result<()>;

    /// Does its part until it is ended.
    fn follow(&mut self, exchange: Exchange) -> io::Result<()>;
}

/// A window of transfers, and what completes it.
#[derive(Clone, Copy)]
pub struct Exchange {
    pub nbytes: u64,
    /// Transfers before each completion.
    pub window: u64,
    /// Which way they go.
    pub way: Direction,
}

/// Ways of transfers.
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
