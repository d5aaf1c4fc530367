//! Queues of messages to oshrun and to daemons.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use rushmem_bootstrap::proto;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{mpsc, oneshot};

use super::messages::{self, DaemonOrder, HostEvent};
use crate::report::failure::{cannot, complain};

/// Maximum number of bytes of one output stream in flight from a daemon to oshrun.
pub const WINDOW: u32 = 256 * 1024;

/// Queues messages of a daemon to oshrun.
#[derive(Clone, Debug)]
pub struct EventSender(mpsc::UnboundedSender<Vec<u8>>);

impl EventSender {
    /// Starts a thread that writes the greeting and then the queued messages to standard output. It
    /// ends when all senders are dropped. If it cannot write, the process exits immediately, and
    /// the guard ends the rest: oshrun would wait for what is missing.
    pub fn to_stdout() -> io::Result<(EventSender, JoinHandle<()>)> {
        let (sender, mut queue) = mpsc::unbounded_channel::<Vec<u8>>();
        let writer = std::thread::Builder::new().spawn(move || {
            let mut stdout = io::stdout().lock();
            let mut write = |bytes: &[u8]| stdout.write_all(bytes).and_then(|()| stdout.flush());
            let mut written = write(messages::greeting().as_bytes());
            while written.is_ok()
                && let Some(frame) = queue.blocking_recv()
            {
                written = write(&frame);
            }
            // If oshrun is gone, the end of the input shows it.
            if let Err(error) = written
                && error.kind() != io::ErrorKind::BrokenPipe
            {
                let failure = cannot("write to the oshrun that started it", &error);
                complain(&format!("oshrun: {}", failure.sentence));
                std::process::exit(1)
            }
        })?;
        Ok((EventSender(sender), writer))
    }

    /// Queues a message.
    pub fn send(&self, message: &HostEvent) {
        let _ = self.0.send(messages::encode_event(message));
    }
}

/// Queues messages to a daemon.
#[derive(Clone, Debug)]
pub struct OrderSender(mpsc::UnboundedSender<Queued>);

/// An entry of the queue of messages to a daemon.
#[derive(Debug)]
pub enum Queued {
    /// A message.
    Frame(Arc<[u8]>),
    /// Reports that everything before it has been sent.
    Flushed(oneshot::Sender<()>),
}

impl OrderSender {
    /// Returns the sender, and the queue for [`write()`].
    pub fn new() -> (OrderSender, mpsc::UnboundedReceiver<Queued>) {
        let (sender, queue) = mpsc::unbounded_channel();
        (OrderSender(sender), queue)
    }

    /// Queues a message. Messages to a daemon that is gone are dropped.
    pub fn send(&self, message: &DaemonOrder) {
        self.send_frame(proto::encode(message).into());
    }

    /// Queues a message for several daemons.
    pub fn send_frame(&self, frame: Arc<[u8]>) {
        let _ = self.0.send(Queued::Frame(frame));
    }

    /// Waits until everything that was queued has been sent.
    pub async fn flush(&self) {
        let (flushed, wait) = oneshot::channel();
        if self.0.send(Queued::Flushed(flushed)).is_ok() {
            // An error means that the writer has ended.
            let _ = wait.await;
        }
    }
}

/// Writes the queued messages until the daemon closes its input.
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
