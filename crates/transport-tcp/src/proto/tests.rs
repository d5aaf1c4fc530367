//! Tests of the wire format: round trips however a stream is cut, an origin's ledger against a
//! model, handshakes of processes that do not know the secret.

mod handshakes;
mod model;
mod streams;
