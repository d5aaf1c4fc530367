//! Tests of the wire format: frames of a stream that is cut anywhere, the ledger against a model,
//! and handshakes with processes that do not know the secret.

mod handshakes;
mod model;
mod streams;
