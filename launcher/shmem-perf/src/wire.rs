//! The interface of a connection by which two PEs exchange data without the library under test. Its
//! times are the floors of a library whose PEs share no memory.
//!
//! The leader starts the transfers and times them. The other PE, the follower, answers or polls
//! until the leader ends the measurement. The implementations are `socket` and `network`.

use std::io;

/// One PE's end of a connection.
pub trait BareWire {
    /// The leader's part: transfers `samples` times `group` windows. Returns the nanoseconds of
    /// each sample.
    fn lead(&mut self, exchange: Exchange, samples: u64, group: u64) -> io::Result<Vec<u64>>;

    /// Makes `follow` return on the other PE. The leader calls it.
    fn end(&mut self, exchange: Exchange) -> io::Result<()>;

    /// The follower's part: answers messages, or polls the network, until the leader calls `end`.
    fn follow(&mut self, exchange: Exchange) -> io::Result<()>;
}

/// A window of transfers, and what completes it.
#[derive(Clone, Copy)]
pub struct Exchange {
    pub nbytes: u64,
    /// Transfers before each completion.
    pub window: u64,
    pub direction: Direction,
}

/// The direction of the data, and what the follower does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The leader sends messages. The follower answers each window of them with one byte.
    Stream,
    /// The leader sends a message, and the follower answers with one of the same size.
    RoundTrip,
    /// The leader writes memory of the follower, which polls.
    Put,
    /// The leader reads memory of the follower, which polls.
    Get,
}
