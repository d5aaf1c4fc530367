//! The wire format and its state machines, without sockets, memory or time.
//!
//! Two PEs have one connection, which either may use as an origin and as a target: each end sends
//! requests and, between them, replies to those of the other. It begins with a handshake in which
//! both prove that they know the job's secret; after that come frames of a 16-byte head,
//! little-endian, and a bounded body. Requests are carried out in the order of the stream and
//! answered in that order, so the n-th answer needs no name, and an answer to one request
//! acknowledges all before it.
//!
//! No length that a peer sends decides how much is allocated here.

mod address;
mod frame;
mod handshake;
mod ledger;
mod reader;

pub(crate) use address::{Address, MAX_ADDRESSES};
pub(crate) use frame::{Frame, MAX_BODY, MAX_DATA, ReplyFrame, RequestFrame};
pub(crate) use handshake::{
    Acceptor, CLAIM, Connector, GREETING, HandshakeAnswer, HandshakeViolation, WELCOME,
};
pub(crate) use ledger::{ExpectedReply, Ledger};
pub(crate) use reader::{Piece, Reader};

#[cfg(test)]
mod tests;
