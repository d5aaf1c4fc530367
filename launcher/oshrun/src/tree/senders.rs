//! Queues of messages up and down the tree. A sender does not know who reads at the other end.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use rushmem_bootstrap::proto;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{mpsc, oneshot};

use super::wire::{self, Down, Up};

/// Bytes of a stream that may be on their way up from a daemon.
pub const WINDOW: u32 = 256 * 1024;

/// Where messages to the parent are queued.
#[derive(Clone, Debug)]
pub struct UpSender(mpsc::UnboundedSender<Vec<u8>>);

impl UpSender {
    /// Greets, then writes what is queued, in a thread that ends when all senders are gone.
    pub fn to_stdout() -> io::Result<(UpSender, JoinHandle<()>)> {
        let (sender, mut queue) = mpsc::unbounded_channel::<Vec<u8>>();
        let writer = std::thread::Builder::new().spawn(move || {
            let mut stdout = io::stdout().lock();
            let mut write = |bytes: &[u8]| stdout.write_all(bytes).and_then(|()| stdout.flush());
            let mut is_read = write(wire::greeting().as_bytes()).is_ok();
            while is_read && let Some(frame) = queue.blocking_recv() {
                is_read = write(&frame).is_ok();
            }
        })?;
        Ok((UpSender(sender), writer))
    }

    /// Queues a message.
    pub fn send(&self, message: &Up) {
        // A parent that is gone shows itself by the end of the input.
        let _ = self.0.send(wire::encode_up(message));
    }
}

/// Where messages to a child are queued.
#[derive(Clone, Debug)]
pub struct DownSender(mpsc::UnboundedSender<Queued>);

/// What a queue of messages to a child holds.
#[derive(Debug)]
pub enum Queued {
    /// A message.
    Frame(Arc<[u8]>),
    /// Tells that all before it has left.
    Flushed(oneshot::Sender<()>),
}

impl DownSender {
    /// A queue, and its end that is written to the child.
    pub fn new() -> (DownSender, mpsc::UnboundedReceiver<Queued>) {
        let (sender, queue) = mpsc::unbounded_channel();
        (DownSender(sender), queue)
    }

    /// Queues a message. A child that is gone gets nothing.
    pub fn send(&self, message: &Down) {
        self.send_frame(proto::encode(message).into());
    }

    /// Queues a message that several children get.
    pub fn send_frame(&self, frame: Arc<[u8]>) {
        let _ = self.0.send(Queued::Frame(frame));
    }

    /// Waits until all that was queued has left.
    pub async fn flush(&self) {
        let (flushed, wait) = oneshot::channel();
        if self.0.send(Queued::Flushed(flushed)).is_ok() {
            // An error is the end of the writer, who has nothing left then.
            let _ = wait.await;
        }
    }
}

/// Writes what is queued for as long as somebody reads it.
pub async fn write(mut stdin: Sender, mut queue: mpsc::UnboundedReceiver<Queued>) {
    while let Some(item) = queue.recv().await {
        match item {
            Queued::Frame(frame) => {
                if stdin.write_all(&frame).await.is_err() {
                    return;
                }
            }
            Queued::Flushed(flushed) => drop(flushed.send(())),
        }
    }
}
