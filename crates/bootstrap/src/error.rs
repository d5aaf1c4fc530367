//! What can go wrong between a PE and its launcher, each as one sentence with its cure.
#![forbid(unsafe_code)]

use std::fmt;
use std::io;

use crate::env;
use crate::proto::{FrameError, MAX_RECORD};

/// Why a session could not be opened or used.
#[derive(Debug)]
pub enum Error {
    /// An inherited variable does not name the descriptor it should.
    Descriptor {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What is expected of the descriptor, for example "a connected unix socket".
        wanted: &'static str,
    },
    /// Another launcher started several processes, and Rushmem cannot join them yet.
    Foreign {
        /// The launcher's common name.
        launcher: &'static str,
        /// The variable that shows it.
        name: &'static str,
        /// What the variable holds.
        value: String,
    },
    /// This process has opened its session already.
    AlreadyOpen,
    /// A record is larger than an exchange carries.
    RecordTooLarge {
        /// The record's size in bytes.
        nbytes: usize,
    },
    /// `oshrun` is gone, or the socket to it was closed by the program.
    Lost(io::Error),
    /// `oshrun` sent bytes that are no frame of this protocol version.
    Frame(FrameError),
    /// `oshrun` sent a message out of its place.
    Unexpected(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Descriptor { name, value, wanted } => write!(
                f,
                "{name}={value} does not name {wanted}: a program between oshrun and this one has closed its descriptors \
                 or changed the variable"
            ),
            Error::Foreign { launcher, name, value } => write!(
                f,
                "{launcher} ({name}={value}) started this program as one process of several, and Rushmem does not support \
                 that launcher yet: start the program with oshrun"
            ),
            Error::AlreadyOpen => f.write_str("this process has joined its job already"),
            Error::RecordTooLarge { nbytes } => {
                write!(
                    f,
                    "a record of {nbytes} bytes is larger than the {MAX_RECORD} bytes that an exchange carries"
                )
            }
            Error::Lost(cause) => write!(
                f,
                "the connection to oshrun is lost ({cause}): oshrun has ended, or the program has closed the descriptor \
                 that {} named",
                env::SOCKET
            ),
            Error::Frame(cause) => write!(f, "oshrun sent a frame that cannot be read: {cause}"),
            Error::Unexpected(what) => write!(f, "oshrun sent {what} out of turn"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Lost(cause) => Some(cause),
            Error::Frame(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<FrameError> for Error {
    fn from(cause: FrameError) -> Error {
        Error::Frame(cause)
    }
}
