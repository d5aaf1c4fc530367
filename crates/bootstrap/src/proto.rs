//! Rushmem's own job protocol: the messages between a PE and its launcher, and the frames that
//! contain them.
//!
//! Sans-IO: it converts bytes to messages and back. It allocates nothing for a length that a peer
//! announces, before the bytes have been received.
//!
//! A frame is a u32 (little endian) with the size of its body, one byte with [`VERSION`], and the
//! body in postcard's format. Every frame has the version, so that a library and an `oshrun` of
//! different installations report that instead of misreading each other.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::node::map::NodeMap;
use crate::records::{MAX_RECORD, MAX_RECORDS, Records};

/// Version of the protocol, in every frame. It changes whenever a message does: a program that
/// carries its library may be started by the `oshrun` of another build.
pub const VERSION: u8 = 13;

/// Maximum number of bytes of a text that a PE sends to be printed; a longer one is cut.
pub const MAX_MESSAGE: usize = 8 * 1024;

/// Maximum size of a body that a launcher accepts from a PE: a full record and the fields around
/// it.
pub const MAX_FROM_PE: usize = MAX_RECORD + 64;

/// Maximum size of a body that a PE accepts from its launcher.
pub const MAX_FROM_LAUNCHER: usize = MAX_RECORDS;

/// Maximum size of the buffer that an empty [`Decoder`] keeps for the next message.
const KEPT: usize = 32 * 1024;

/// Bytes in front of a body.
const HEADER: usize = 5;

/// The receivers of the records of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receivers {
    /// Every PE.
    All,
    /// The first PE of each node. The others do not wait for the records.
    FirstOfNode,
}

/// The inits and finalizes of a PE whose last finalize is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmatchedInits {
    /// The number of inits.
    pub inits: u64,
    /// The number of finalizes, which is smaller.
    pub finalizes: u64,
}

impl UnmatchedInits {
    /// Returns the warning about a job whose PEs all have ended so.
    pub fn warning(self) -> String {
        let UnmatchedInits { inits, finalizes } = self;
        if finalizes == 0 {
            return "no PE called shmem_finalize; call it before the program ends".to_owned();
        }
        format!(
            "shmem_init was called {inits} times, but shmem_finalize {}; call shmem_finalize once for each \
             shmem_init",
            match finalizes {
                1 => "once".to_owned(),
                n => format!("{n} times"),
            }
        )
    }
}

/// A message of a PE to its launcher, or to the meeting of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromPe {
    /// First message to a meeting: the process and its PE.
    Join {
        /// The PE's number.
        pe: u32,
        /// Number of PEs in the job.
        n_pes: u32,
        /// The PE's process.
        pid: u32,
        /// The name of its host.
        host: String,
        /// True if this process serves the meeting.
        serves: bool,
    },
    /// First message to `oshrun`: the PE has entered initialization.
    Hello {
        /// The PE's process. The launcher may have started a wrapper around it.
        pid: u32,
    },
    /// The PE's record in an exchange among all PEs.
    Exchange {
        /// Number of the exchange, counted from 0.
        round: u32,
        /// The receivers of the records: the same on all PEs.
        to: Receivers,
        /// The record, at most [`MAX_RECORD`] bytes.
        record: Vec<u8>,
    },
    /// The last finalize is done, so that the PE may exit.
    Finalized,
    /// The PE has entered initialization again after its last finalize.
    Resumed,
    /// All PEs are at their exit, with status 0 and without the last finalize, so that the exit of
    /// this PE is accepted with a warning.
    Unfinalized(UnmatchedInits),
    /// The position of the statuses of PEs in the memory of their nodes, which is the same on all
    /// nodes; only PE 0 sends it. The status of the PE with local number `i` begins at byte
    /// `offset + i * stride`.
    Statuses {
        /// The distance between the statuses of two PEs of a node in bytes.
        stride: u64,
        /// Bytes from the start of the node's memory to the first status.
        offset: u64,
    },
    /// The PE could not allocate symmetric memory. If the program does not check the result, it
    /// soon fails.
    Refused {
        /// The resource that was refused, and the remedy: the end of a sentence.
        what: String,
    },
    /// The PE opens a transport, whose libraries may crash.
    Opening {
        /// The transport; empty when it is open, or is not used.
        what: String,
    },
    /// The PE ends the job because of an error.
    Abort {
        /// Exit status of the job; 0 counts as 1.
        status: i32,
        /// The error. Only the first one of a job is printed, with the PEs that send it.
        message: String,
    },
    /// A warning of the PE. The job goes on.
    Warning {
        /// The warning. Equal ones of several PEs are printed together.
        message: String,
    },
    /// The PE called `shmem_global_exit`.
    GlobalExit {
        /// Exit status of the job, of which the lowest 8 bits count.
        status: i32,
    },
    /// The answer to [`FromLauncher::Ping`].
    Pong,
}

/// A message of a launcher, or of the meeting of the job, to a PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromLauncher {
    /// The answer to [`FromPe::Hello`]. A meeting sends it when all PEs have joined.
    Welcome {
        /// The PE's number.
        pe: u32,
        /// The node of every PE, and with it the number of PEs.
        nodes: NodeMap,
    },
    /// The end of an exchange.
    Gathered {
        /// Number of the exchange.
        round: u32,
        /// The record of every PE.
        records: Records,
    },
    /// The meeting does not let this process join.
    Refused {
        /// The reason, with the remedy if there is one: a sentence.
        why: String,
    },
    /// The job ends: this process, which a meeting cannot kill, ends itself.
    End {
        /// Exit status of the job.
        status: i32,
        /// The reason, if this process is to print it.
        message: Option<String>,
    },
    /// A sign of life of the meeting while an exchange or the last finalize lasts, which the
    /// process answers.
    Ping,
    /// The answer of a meeting to [`FromPe::Finalized`], once all PEs have sent it.
    AllFinalized,
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The other side has another version of the protocol.
    #[error(
        "it has version {0} of the job protocol and this side has {VERSION}; use oshrun and librushmem of one \
         installation, and link a program that carries its library again with the oshcc of that installation"
    )]
    Version(u8),
    /// A body exceeds the limit of this side.
    #[error("a body of {0} bytes exceeds the limit")]
    TooLarge(usize),
    /// A body is not a message of this version.
    #[error("its body is not a known message")]
    Malformed,
}

/// Returns the frame of `message`.
///
/// # Panics
/// If the body is 4 GiB or larger; the limits of messages are far below.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    let mut frame = vec![0; HEADER];
    frame[4] = VERSION;
    let mut frame = postcard::to_extend(message, frame)
        .expect("a message is plain data and memory does not refuse");
    let body = u32::try_from(frame.len() - HEADER).expect("a body is below 4 GiB");
    frame[..4].copy_from_slice(&body.to_le_bytes());
    frame
}

/// Splits a stream of bytes, which is received in any pieces, into messages.
///
/// If the caller takes all messages after each push, the memory is bounded by the limit and the
/// size of a piece.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    buffer: Vec<u8>,
    taken: usize,
    failed: Option<FrameError>,
}

impl Decoder {
    /// Returns a decoder that refuses bodies of more than `limit` bytes.
    pub fn new(limit: usize) -> Decoder {
        Decoder {
            limit,
            buffer: Vec::new(),
            taken: 0,
            failed: None,
        }
    }

    /// Appends bytes of the stream. After an error they are dropped, since the start of the next
    /// frame is not known.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns the next whole message; `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the bytes cannot be a message. Every later call returns the same error.
    pub fn take<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.parse();
        if let Err(error) = outcome {
            self.failed = Some(error);
            self.buffer = Vec::new();
            return outcome;
        }

        // The records of a large job need a large buffer, but are rare.
        if self.taken == self.buffer.len() && self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
            self.taken = 0;
        }
        outcome
    }

    fn parse<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let Some((header, rest)) = self.buffer[self.taken..].split_first_chunk::<HEADER>() else {
            return Ok(None);
        };

        let [a, b, c, d, version] = *header;
        // The size may have another meaning in another version, so the version is checked first.
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let nbytes = u32::from_le_bytes([a, b, c, d]) as usize;
        if nbytes > self.limit {
            return Err(FrameError::TooLarge(nbytes));
        }

        let Some(body) = rest.get(..nbytes) else {
            return Ok(None);
        };
        let message = match postcard::take_from_bytes(body) {
            Ok((message, [])) => message,
            // Bytes that are left over belong to a message of another version.
            _ => return Err(FrameError::Malformed),
        };
        self.taken += HEADER + nbytes;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests;
