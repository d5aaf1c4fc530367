//! The wire format and its state machines, without sockets, memory or time.
//!
//! Two PEs have one connection: each end sends requests and, between them, replies to the requests
//! of the other. The connection begins with a handshake in which both ends prove that they know the
//! job's secret. Frames follow, each with a 16-byte head, little-endian, and a body of bounded
//! length. Requests are carried out and answered in the order of the stream, so a reply need not
//! name its request, and it acknowledges all earlier requests.
//!
//! No length that a peer sends determines how much memory is allocated.

mod frame;
mod handshake;
mod ledger;
mod reader;

pub(crate) use frame::{Frame, MAX_BODY, MAX_DATA, ReplyFrame, RequestFrame};
pub(crate) use handshake::{
    ANSWER, Acceptor, CLAIM, Connector, GREETING, HandshakeAnswer, HandshakeViolation,
};
pub(crate) use ledger::{ExpectedReply, Ledger};
pub(crate) use reader::{Piece, Reader};

#[cfg(test)]
mod tests;
