//! The messages between a daemon and oshrun, and the greeting before them.
//!
//! They are frames of `rushmem_bootstrap::proto` over the daemon's standard input and output.
//! Frames of PEs pass through uninterpreted.

use std::time::Duration;

use rushmem_bootstrap::Exit;
use rushmem_bootstrap::proto::{self, Receivers};
use rushmem_bootstrap::server::Statuses;
use rushmem_explain::snapshot::WaitId;
use serde::{Deserialize, Serialize};

use super::orders::HostJob;
use crate::hang_report::survey::{Inquiry, SurveyResult};

/// Maximum size of a message to oshrun: a piece of output or of frames, and a header.
pub const MAX_EVENT: usize = 512 * 1024;

/// Maximum size of a message to a daemon: the records of all PEs, and a header.
pub const MAX_ORDER: usize = proto::MAX_FROM_LAUNCHER + 64;

/// The start of the greeting of a daemon; the version of oshrun follows.
const GREETING: &str = "oshrun-daemon ";

/// Returns the greeting of a daemon. It starts a new line, since login scripts may have printed
/// before.
pub fn greeting() -> String {
    format!("\n{GREETING}{}\n", version())
}

/// Returns the version, which must be equal on both sides.
pub fn version() -> String {
    format!("{}/{}", env!("CARGO_PKG_VERSION"), proto::VERSION)
}

/// Searches for the greeting. Returns the version and the offset of the first message.
pub fn find_greeting(bytes: &[u8]) -> Option<(String, usize)> {
    let mut start = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        start += line.len();
        if let Some(version) = line.strip_prefix(GREETING.as_bytes())
            && let Some(version) = version.strip_suffix(b"\n")
        {
            return Some((String::from_utf8_lossy(version).into_owned(), start));
        }
    }
    None
}

/// A stream of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StdStream {
    /// Its standard output.
    Out,
    /// Its standard error.
    Err,
}

/// Text of a PE: whole lines, or a piece of a line.
#[derive(Debug, Serialize, Deserialize)]
pub struct Printed {
    /// The PE.
    pub pe: u32,
    /// The stream.
    pub stream: StdStream,
    /// The text.
    pub text: Vec<u8>,
    /// True if the line continues in the next text of the same stream.
    pub continues: bool,
}

/// An event of a job: a message of a daemon to oshrun, which also has those of its own PEs.
#[derive(Debug, Serialize, Deserialize)]
pub enum HostEvent {
    /// The daemon of a host has started.
    Greeted {
        /// The first PE of the host.
        pe: u32,
    },
    /// The process of a PE has been started.
    Started {
        /// The PE.
        pe: u32,
        /// Its process.
        pid: u32,
    },
    /// A PE has sent bytes to oshrun.
    Frames {
        /// The PE.
        pe: u32,
        /// Bytes, not necessarily whole frames.
        bytes: Vec<u8>,
    },
    /// The process of a PE has ended. Follows all that the PE has sent.
    Exited {
        /// The PE.
        pe: u32,
        /// The way in which it ended.
        exit: Exit,
    },
    /// A PE has printed something.
    Printed(Printed),
    /// PE 0 has consumed one piece of its input.
    InputConsumed,
    /// The job cannot continue: something could not be started, or was lost.
    Failed {
        /// The exit status of oshrun.
        status: i32,
        /// Why, without oshrun's name.
        sentence: String,
    },
    /// A message to print, without oshrun's name.
    Notice(String),
    /// The state of some PEs, in reply to [`DaemonOrder::Explain`].
    Found(SurveyResult),
    /// A wait has lasted longer than [`DaemonOrder::Watch`] allows.
    Overdue(WaitId),
    /// All PEs of this daemon have ended.
    Idle,
    /// Reply to [`DaemonOrder::Finish`], and the last message: all output has been sent, and no
    /// process is left.
    Done,
    /// Reply to [`DaemonOrder::Ping`].
    Pong,
}

impl HostEvent {
    /// Returns a failure of oshrun or of a daemon.
    pub fn failed(sentence: String) -> HostEvent {
        HostEvent::Failed { status: 1, sentence }
    }
}

/// A message of oshrun to a daemon.
#[derive(Debug, Serialize, Deserialize)]
pub enum DaemonOrder {
    /// Start these PEs; only the first message.
    Start(Box<HostJob>),
    /// A frame for a PE.
    Frame {
        /// The PE.
        pe: u32,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A frame for many PEs.
    FrameToAll {
        /// For which.
        to: Receivers,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A signal for the process groups of all PEs.
    Signal(i32),
    /// Report on all PEs that run.
    Explain(Inquiry),
    /// Look for long waits once per second.
    Watch {
        /// The position of the statuses of the PEs.
        statuses: Statuses,
        /// The time for which a wait may last.
        limit: Duration,
    },
    /// Stop all PEs. No heartbeats follow until [`DaemonOrder::Resume`].
    Suspend,
    /// Continue all PEs.
    Resume,
    /// A piece of input of PE 0; an empty piece ends the input.
    Input(Vec<u8>),
    /// Output was written, so more of this stream may be sent.
    OutputConsumed {
        /// The stream.
        stream: StdStream,
        /// The number of bytes.
        nbytes: u32,
    },
    /// This stream has no reader any more.
    OutputClosed {
        /// The stream.
        stream: StdStream,
    },
    /// A heartbeat.
    Ping,
    /// All PEs of the job have ended: end what they left, send the last output, and exit.
    Finish,
}

/// Encodes a message to oshrun. The frame ends with a newline, since srun holds back an
/// unfinished line.
pub fn encode_event(message: &HostEvent) -> Vec<u8> {
    proto::encode(&(message, b'\n'))
}

/// The input of [`encode_event`].
pub type EventFrame = (HostEvent, u8);

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_bootstrap::proto::Decoder;

    #[test]
    fn a_greeting_is_found_after_the_output_of_a_login() {
        let mut bytes = b"Welcome!\nno newline".to_vec();
        assert_eq!(find_greeting(&bytes), None);
        bytes.extend(greeting().as_bytes());
        let end = bytes.len();
        bytes.extend(encode_event(&HostEvent::Idle));
        assert_eq!(find_greeting(&bytes), Some((version(), end)));
        assert_eq!(find_greeting(&bytes[..end - 1]), None, "its line has not ended");
    }

    #[test]
    fn messages_to_oshrun_end_their_line() {
        let exit = Exit::Signal(9);
        for message in
            [HostEvent::Idle, HostEvent::Exited { pe: 3, exit }, HostEvent::Notice("a".to_string())]
        {
            let frame = encode_event(&message);
            assert_eq!(frame.last(), Some(&b'\n'));
            let mut decoder = Decoder::new(MAX_EVENT);
            decoder.push(&frame);
            let (decoded, _) = decoder.take::<EventFrame>().expect("a frame").expect("a whole one");
            assert_eq!(format!("{decoded:?}"), format!("{message:?}"));
        }
    }
}
