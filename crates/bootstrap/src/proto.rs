//! Rushmem's own job protocol: the messages between a PE and its launcher, and the frames they
//! travel in.
//!
//! Sans-IO: bytes in, messages out. It never touches a socket and never trusts a length before the
//! bytes are there.
//!
//! A frame is a u32 (little endian) with the size of its body, one byte with [`VERSION`], and the
//! body in postcard's format. The version stands in every frame, so that a library and an `oshrun`
//! of different installations say so instead of misreading each other.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::nodes::NodeMap;
use crate::records::{MAX_RECORD, MAX_RECORDS, Records};

/// Version of the protocol, in every frame. It changes whenever a message does.
pub const VERSION: u8 = rushmem_wire::JOB.version;

/// Most bytes of a message that is printed; a longer one is cut.
pub const MAX_MESSAGE: usize = 8 * 1024;

/// Largest body a launcher takes from a PE: a full record and the fields around it.
pub const MAX_FROM_PE: usize = MAX_RECORD + 64;

/// Largest body a PE takes from its launcher.
pub const MAX_FROM_LAUNCHER: usize = MAX_RECORDS;

/// Bytes that a [`Decoder`] keeps for what comes next.
const KEPT: usize = 32 * 1024;

/// Bytes in front of a body.
const HEADER: usize = 5;

/// The receivers of the records of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receivers {
    /// Every PE.
    All,
    /// The first PE of each node, which keeps them for the others.
    FirstOfNode,
}

/// A message of a PE to its launcher, or to the meeting of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromPe {
    /// First message to a meeting, which learns from it which PE this is.
    Join {
        /// The PE's number.
        pe: u32,
        /// Number of PEs in the job.
        n_pes: u32,
        /// The PE's process.
        pid: u32,
        /// The name of its host.
        host: String,
        /// This process serves the meeting.
        serves: bool,
    },
    /// First message of a session: the PE has entered initialization.
    Hello {
        /// The PE's process, which a wrapper may stand in front of.
        pid: u32,
    },
    /// The PE's record in an exchange among all PEs.
    Exchange {
        /// Number of the exchange, counted from 0.
        round: u32,
        /// The receivers of the records; all PEs say the same.
        to: Receivers,
        /// The record, at most [`MAX_RECORD`] bytes.
        record: Vec<u8>,
    },
    /// The last finalize is done: the PE may exit as it likes.
    Finalized,
    /// The PE has entered initialization again after its last finalize.
    Resumed,
    /// Every PE has come to its exit, with status 0 and without its last finalize, so this one may
    /// exit as it likes.
    Unfinalized,
    /// The position of the statuses of PEs in the memory of their nodes, which is the same on all
    /// nodes; only PE 0 sends it. The status of the PE with local number `i` begins at `at + i *
    /// stride`.
    Statuses {
        /// The distance between two PEs of a node.
        stride: u64,
        /// The offset of the first one.
        at: u64,
    },
    /// The PE requested symmetric memory that is not there; a program that does not notice fails
    /// soon.
    Refused {
        /// The resource that was refused, and the remedy: the end of a sentence.
        what: String,
    },
    /// The PE opens a transport, whose libraries may crash; empty when it is open, or is passed
    /// over.
    Opening {
        /// The transport.
        what: String,
    },
    /// The PE ends the job because of an error.
    Abort {
        /// Exit status of the job; 0 counts as 1.
        status: i32,
        /// The error, printed once per job.
        message: String,
    },
    /// A warning of the PE; the job goes on.
    Warning {
        /// The warning, printed once for all PEs that send it.
        message: String,
    },
    /// The PE called `shmem_global_exit`.
    GlobalExit {
        /// Exit status of the job.
        status: i32,
    },
}

/// A message of a launcher, or of the meeting of the job, to a PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromLauncher {
    /// The answer to [`FromPe::Hello`].
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
        /// The reason and the remedy: a sentence.
        why: String,
    },
    /// The job ends, and this process with it: a meeting cannot kill it.
    End {
        /// Exit status of the job.
        status: i32,
    },
}

/// Why a stream of bytes stopped being a stream of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The other side speaks another version.
    #[error(
        "it has version {0} of the job protocol and this side has {VERSION}; use oshrun and librushmem of one installation"
    )]
    Version(u8),
    /// A body is too large for this side. Remedy: use oshrun and librushmem of one installation.
    #[error("a body of {0} bytes exceeds the limit")]
    TooLarge(usize),
    /// A body is no message of this version. Remedy: use oshrun and librushmem of one installation.
    #[error("its body is not a known message")]
    Malformed,
}

/// Returns the frame that carries `message`.
///
/// # Panics
/// When the body does not fit a u32; callers bound what they send far below.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    let mut frame = vec![0; HEADER];
    frame[4] = VERSION;
    let mut frame = postcard::to_extend(message, frame)
        .expect("a message is plain data and memory does not refuse");
    let body = u32::try_from(frame.len() - HEADER).expect("a body is below 4 GiB");
    frame[..4].copy_from_slice(&body.to_le_bytes());
    frame
}

/// Cuts a stream of bytes, arriving in any slices, into messages.
///
/// It holds at most one incomplete frame beside what was pushed and not yet taken, so a caller that
/// takes all messages after each push bounds its memory by the limit and the size of its slices.
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
        Decoder { limit, buffer: Vec::new(), taken: 0, failed: None }
    }

    /// Appends bytes of the stream. After an error they are dropped, since the stream has lost its
    /// meaning.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns the next whole message, `None` when more bytes are needed.
    ///
    /// # Errors
    /// As soon as the bytes cannot become a message; every later call returns the same error.
    pub fn take<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.parse();
        // The records of a large job come seldom, and take much.
        if self.taken == self.buffer.len() && self.buffer.capacity() > KEPT {
            (self.buffer, self.taken) = (Vec::new(), 0);
        }
        if let Err(error) = outcome {
            self.failed = Some(error);
            self.buffer = Vec::new();
        }
        outcome
    }

    fn parse<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let Some((header, rest)) = self.buffer[self.taken..].split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [a, b, c, d, version] = *header;
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
            _ => return Err(FrameError::Malformed),
        };
        self.taken += HEADER + nbytes;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests;
