//! The right to write to one destination of a job's output: a stream of oshrun, or the connection to the parent daemon.
//!
//! Only one holder at a time has it, and keeps it while it writes a long line in pieces, so lines stay whole wherever
//! several streams are merged.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::lines::{Owner, Page};
use super::writer::{Destination, Writer};
use crate::tree::senders::{UpSender, WINDOW};
use crate::tree::wire::{Printed, Up};

/// The right to write to one destination.
#[derive(Debug)]
pub enum Sink {
    /// To a stream of oshrun, or to a file.
    Stream(Stream),
    /// To the parent of a daemon.
    Parent(Parent),
}

impl Sink {
    /// Adds text. `holds` means that the line continues in the next text of the same owner. Returns whether the
    /// destination still has a reader.
    pub async fn write(&mut self, owner: Owner, tag: &[u8], text: Vec<u8>, holds: bool) -> bool {
        match self {
            Sink::Stream(stream) => stream.write(owner, tag, text).await,
            Sink::Parent(parent) => parent.write(owner, text, holds).await,
        }
    }

    /// Whether a PE has printed anything to its standard error here.
    pub fn has_complaint(&self) -> bool {
        matches!(self, Sink::Stream(Stream { has_complaint: true, .. }))
    }

    /// Nothing more will be written.
    pub fn close(&mut self) {
        if let Sink::Stream(stream) = self {
            stream.writer = None;
        }
    }
}

/// The connection to a destination to which this process writes itself.
#[derive(Debug)]
pub struct Stream {
    page: Page,
    destination: Arc<Destination>,
    writer: Option<Writer>,
    has_complaint: bool,
}

impl Stream {
    /// Without any text.
    pub fn new(destination: Arc<Destination>, writer: Writer) -> Stream {
        Stream { page: Page::default(), destination, writer: Some(writer), has_complaint: false }
    }

    async fn write(&mut self, owner: Owner, tag: &[u8], text: Vec<u8>) -> bool {
        self.has_complaint |= matches!(owner, Owner::Stderr(_));
        let text = self.page.add(owner, tag, text);
        match &self.writer {
            Some(writer) => writer.write(&self.destination, text).await,
            None => false,
        }
    }
}

/// The connection from a daemon to its parent: at most [`WINDOW`] bytes of a stream are in flight, so if the reader of
/// oshrun stops, the PEs stop, while all other messages continue to pass.
#[derive(Debug)]
pub struct Parent {
    window: Arc<Semaphore>,
    up: UpSender,
}

impl Parent {
    /// `window` grows when the parent reports that it has read; closing it means that nobody reads any more.
    pub fn new(window: Arc<Semaphore>, up: UpSender) -> Parent {
        Parent { window, up }
    }

    async fn write(&mut self, owner: Owner, text: Vec<u8>, holds: bool) -> bool {
        let Some((pe, stream)) = owner.stream() else {
            return true;
        };
        let Ok(room) = self.window.acquire_many(room_for(&text)).await else {
            return false;
        };
        room.forget();
        self.up.send(&Up::Printed(Printed { pe, stream, text, holds }));
        true
    }
}

/// The part of the window that a text takes.
pub fn room_for(text: &[u8]) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX).min(WINDOW)
}
