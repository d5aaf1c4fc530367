//! The wire format and its state machines, without sockets, memory or time.
//!
//! Two PEs have one connection: each end sends requests and, between them, replies to the requests
//! of the other. The connection begins with the handshake of `rushmem-connect`. Frames follow, each
//! with a 16-byte head, little-endian, and a body of bounded length. Requests are carried out and
//! answered in the order of the stream, so a reply need not name its request. The stream is not
//! sealed: who can change the traffic of the network can change a job's memory.
//!
//! No length that a peer sends determines how much memory is allocated.

mod frame;
mod reader;

pub(crate) use frame::{Frame, MAX_BODY, MAX_DATA, ReplyFrame, RequestFrame};
pub(crate) use reader::{Piece, Reader};

use rushmem_connect::handshake::Protocol;

/// The handshake before the frames. Its proofs are bound to the address of the PE that accepts, so
/// that no process at another address can stand between two PEs.
pub(crate) const HANDSHAKE: Protocol = Protocol {
    magic: *b"rushtcp",
    // PEs that connect are of one build, as they have found when they joined their job.
    version: 0,
};

#[cfg(test)]
mod tests;
