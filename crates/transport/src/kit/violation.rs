//! The content that a peer must not send, and the message in which it came. It is the loss of that
//! peer ([`Loss::of_message`](super::loss::Loss::of_message)): a PE that waits for its effects or
//! for a reply would wait forever.

use crate::Pe;
use std::fmt;

/// The fault of a message, a request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A message or field of no known meaning.
    Unknown(&'static str),
    /// More bytes than a message of its kind may have.
    TooLong(u64),
    /// An address that is not in the segment, or not aligned to its word.
    Address(u64),
    /// A batch that no PE sends.
    Batch,
    /// A request whose number in its stream is not a next one.
    Number(u32),
    /// An answer without a request, or not of the kind requested.
    Unrequested,
    /// More requests than may wait for their answers.
    TooMany,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Unknown(what) => write!(f, "it sent an unknown {what}"),
            Violation::TooLong(nbytes) => write!(f, "it sent a message of {nbytes} bytes"),
            Violation::Address(offset) => write!(f, "it used an invalid offset {offset}"),
            Violation::Batch => f.write_str("it sent a damaged batch of operations"),
            Violation::Number(number) => {
                write!(f, "it sent request {number} twice or out of its order")
            }
            Violation::Unrequested => f.write_str("it answered what was not requested"),
            Violation::TooMany => f.write_str("it requested more than it may at once"),
        }
    }
}

/// A message that this PE could not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedMessage {
    /// The PE that it names as its sender, if it names any.
    pub from: Option<Pe>,
    /// The fault of the message, or the failure that it led to.
    pub why: String,
}

impl RefusedMessage {
    /// Returns a violation by a PE.
    pub fn of(pe: Pe, why: impl fmt::Display) -> RefusedMessage {
        RefusedMessage { from: Some(pe), why: why.to_string() }
    }

    /// Returns a violation whose sender is unknown.
    pub fn of_nobody(why: impl fmt::Display) -> RefusedMessage {
        RefusedMessage { from: None, why: why.to_string() }
    }
}
