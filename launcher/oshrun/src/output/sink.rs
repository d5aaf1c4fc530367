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
    /// Adds text. `holds` says that a line goes on in the next text of the same owner. Returns whether anybody can still
    /// read it.
    pub async fn write(&mut self, owner: Owner, tag: &[u8], text: Vec<u8>, holds: bool) -> bool {
        match self {
            Sink::Stream(stream) => stream.write(owner, tag, text).await,
            Sink::Parent(parent) => parent.write(owner, text, holds).await,
        }
    }

    /// Nothing more will be written.
    pub fn close(&mut self) {
        if let Sink::Stream(stream) = self {
            stream.writer = None;
        }
    }
}

/// The way to a destination that this process writes to itself.
#[derive(Debug)]
pub struct Stream {
    page: Page,
    destination: Arc<Destination>,
    writer: Option<Writer>,
}

impl Stream {
    /// Nothing is written yet.
    pub fn new(destination: Arc<Destination>, writer: Writer) -> Stream {
        Stream { page: Page::default(), destination, writer: Some(writer) }
    }

    async fn write(&mut self, owner: Owner, tag: &[u8], text: Vec<u8>) -> bool {
        let text = self.page.add(owner, tag, text);
        match &self.writer {
            Some(writer) => writer.write(&self.destination, text).await,
            None => false,
        }
    }
}

/// The way up from a daemon: no more than [`WINDOW`] bytes of a stream are on it unread, so a reader of oshrun who
/// stops makes the PEs stop, while everything else goes on passing.
#[derive(Debug)]
pub struct Parent {
    window: Arc<Semaphore>,
    up: UpSender,
}

impl Parent {
    /// Whoever hears that the parent has read adds to `window`; closing it says that nobody reads any more.
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
