//! A destination of the job's output: a stream of oshrun, a file, or the connection from a daemon
//! to oshrun; and how the lines of many PEs are kept whole in it.
//!
//! Tasks lock the sink to write, and keep the lock while they write a long line in pieces.

use std::sync::Arc;
use std::time::Duration;

use rushmem_bootstrap::NodeMap;
use tokio::sync::Semaphore;

use super::writer::{OutputSink, Writer};
use crate::daemons::connection::{EventSender, HostEvent, Printed, StdStream, WINDOW};

/// Maximum pause within a long line, while other PEs wait for the destination.
pub const MAX_PAUSE: Duration = Duration::from_secs(1);

/// A line longer than this is written in pieces, to limit the memory of oshrun.
pub const MAX_LINE: usize = 64 * 1024;

/// A destination of output.
#[derive(Debug)]
pub enum Sink {
    /// A stream of oshrun, or a file.
    Stream(OutputStream),
    /// The connection of a daemon to oshrun.
    Parent(ParentSink),
}

impl Sink {
    /// Writes text. With `continues`, its last line continues in the next text of the same owner.
    /// Returns false if the reader has closed the destination.
    pub async fn write(
        &mut self,
        owner: TextSource,
        tag: &[u8],
        text: Vec<u8>,
        continues: bool,
    ) -> bool {
        match self {
            Sink::Stream(stream) => stream.write(owner, tag, text).await,
            Sink::Parent(parent) => parent.write(owner, text, continues).await,
        }
    }

    /// Returns true if text from the standard error of a PE was written to this sink; always false
    /// for the connection of a daemon.
    pub fn has_pe_errors(&self) -> bool {
        match self {
            Sink::Stream(stream) => stream.has_pe_errors,
            Sink::Parent(_) => false,
        }
    }

    /// Drops the handle of the writer thread, which ends when it has written everything.
    pub fn close(&mut self) {
        if let Sink::Stream(stream) = self {
            stream.writer = None;
        }
    }
}

/// A destination that this process writes itself.
#[derive(Debug)]
pub struct OutputStream {
    merger: LineMerger,
    destination: Arc<OutputSink>,
    writer: Option<Writer>,
    has_pe_errors: bool,
}

impl OutputStream {
    /// Creates a stream to which nothing has been written.
    pub fn new(destination: Arc<OutputSink>, writer: Writer) -> OutputStream {
        OutputStream {
            merger: LineMerger::default(),
            destination,
            writer: Some(writer),
            has_pe_errors: false,
        }
    }

    async fn write(&mut self, owner: TextSource, tag: &[u8], text: Vec<u8>) -> bool {
        self.has_pe_errors |= owner.is_some_and(|source| source.stream == StdStream::Err);
        let text = self.merger.add(owner, tag, text);
        match &self.writer {
            Some(writer) => writer.write(&self.destination, text).await,
            None => false,
        }
    }
}

/// The connection from a daemon to oshrun. At most [`WINDOW`] bytes of a stream are in flight, so
/// that the PEs wait if the reader of oshrun's output stops, while other messages still pass.
#[derive(Debug)]
pub struct ParentSink {
    window: Arc<Semaphore>,
    events: EventSender,
}

impl ParentSink {
    /// Creates the sink of one stream. `window` gets permits when oshrun has written output, and is
    /// closed if the reader of oshrun's output has closed it.
    pub fn new(window: Arc<Semaphore>, events: EventSender) -> ParentSink {
        ParentSink { window, events }
    }

    async fn write(&mut self, owner: TextSource, text: Vec<u8>, continues: bool) -> bool {
        // A daemon sends its own messages as events.
        let Some(PeStream { pe, stream }) = owner else {
            return true;
        };

        let Ok(permits) = self.window.acquire_many(room_for(&text)).await else {
            return false;
        };
        // oshrun returns the permits when it has written the text.
        permits.forget();

        self.events.send(&HostEvent::Printed(Printed {
            pe,
            stream,
            text,
            continues,
        }));
        true
    }
}

/// Returns the number of permits of the window that a text uses. A longer text than the window is
/// sent when nothing else is in flight.
pub fn room_for(text: &[u8]) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX).min(WINDOW)
}

/// Bytes of a PE's pipe that have not been forwarded.
#[derive(Debug, Default)]
pub struct PendingLines {
    bytes: Vec<u8>,
}

impl PendingLines {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes all whole lines. If there are none, takes the unfinished line once it has reached
    /// [`MAX_LINE`].
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if let Some(end) = self.bytes.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.bytes.split_off(end + 1);
            return Some(std::mem::replace(&mut self.bytes, rest));
        }

        if self.bytes.len() >= MAX_LINE {
            self.rest()
        } else {
            None
        }
    }

    /// Takes the rest, which is an unfinished line.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            None
        } else {
            Some(std::mem::take(&mut self.bytes))
        }
    }

    /// Returns true if there is an unfinished line.
    pub fn is_waiting(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// A stream of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeStream {
    pub pe: u32,
    pub stream: StdStream,
}

/// The source of text; `None` for oshrun itself.
pub type TextSource = Option<PeStream>;

/// Merges the text of several sources into one stream.
#[derive(Debug, Default)]
pub struct LineMerger {
    /// The source of the unfinished line at the end of the stream; `None` if there is no such line.
    unfinished: Option<TextSource>,
}

impl LineMerger {
    /// Formats `text` of `owner`: prefixes each line that begins in it with the tag, and starts
    /// with a newline if another source has left an unfinished line.
    pub fn add(&mut self, owner: TextSource, tag: &[u8], text: Vec<u8>) -> Vec<u8> {
        let continues = self.unfinished == Some(owner);
        let breaks = !continues && self.unfinished.is_some();
        self.unfinished = if text.last() == Some(&b'\n') {
            None
        } else {
            Some(owner)
        };

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

/// The prefixes of `--tag-output`: the number of the PE, and its host if there are several.
#[derive(Debug, Default)]
pub struct Tags {
    /// `None` if lines are not tagged.
    hosts: Option<TagHosts>,
}

/// The hosts of the PEs, for their tags.
#[derive(Debug)]
struct TagHosts {
    nodes: NodeMap,
    /// The name of the host of each node.
    names: Vec<String>,
}

impl Tags {
    /// Creates tags for PEs on these nodes with these host names.
    pub fn new(nodes: NodeMap, names: Vec<String>) -> Tags {
        Tags {
            hosts: Some(TagHosts { nodes, names }),
        }
    }

    /// Returns the tag of a PE, empty if lines are not tagged.
    pub fn tag(&self, pe: u32) -> Vec<u8> {
        match &self.hosts {
            Some(TagHosts { nodes, names }) if names.len() > 1 => {
                format!("[{pe}@{}] ", names[nodes.node_of(pe) as usize]).into_bytes()
            }
            Some(_) => format!("[{pe}] ").into_bytes(),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_taken_and_the_rest_waits() {
        let mut incoming = PendingLines::default();
        incoming.push(b"one\ntw");
        assert_eq!(incoming.take().as_deref(), Some(&b"one\n"[..]));
        assert_eq!(incoming.take(), None);
        assert!(incoming.is_waiting());

        incoming.push(b"o\nthree\n");
        assert_eq!(incoming.take().as_deref(), Some(&b"two\nthree\n"[..]));
        assert_eq!(incoming.take(), None);
        assert_eq!(incoming.rest(), None);
        assert!(!incoming.is_waiting());
    }

    #[test]
    fn a_line_without_end_is_taken_in_pieces() {
        let mut incoming = PendingLines::default();
        incoming.push(&[b'x'; MAX_LINE - 1]);
        assert_eq!(incoming.take(), None);
        incoming.push(b"yz");
        assert_eq!(incoming.take().map(|piece| piece.len()), Some(MAX_LINE + 1));

        incoming.push(b"end");
        assert_eq!(incoming.take(), None);
        assert_eq!(incoming.rest().as_deref(), Some(&b"end"[..]));
    }

    fn out(pe: u32) -> TextSource {
        let stream = StdStream::Out;
        Some(PeStream { pe, stream })
    }

    fn err(pe: u32) -> TextSource {
        let stream = StdStream::Err;
        Some(PeStream { pe, stream })
    }

    #[test]
    fn only_unfinished_lines_of_others_are_broken() {
        let mut merger = LineMerger::default();
        let a = out(0);
        let b = out(1);
        let steps: [(TextSource, &str, &str); 5] = [
            (a, "start", "start"),
            (a, " end", " end"),
            (b, "x\ny", "\nx\ny"),
            (b, "\n", "\n"),
            (a, "z\n", "z\n"),
        ];
        for (owner, text, expected) in steps {
            assert_eq!(merger.add(owner, b"", text.into()), expected.as_bytes());
        }
    }

    #[test]
    fn tags_prefix_lines() {
        let mut merger = LineMerger::default();
        let steps: [(TextSource, &[u8], &str, &str); 5] = [
            (out(0), b"[0] ", "a\n\nb\n", "[0] a\n[0] \n[0] b\n"),
            (out(0), b"[0] ", "long", "[0] long"),
            (out(0), b"[0] ", "er\nline", "er\n[0] line"),
            (err(1), b"[1] ", "oops\n", "\n[1] oops\n"),
            (None, b"", "done\n", "done\n"),
        ];
        for (owner, tag, text, expected) in steps {
            assert_eq!(merger.add(owner, tag, text.into()), expected.as_bytes());
        }
    }
}
