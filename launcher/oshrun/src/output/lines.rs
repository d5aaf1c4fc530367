//! Keeps lines whole while the output of many PEs becomes one stream.
//!
//! Pure: bytes in, bytes out; `output` moves them.

use std::time::Duration;

use crate::tree::wire::Which;

/// How long the owner of a long line may keep others waiting without adding to it.
pub const HOLD: Duration = Duration::from_secs(1);

/// A line longer than this is written in pieces, so that no PE can make oshrun use unlimited memory.
pub const LONGEST: usize = 64 * 1024;

/// The bytes of one pipe of a PE that are not yet forwarded.
#[derive(Debug, Default)]
pub struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// Appends what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Everything that may be written now: all whole lines, or a piece of a line that is too long.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if let Some(at) = self.bytes.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.bytes.split_off(at + 1);
            return Some(std::mem::replace(&mut self.bytes, rest));
        }
        if self.bytes.len() >= LONGEST { self.rest() } else { None }
    }

    /// The rest, although its line has not ended.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() { None } else { Some(std::mem::take(&mut self.bytes)) }
    }

    /// Whether an unfinished line waits.
    pub fn is_waiting(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// Who writes: a stream of a PE, or oshrun itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// oshrun's own messages.
    Launcher,
    /// The standard output of a PE.
    Stdout(u32),
    /// The standard error of a PE.
    Stderr(u32),
}

impl Owner {
    /// A stream of a PE.
    pub fn of(pe: u32, stream: Which) -> Owner {
        match stream {
            Which::Out => Owner::Stdout(pe),
            Which::Err => Owner::Stderr(pe),
        }
    }

    /// The PE and its stream.
    pub fn stream(self) -> Option<(u32, Which)> {
        match self {
            Owner::Launcher => None,
            Owner::Stdout(pe) => Some((pe, Which::Out)),
            Owner::Stderr(pe) => Some((pe, Which::Err)),
        }
    }
}

/// The state of the lines of one stream of oshrun.
#[derive(Debug, Default)]
pub struct Page {
    /// The owner of the unfinished line.
    unfinished: Option<Owner>,
}

impl Page {
    /// What has to be written for `owner` to add `text`: its tag in front of every line, and a newline first where
    /// another owner has left its line unfinished.
    pub fn add(&mut self, owner: Owner, tag: &[u8], text: Vec<u8>) -> Vec<u8> {
        let continues = self.unfinished == Some(owner);
        let breaks = !continues && self.unfinished.is_some();
        self.unfinished = (text.last() != Some(&b'\n')).then_some(owner);
        if tag.is_empty() && !breaks {
            return text;
        }
        let mut page = Vec::with_capacity(text.len() + tag.len() + 1);
        if breaks {
            page.push(b'\n');
        }
        for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if index > 0 || !continues {
                page.extend_from_slice(tag);
            }
            page.extend_from_slice(line);
        }
        page
    }
}

#[cfg(test)]
mod tests;
