//! Keeps lines whole when the output of many PEs is merged into one stream. Performs no I/O.

use std::time::Duration;

use crate::daemons::messages::StdStream;

/// Maximum pause within a long line while others wait.
pub const MAX_PAUSE: Duration = Duration::from_secs(1);

/// A line longer than this is written in pieces, to limit the memory of oshrun.
pub const MAX_LINE: usize = 64 * 1024;

/// Bytes of a PE's pipe that are not yet forwarded.
#[derive(Debug, Default)]
pub struct PendingLines {
    bytes: Vec<u8>,
}

impl PendingLines {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes what may be written: all whole lines, or a piece of a line that is too long.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if let Some(at) = self.bytes.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.bytes.split_off(at + 1);
            return Some(std::mem::replace(&mut self.bytes, rest));
        }
        if self.bytes.len() >= MAX_LINE { self.rest() } else { None }
    }

    /// Takes the rest, which is an unfinished line.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() { None } else { Some(std::mem::take(&mut self.bytes)) }
    }

    /// Returns true if there is an unfinished line.
    pub fn is_waiting(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// The source of text: a PE and its stream, or `None` for oshrun itself.
pub type TextSource = Option<(u32, StdStream)>;

/// Merges the text of several owners into one stream.
#[derive(Debug, Default)]
pub struct LineMerger {
    /// The owner of the unfinished line.
    unfinished: Option<TextSource>,
}

impl LineMerger {
    /// Formats `text` of `owner`: prefixes each line with the tag, and starts with a newline if
    /// another owner has left an unfinished line.
    pub fn add(&mut self, owner: TextSource, tag: &[u8], text: Vec<u8>) -> Vec<u8> {
        let continues = self.unfinished == Some(owner);
        let breaks = !continues && self.unfinished.is_some();
        self.unfinished = (text.last() != Some(&b'\n')).then_some(owner);
        if tag.is_empty() && !breaks {
            return text;
        }
        let mut output = Vec::with_capacity(text.len() + tag.len() + 1);
        if breaks {
            output.push(b'\n');
        }
        for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if index > 0 || !continues {
                output.extend_from_slice(tag);
            }
            output.extend_from_slice(line);
        }
        output
    }
}

#[cfg(test)]
mod tests;
