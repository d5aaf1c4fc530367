//! The versions of all formats that cross between processes, and the codec of start-up records.
//!
//! Protocols on the data path, such as the frames of TCP, encode themselves; their versions are here
//! as well. This crate does not interpret records.
#![forbid(unsafe_code)]

mod codec;
mod formats;

pub use codec::{Error, decode, encode};
pub use formats::*;
