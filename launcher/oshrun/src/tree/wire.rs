//! The messages between a daemon and its parent, and the greeting before them.
//!
//! They are frames of `rushmem_bootstrap::proto`, over the daemon's own standard input and output. It never
//! interprets the frames of PEs that it carries.

use rushmem_bootstrap::Exit;
use rushmem_bootstrap::proto;
use serde::{Deserialize, Serialize};

use super::orders::Orders;

/// Maximum size of a body from a daemon to its parent: a piece of a PE's output or frames, and the fields around it.
pub const MAX_UP: usize = 512 * 1024;

/// Maximum size of a body from a parent to a daemon: the records of all PEs, and the fields around them.
pub const MAX_DOWN: usize = proto::MAX_FROM_LAUNCHER + 64;

/// The start of the greeting of a daemon; the version of oshrun follows.
const GREETING: &str = "oshrun-daemon ";

/// The greeting of this oshrun: a line of its own, whatever a login script has printed before.
pub fn greeting() -> String {
    format!("\n{GREETING}{}\n", version())
}

/// The version, which must be the same on both sides.
pub fn version() -> String {
    format!("{}/{}", env!("CARGO_PKG_VERSION"), proto::VERSION)
}

/// Searches for the greeting. Returns the version and how many bytes come before the first message.
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
pub enum Which {
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
    /// The stream that it was written to.
    pub stream: Which,
    /// The text.
    pub text: Vec<u8>,
    /// Whether its line continues in the next text of the same stream.
    pub holds: bool,
}

/// A message of a daemon to its parent.
#[derive(Debug, Serialize, Deserialize)]
pub enum Up {
    /// The process of a PE has been started.
    Started {
        /// The PE.
        pe: u32,
        /// Its process.
        pid: u32,
    },
    /// A PE has sent this to oshrun.
    Frames {
        /// The PE.
        pe: u32,
        /// Bytes, not necessarily whole frames.
        bytes: Vec<u8>,
    },
    /// The process of a PE has ended, after all that the PE has sent.
    Exited {
        /// The PE.
        pe: u32,
        /// How.
        exit: Exit,
    },
    /// A PE has printed something.
    Printed(Printed),
    /// PE 0 has taken one piece of its input.
    InputTaken,
    /// The job cannot continue: something could not be started, or was lost.
    Failed {
        /// The exit status of oshrun.
        status: i32,
        /// Why, without oshrun's name.
        sentence: String,
    },
    /// A message to print, without oshrun's name.
    Words(String),
    /// Everything that this daemon had to start was started, and has ended.
    Idle,
    /// The answer to [`Down::Finish`]: all output has been sent, and nothing is left. The last message.
    Done,
    /// The answer to [`Down::Ping`].
    Pong,
}

/// A message of a parent to a daemon.
#[derive(Debug, Serialize, Deserialize)]
pub enum Down {
    /// The orders: the first message, and the only one of its kind.
    Orders(Box<Orders>),
    /// A frame for a PE.
    Frame {
        /// The PE.
        pe: u32,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A frame for every PE.
    FrameToAll {
        /// The frame.
        frame: Vec<u8>,
    },
    /// A signal for the process groups of all PEs.
    Signal(i32),
    /// Stop all PEs; the parent may be silent until [`Down::Resume`].
    Suspend,
    /// Let all PEs continue.
    Resume,
    /// Input of PE 0; an empty piece is its end.
    Input(Vec<u8>),
    /// A part of the window of a stream is free again.
    Read {
        /// The stream.
        stream: Which,
        /// Bytes.
        nbytes: u32,
    },
    /// Nobody reads this stream any more.
    Unread {
        /// The stream.
        stream: Which,
    },
    /// A heartbeat.
    Ping,
    /// All PEs of the job have ended: remove what they left, send the last output, and end.
    Finish,
}

/// The frame of a message to a parent. It ends with a newline, since a launch agent may hold back an unfinished line
/// (srun does).
pub fn encode_up(message: &Up) -> Vec<u8> {
    proto::encode(&(message, b'\n'))
}

/// The message of a frame that [`encode_up`] made.
pub type UpFrame = (Up, u8);

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_bootstrap::proto::Decoder;

    #[test]
    fn a_greeting_is_found_after_whatever_a_login_prints() {
        let mut bytes = b"Welcome!\nno newline".to_vec();
        assert_eq!(find_greeting(&bytes), None);
        bytes.extend(greeting().as_bytes());
        let end = bytes.len();
        bytes.extend(encode_up(&Up::Idle));
        assert_eq!(find_greeting(&bytes), Some((version(), end)));
        assert_eq!(find_greeting(&bytes[..end - 1]), None, "its line has not ended");
    }

    #[test]
    fn messages_to_a_parent_end_their_line() {
        let exit = Exit::Signal(9);
        for message in [Up::Idle, Up::Exited { pe: 3, exit }, Up::Words("a".to_string())] {
            let frame = encode_up(&message);
            assert_eq!(frame.last(), Some(&b'\n'));
            let mut decoder = Decoder::new(MAX_UP);
            decoder.push(&frame);
            let (decoded, _) = decoder.take::<UpFrame>().expect("a frame").expect("a whole one");
            assert_eq!(format!("{decoded:?}"), format!("{message:?}"));
        }
    }
}
