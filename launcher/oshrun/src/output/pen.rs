//! The right to write to one destination of a job's output: a stream of oshrun, or the way up to it.
//!
//! One at a time holds it, and keeps it while a long line leaves in pieces, so lines stay whole at every place where
//! the output of several becomes one.
#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::lines::{Owner, Page};
use crate::tree::wire::{Printed, Up};
use crate::tree::{UpSender, WINDOW};

/// Chunks that wait for a stream before its PEs have to.
const QUEUE: usize = 8;

/// The right to write to one destination.
#[derive(Debug)]
pub enum Pen {
    /// To a stream of oshrun.
    Stream(Stream),
    /// To the parent of a daemon.
    Parent(Parent),
}

impl Pen {
    /// Adds text. `holds` says that a line goes on in the next text of the same owner. Returns whether anybody can still
    /// read it.
    pub async fn write(&mut self, owner: Owner, tag: &[u8], text: Vec<u8>, holds: bool) -> bool {
        match self {
            Pen::Stream(stream) => stream.write(owner, tag, text).await,
            Pen::Parent(parent) => parent.write(owner, text, holds).await,
        }
    }

    /// Ends the writer after what it has. The receiver resolves when all is written.
    pub fn close(&mut self) -> Option<oneshot::Receiver<()>> {
        match self {
            Pen::Stream(stream) => stream.writer.take().map(|writer| writer.written),
            Pen::Parent(_) => None,
        }
    }
}

/// A stream of oshrun. A thread writes, so that a reader that has stopped holds up nothing else.
#[derive(Debug)]
pub struct Stream {
    page: Page,
    fd: BorrowedFd<'static>,
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    chunks: mpsc::Sender<Vec<u8>>,
    written: oneshot::Receiver<()>,
}

impl Stream {
    /// Nothing is written yet.
    pub fn new(fd: BorrowedFd<'static>) -> Stream {
        Stream { page: Page::default(), fd, writer: None }
    }

    async fn write(&mut self, owner: Owner, tag: &[u8], text: Vec<u8>) -> bool {
        let fd = self.fd;
        let writer = self.writer.get_or_insert_with(|| {
            let (chunks, queue) = mpsc::channel(QUEUE);
            let (done, written) = oneshot::channel();
            std::thread::spawn(move || write_all(fd, queue, done));
            Writer { chunks, written }
        });
        writer.chunks.send(self.page.add(owner, tag, text)).await.is_ok()
    }
}

/// The writer's thread: ends when its queue does, or when nobody reads any more.
fn write_all(fd: BorrowedFd<'_>, mut queue: mpsc::Receiver<Vec<u8>>, done: oneshot::Sender<()>) {
    while let Some(chunk) = queue.blocking_recv() {
        let mut rest = &chunk[..];
        while !rest.is_empty() {
            match rustix::io::write(fd, rest) {
                Ok(nbytes) => rest = &rest[nbytes..],
                Err(Errno::INTR) => {}
                // Somebody else has made the shared stream non-blocking.
                Err(Errno::AGAIN) => {
                    let _ = rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None);
                }
                Err(_) => return,
            }
        }
    }
    // Nobody may be waiting any more.
    let _ = done.send(());
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
