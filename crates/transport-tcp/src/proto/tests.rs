//! Tests of the wire format: frames of a stream that is cut anywhere, and the ledger against a
//! model.

mod model;
mod streams;
