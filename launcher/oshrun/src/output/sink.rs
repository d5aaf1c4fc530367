//! A destination of the job's output: a stream of oshrun, a file, or the connection to the parent.
//!
//! Writers lock the sink, and keep the lock while they write a long line in pieces, so that lines
//! stay whole.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::lines::{LineMerger, TextSource};
use super::writer::{OutputSink, Writer};
use crate::daemons::messages::{HostEvent, Printed, StdStream};
use crate::daemons::queues::{EventSender, WINDOW};

/// A destination of output.
#[derive(Debug)]
pub enum Sink {
    /// A stream of oshrun, or a file.
    Stream(OutputStream),
    /// The parent of a daemon.
    Parent(ParentDaemon),
}

impl Sink {
    /// Adds text. `continues`: its last line continues in the next text of the same owner. Returns
    /// whether the destination still has a reader.
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

    /// Returns true if a PE has written to its standard error here.
    pub fn has_pe_errors(&self) -> bool {
        matches!(self, Sink::Stream(OutputStream { has_pe_errors: true, .. }))
    }

    /// Ends the output.
    pub fn close(&mut self) {
        if let Sink::Stream(stream) = self {
            stream.writer = None;
        }
    }
}

/// A destination that this process writes.
#[derive(Debug)]
pub struct OutputStream {
    merger: LineMerger,
    destination: Arc<OutputSink>,
    writer: Option<Writer>,
    has_pe_errors: bool,
}

impl OutputStream {
    /// Returns an empty stream.
    pub fn new(destination: Arc<OutputSink>, writer: Writer) -> OutputStream {
        OutputStream {
            merger: LineMerger::default(),
            destination,
            writer: Some(writer),
            has_pe_errors: false,
        }
    }

    async fn write(&mut self, owner: TextSource, tag: &[u8], text: Vec<u8>) -> bool {
        self.has_pe_errors |= matches!(owner, Some((_, StdStream::Err)));
        let text = self.merger.add(owner, tag, text);
        match &self.writer {
            Some(writer) => writer.write(&self.destination, text).await,
            None => false,
        }
    }
}

/// The connection from a daemon to its parent. At most [`WINDOW`] bytes of a stream are in flight,
/// so that a stopped reader of oshrun stops the PEs, but not the other messages.
#[derive(Debug)]
pub struct ParentDaemon {
    window: Arc<Semaphore>,
    up: EventSender,
}

impl ParentDaemon {
    /// `window` gets permits when the parent has written output, and is closed if there is no
    /// reader.
    pub fn new(window: Arc<Semaphore>, up: EventSender) -> ParentDaemon {
        ParentDaemon { window, up }
    }

    async fn write(&mut self, owner: TextSource, text: Vec<u8>, continues: bool) -> bool {
        let Some((pe, stream)) = owner else {
            return true;
        };
        let Ok(room) = self.window.acquire_many(room_for(&text)).await else {
            return false;
        };
        room.forget();
        self.up.send(&HostEvent::Printed(Printed { pe, stream, text, continues }));
        true
    }
}

/// Returns the number of permits for a text.
pub fn room_for(text: &[u8]) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX).min(WINDOW)
}
