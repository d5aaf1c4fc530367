//! What an origin needs of the PE that it belongs to: its peers, the first loss, and how to wait.

use crate::proto::MemoryKey;
use crate::ucp::Worker;
use rushmem_transport::{Error, Pe, RemoteAddr, Segment};
use std::time::Duration;

/// How to reach a PE and what it lets others use.
pub(crate) struct Contact {
    pub(crate) host: String,
    /// The address of its service worker.
    pub(crate) worker: Vec<u8>,
    pub(crate) keys: [Option<MemoryKey>; Segment::COUNT],
}

impl Contact {
    pub(crate) fn key(&self, pe: Pe, segment: Segment) -> Result<&MemoryKey, Error> {
        self.keys[segment as usize].as_ref().ok_or_else(|| {
            Error::Invalid(format!("PE {pe} has no segment {segment:?} that others may use"))
        })
    }

    /// The address of so many bytes in the process of `pe`, whose contact this is.
    pub(crate) fn address(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<u64, Error> {
        let key = self.key(pe, at.segment)?;
        key.address(at.offset, nbytes).ok_or_else(|| {
            Error::Invalid(format!(
                "{nbytes} bytes at offset {} reach beyond the {} bytes of segment {:?} of PE {pe}",
                at.offset, key.nbytes, at.segment
            ))
        })
    }
}

/// The PE that an origin belongs to, with its peers.
pub(crate) trait Peers {
    /// The first loss, if a PE was lost.
    fn check(&self) -> Result<(), Error>;

    /// How to reach a PE.
    fn contact(&self, pe: Pe) -> Result<&Contact, Error>;

    /// A PE is lost; returns the error of the first loss.
    fn lose(&self, pe: Pe, why: &str) -> Error;

    /// How many transfers and atomic operations an origin may have in flight.
    fn max_in_flight(&self) -> usize;

    /// PEs outnumber the usable CPUs.
    fn oversubscribed(&self) -> bool;

    /// Serves peers, if nobody else does; returns whether there was work.
    fn serve(&self) -> bool;

    /// Sleeps until there is news of peers or of the worker, for at most that long.
    fn sleep(&self, worker: Option<&Worker>, at_most: Duration);

    /// Tells the service thread that nobody polls.
    fn hand_over(&self);
}
