//! What crosses between processes: the version of every format, and the one codec of start-up
//! records.
//!
//! Protocols that are hot, such as the frames of TCP, write their own bytes; their versions are
//! here all the same. This crate must never know what a record means.
#![forbid(unsafe_code)]

mod codec;
mod formats;

pub use codec::{Error, decode, encode};
pub use formats::*;
