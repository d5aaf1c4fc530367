//! The tasks that forward output to a destination: one for each pipe of a PE on this host, and one
//! for each stream of a daemon.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::{read, retry_on_intr};
use tokio::io::Interest;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, watch};
use tokio::time::timeout;

use super::sink::{MAX_PAUSE, PeStream, PendingLines, Sink, Tags, TextSource, room_for};
use crate::daemons::connection::{DaemonOrder, OrderSender, Printed};

/// Time after which an unfinished line of PE 0 is printed on a terminal: it may be a prompt.
const PROMPT_DELAY: Duration = Duration::from_millis(100);

/// Maximum number of bytes that are read from a pipe after the end of all PEs: the default of
/// /proc/sys/fs/pipe-max-size.
const MAX_PIPE_SIZE: usize = 1024 * 1024;

/// A pipe of a PE, and its destination.
pub struct Forwarder {
    pub pipe: Receiver,
    pub incoming: PendingLines,
    pub sink: Arc<Mutex<Sink>>,
    /// The locked sink, while a line is written in pieces.
    pub held: Option<OwnedMutexGuard<Sink>>,
    pub owner: TextSource,
    /// The prefix of each line.
    pub tag: Vec<u8>,
    /// True if an unfinished line may be a prompt.
    pub prompts: bool,
    /// True once `Output::finish` was called, after the end of the PEs.
    pub ending: watch::Receiver<bool>,
}

/// Forwards a pipe until its end. After the end of all PEs, forwards what the pipe holds, and does
/// not wait for more. If the reader of the destination has closed it, closes the pipe, so that the
/// PE gets SIGPIPE.
pub async fn forward(mut forwarder: Forwarder) {
    let mut bytes = vec![0; 16 * 1024];
    while let Some(nbytes) = forwarder.read(&mut bytes).await {
        if !forwarder.push(&bytes[..nbytes]).await {
            return;
        }
    }

    // Reads the rest of the pipe, but not more: a leftover process may continue to write.
    let mut left = MAX_PIPE_SIZE;
    while left > 0
        && let Ok(nbytes @ 1..) = retry_on_intr(|| read(&forwarder.pipe, &mut bytes))
    {
        if !forwarder.push(&bytes[..nbytes]).await {
            return;
        }
        left = left.saturating_sub(nbytes);
    }

    if let Some(text) = forwarder.incoming.rest() {
        forwarder.write(text, false).await;
    }
}

impl Forwarder {
    /// Waits for bytes and returns their number; `None` at the end of the pipe, or when all PEs
    /// have ended. Meanwhile writes an unfinished line that may be a prompt, and unlocks the sink
    /// if the rest of a long line does not follow.
    async fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let mut is_closed = false;
        while !*self.ending.borrow() {
            match self.pipe.try_read(bytes) {
                Ok(0) => return None,
                Ok(nbytes) => return Some(nbytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // All writers closed the pipe, and then a process opened it again by /proc. That is
                // the end, too: the readiness stays, so every wait would return at once.
                Err(_) if is_closed => return None,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }

            let limit = if self.held.is_some() {
                Some(MAX_PAUSE)
            } else if self.prompts && self.incoming.is_waiting() {
                Some(PROMPT_DELAY)
            } else {
                None
            };

            let arrival = async {
                tokio::select! {
                    ready = self.pipe.ready(Interest::READABLE) => {
                        is_closed = ready.is_ok_and(|ready| ready.is_read_closed());
                    }
                    _ = self.ending.changed() => {}
                }
            };
            let is_silent = match limit {
                Some(limit) => timeout(limit, arrival).await.is_err(),
                None => {
                    arrival.await;
                    false
                }
            };
            if !is_silent {
                continue;
            }

            if self.held.is_some() {
                // Other PEs may write to the sink now.
                self.held = None;
            } else if let Some(prompt) = self.incoming.rest() {
                self.write(prompt, false).await;
            }
        }
        None
    }

    /// Adds bytes, and writes whole lines and pieces of long ones. Returns false if the reader has
    /// closed the destination.
    async fn push(&mut self, bytes: &[u8]) -> bool {
        self.incoming.push(bytes);
        while let Some(text) = self.incoming.take() {
            let continues = text.last() != Some(&b'\n');
            if !self.write(text, continues).await {
                return false;
            }
        }
        true
    }

    /// Writes text, and keeps the sink locked if the line continues. Returns false if the reader
    /// has closed the destination.
    async fn write(&mut self, text: Vec<u8>, continues: bool) -> bool {
        let mut sink = match self.held.take() {
            Some(sink) => sink,
            None => self.sink.clone().lock_owned().await,
        };
        let is_read = sink.write(self.owner, &self.tag, text, continues).await;
        if continues {
            self.held = Some(sink);
        }
        is_read
    }
}

/// A stream of a daemon, which sends whole lines or consecutive pieces of a long line.
pub struct Relay {
    pub arrivals: mpsc::UnboundedReceiver<Printed>,
    pub sink: Arc<Mutex<Sink>>,
    pub tags: Arc<Tags>,
    /// Reports to the daemon how much was written.
    pub daemon: OrderSender,
}

/// Forwards text until the queue is closed. If the reader of the destination has closed it, informs
/// the daemon and returns.
pub async fn relay(mut relay: Relay) {
    // The locked sink, while a line is written in pieces.
    let mut held: Option<OwnedMutexGuard<Sink>> = None;
    loop {
        let arrival = match held {
            None => relay.arrivals.recv().await,
            Some(_) => match timeout(MAX_PAUSE, relay.arrivals.recv()).await {
                Ok(arrival) => arrival,
                // The rest of the line does not follow, so other PEs may write to the sink now.
                Err(_) => {
                    held = None;
                    continue;
                }
            },
        };
        let Some(Printed {
            pe,
            stream,
            text,
            continues,
        }) = arrival
        else {
            return;
        };

        let mut sink = match held.take() {
            Some(sink) => sink,
            None => relay.sink.clone().lock_owned().await,
        };
        let nbytes = room_for(&text);
        let tag = relay.tags.tag(pe);
        let owner = Some(PeStream { pe, stream });
        if !sink.write(owner, &tag, text, continues).await {
            relay.daemon.send(&DaemonOrder::OutputClosed { stream });
            return;
        }

        relay
            .daemon
            .send(&DaemonOrder::OutputConsumed { stream, nbytes });
        if continues {
            held = Some(sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;
    use std::sync::mpsc::channel;

    use tokio::runtime::Builder;

    use crate::output::sink::OutputStream;
    use crate::output::writer::{OutputSink, Writer};

    /// The readiness of a pipe without writers stays, also when a process has opened it again.
    #[test]
    fn a_pipe_that_was_opened_again_does_not_keep_the_thread() {
        let (ended, end) = channel();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let (read, write) = io::pipe().expect("a pipe");
                let path = format!("/proc/self/fd/{}", read.as_raw_fd());
                let pipe = Receiver::from_owned_fd(read.into()).expect("a pipe");
                drop(write);
                pipe.readable().await.expect("it is closed");
                let _writer = OpenOptions::new().write(true).open(path).expect("a writer");

                let (losses, _) = mpsc::unbounded_channel();
                let (writer, _) = Writer::start(losses).expect("a thread");
                let unused = io::pipe().expect("a pipe").1;
                let destination = OutputSink::new("a pipe".to_string(), unused);
                let stream = OutputStream::new(Arc::new(destination), writer);
                let (_running, ending) = watch::channel(false);
                forward(Forwarder {
                    pipe,
                    incoming: PendingLines::default(),
                    sink: Arc::new(Mutex::new(Sink::Stream(stream))),
                    held: None,
                    owner: None,
                    tag: Vec::new(),
                    prompts: false,
                    ending,
                })
                .await;
            });
            ended.send(()).expect("the test waits");
        });
        end.recv_timeout(Duration::from_secs(60)).expect("it ends");
    }
}
