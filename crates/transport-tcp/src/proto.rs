//! The wire format and its state machines, without sockets, memory or time.
//!
//! A connection goes from an origin to a target and is used one way: requests forth, replies back. It
//! begins with a handshake in which both prove that they know the job's secret; after that come frames
//! of a 16-byte head, little-endian, and a bounded body. Requests are carried out in the order of the
//! stream and answered in that order, so the n-th answer needs no name, and an answer to one request
//! acknowledges all before it.
//!
//! Nothing here allocates by what a peer says. This module must never know a socket or a pointer.

mod address;
mod frame;
mod handshake;
mod ledger;
mod reader;

pub(crate) use address::Address;
pub(crate) use frame::{AMO_BODY, Head, MAX_BODY, Reply, Request, Violation};
pub(crate) use handshake::{Acceptor, CLAIM, Connector, GREETING, WELCOME};
pub(crate) use ledger::{Ledger, Want};
pub(crate) use reader::{Piece, Reader};

#[cfg(test)]
mod tests;
