//! Forwards one pipe of a PE to a destination.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::timeout;

use super::lines::{HOLD, Incoming, Owner};
use super::sink::Sink;

/// After this time an unfinished line of PE 0 is printed to a terminal: it may be a prompt.
const PROMPT: Duration = Duration::from_millis(100);

/// Maximum number of bytes that are read from a pipe after the end of all PEs: the kernel's default limit for users.
const LARGEST_PIPE: usize = 1024 * 1024;

/// One pipe of a PE and its destination.
pub struct Forwarder {
    pub pipe: Receiver,
    pub incoming: Incoming,
    pub sink: Arc<Mutex<Sink>>,
    /// Held while a line is written in pieces.
    pub turn: Option<OwnedMutexGuard<Sink>>,
    pub owner: Owner,
    pub tag: Vec<u8>,
    pub prompts: bool,
    pub ending: watch::Receiver<bool>,
}

/// Forwards a pipe until its end. When the destination has no reader any more, the pipe is closed, and the PE gets
/// SIGPIPE, as it would without oshrun.
pub async fn forward(mut forwarder: Forwarder) {
    let mut bytes = vec![0; 16 * 1024];
    while let Some(nbytes) = forwarder.read(&mut bytes).await {
        if !forwarder.pass(&bytes[..nbytes]).await {
            return;
        }
    }
    // Reads what the event loop has not seen yet, but not what a leftover process continues to write.
    let mut left = LARGEST_PIPE;
    while left > 0
        && let Ok(nbytes @ 1..) = rustix::io::read(&forwarder.pipe, &mut bytes)
    {
        if !forwarder.pass(&bytes[..nbytes]).await {
            return;
        }
        left = left.saturating_sub(nbytes);
    }
    if let Some(text) = forwarder.incoming.rest() {
        forwarder.write(text, false).await;
    }
}

impl Forwarder {
    /// The next bytes; `None` at the end of the pipe or of the job.
    async fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
        while !*self.ending.borrow() {
            match self.pipe.try_read(bytes) {
                Ok(0) => return None,
                Ok(nbytes) => return Some(nbytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
            let asks = self.prompts && self.incoming.is_waiting();
            let silence = if self.turn.is_some() { Some(HOLD) } else { asks.then_some(PROMPT) };
            let arrival = async {
                tokio::select! {
                    _ = self.pipe.readable() => {}
                    _ = self.ending.changed() => {}
                }
            };
            let silent = match silence {
                Some(silence) => timeout(silence, arrival).await.is_err(),
                None => {
                    arrival.await;
                    false
                }
            };
            if silent
                && self.turn.take().is_none()
                && let Some(question) = self.incoming.rest()
            {
                self.write(question, false).await;
            }
        }
        None
    }

    /// Takes the bytes that were read and writes whole lines. Returns whether the destination still has a reader.
    async fn pass(&mut self, bytes: &[u8]) -> bool {
        self.incoming.push(bytes);
        while let Some(text) = self.incoming.take() {
            let within_line = text.last() != Some(&b'\n');
            if !self.write(text, within_line).await {
                return false;
            }
        }
        true
    }

    /// Writes text, and keeps the sink if it ends within a line that continues.
    async fn write(&mut self, text: Vec<u8>, holds: bool) -> bool {
        let mut sink = match self.turn.take() {
            Some(sink) => sink,
            None => self.sink.clone().lock_owned().await,
        };
        let read = sink.write(self.owner, &self.tag, text, holds).await;
        self.turn = holds.then_some(sink);
        read
    }
}
