//! Forwards the output of PEs line by line: to oshrun's stdout and stderr, to files, or from a
//! daemon to oshrun.
//!
//! A task for each pipe of a PE collects whole lines, and a task for each daemon and stream
//! forwards the lines that the daemon has collected (`forward`). To write, a task locks the
//! [`Sink`] of the destination. A line longer than [`MAX_LINE`](sink::MAX_LINE) is written in
//! pieces under one lock, until the line ends or the PE prints nothing for [`sink::MAX_PAUSE`], so
//! that a line without end cannot block a job. Threads write to the destinations (`writer`).
//!
//! If the reader of a destination closes it, PEs that write more to it get SIGPIPE, as they would
//! without oshrun. If output is lost for another reason, such as a full file system, the job fails.

mod forward;
mod sink;
mod writer;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rushmem_explain::wording::wrapped;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use self::forward::{Forwarder, Relay, forward, relay};
pub use self::sink::Tags;
use self::sink::{OutputStream, ParentSink, PeStream, PendingLines, Sink};
pub use self::writer::Files;
use self::writer::{OutputSink, Writer};
use crate::daemons::connection::{EventSender, OrderSender, Printed, StdStream};

/// The output of the PEs of this host and, in oshrun, of those of other hosts.
#[derive(Debug)]
pub struct Output {
    stdout: Arc<Mutex<Sink>>,
    stderr: Arc<Mutex<Sink>>,
    /// Writes the output files of PEs; started with the first file.
    files: Option<Writer>,
    tags: Arc<Tags>,
    /// True if PE 0 may print prompts on oshrun's terminal.
    prompts: bool,
    tasks: JoinSet<()>,
    /// True once [`Output::finish`] was called.
    ending: watch::Sender<bool>,
    /// For each writer thread, a receiver that resolves when the thread has ended.
    writer_ends: Vec<oneshot::Receiver<()>>,
    loss_sender: mpsc::UnboundedSender<String>,
    losses: mpsc::UnboundedReceiver<String>,
}

/// Queues for the output of another host, one for each stream.
pub type RelayQueues = [mpsc::UnboundedSender<Printed>; 2];

impl Output {
    /// Creates the output of oshrun, to its own streams. If both are the same file, they share a
    /// sink, so that lines are not mixed.
    pub fn to_streams(tags: Tags) -> io::Result<Output> {
        let (loss_sender, losses) = mpsc::unbounded_channel();
        let mut writer_ends = Vec::new();
        let mut sink = |name: &str, fd| -> io::Result<Arc<Mutex<Sink>>> {
            let (writer, end) = Writer::start(loss_sender.clone())?;
            writer_ends.push(end);
            let destination = OutputSink::new(name.to_string(), fd);
            let stream = OutputStream::new(Arc::new(destination), writer);
            Ok(Arc::new(Mutex::new(Sink::Stream(stream))))
        };

        let out = rustix::stdio::stdout();
        let err = rustix::stdio::stderr();
        let stdout = sink("standard output", out)?;
        let stderr = if is_same(out, err) {
            stdout.clone()
        } else {
            sink("standard error", err)?
        };

        Ok(Output {
            stdout,
            stderr,
            files: None,
            tags: Arc::new(tags),
            prompts: rustix::termios::isatty(rustix::stdio::stdin()),
            tasks: JoinSet::new(),
            ending: watch::Sender::new(false),
            writer_ends,
            loss_sender,
            losses,
        })
    }

    /// Creates the output of a daemon, to oshrun. `windows` limit the bytes of each stream in
    /// flight. With `prompts`, PE 0 may print prompts on oshrun's terminal.
    pub fn to_parent(events: &EventSender, windows: &[Arc<Semaphore>; 2], prompts: bool) -> Output {
        let sink = |window: &Arc<Semaphore>| {
            let parent = ParentSink::new(window.clone(), events.clone());
            Arc::new(Mutex::new(Sink::Parent(parent)))
        };

        let [out, err] = windows;
        let (loss_sender, losses) = mpsc::unbounded_channel();
        Output {
            stdout: sink(out),
            stderr: sink(err),
            files: None,
            // oshrun adds the tags.
            tags: Arc::default(),
            prompts,
            tasks: JoinSet::new(),
            ending: watch::Sender::new(false),
            writer_ends: Vec::new(),
            loss_sender,
            losses,
        }
    }

    /// Starts forwarding the output of a PE: to its files if there are any, otherwise to the
    /// streams.
    pub fn forward(
        &mut self,
        pe: u32,
        pipes: [OwnedFd; 2],
        files: Option<&Files>,
    ) -> io::Result<()> {
        let sinks;
        let mut tag = Vec::new();
        let mut prompts = false;
        if let Some(files) = files {
            // Lines in files have no tags, and nobody answers a prompt there.
            sinks = self.file_sinks(pe, files)?;
        } else {
            sinks = [self.stdout.clone(), self.stderr.clone()];
            tag = self.tags.tag(pe);
            prompts = self.prompts && pe == 0;
        }

        let [out_pipe, err_pipe] = pipes;
        let [out_sink, err_sink] = sinks;
        for (pipe, sink, stream) in [
            (out_pipe, out_sink, StdStream::Out),
            (err_pipe, err_sink, StdStream::Err),
        ] {
            self.tasks.spawn(forward(Forwarder {
                pipe: Receiver::from_owned_fd(pipe)?,
                incoming: PendingLines::default(),
                sink,
                held: None,
                owner: Some(PeStream { pe, stream }),
                tag: tag.clone(),
                prompts,
                ending: self.ending.subscribe(),
            }));
        }
        Ok(())
    }

    /// Returns the sinks of the files of a PE. Starts their writer with the first ones.
    fn file_sinks(&mut self, pe: u32, files: &Files) -> io::Result<[Arc<Mutex<Sink>>; 2]> {
        let writer = match &self.files {
            Some(writer) => writer.clone(),
            None => {
                let (writer, end) = Writer::start(self.loss_sender.clone())?;
                self.writer_ends.push(end);
                self.files.insert(writer).clone()
            }
        };
        Ok(files.files(pe).map(|file| {
            let stream = OutputStream::new(file, writer.clone());
            Arc::new(Mutex::new(Sink::Stream(stream)))
        }))
    }

    /// Returns true if a PE has printed anything to oshrun's standard error.
    pub async fn has_pe_errors(&self) -> bool {
        self.stderr.lock().await.has_pe_errors()
    }

    /// Waits until output is lost for another reason than a closed reader. Returns the error
    /// message. Cancel safe.
    pub async fn next_loss(&mut self) -> String {
        match self.losses.recv().await {
            Some(sentence) => sentence,
            None => std::future::pending().await,
        }
    }

    /// Starts forwarding the output of a daemon, until the returned queues are dropped. Reports to
    /// the daemon how much was written.
    pub fn relay(&mut self, daemon: &OrderSender) -> RelayQueues {
        let out = self.relay_stream(daemon, self.stdout.clone());
        let err = self.relay_stream(daemon, self.stderr.clone());
        [out, err]
    }

    fn relay_stream(
        &mut self,
        daemon: &OrderSender,
        sink: Arc<Mutex<Sink>>,
    ) -> mpsc::UnboundedSender<Printed> {
        let (queue, arrivals) = mpsc::unbounded_channel();
        self.tasks.spawn(relay(Relay {
            arrivals,
            sink,
            tags: self.tags.clone(),
            daemon: daemon.clone(),
        }));
        queue
    }

    /// Prints a message of oshrun or of a PE on stderr. A message of one line is wrapped at the
    /// width of the terminal, if stderr is one. Returns before the message is printed.
    pub fn message(&mut self, text: &str) {
        let columns = match rustix::termios::tcgetwinsize(rustix::stdio::stderr()) {
            Ok(size) => size.ws_col.into(),
            Err(_) => 0,
        };
        // An explanation has several lines, and has been wrapped already.
        let text = if columns == 0 || text.contains('\n') {
            format!("{text}\n")
        } else {
            wrapped([text], columns) + "\n"
        };

        // A task waits for the sink, since the task of a PE may hold it until the reader of a long
        // line goes on.
        let sink = self.stderr.clone();
        self.tasks.spawn(async move {
            let mut sink = sink.lock().await;
            sink.write(None, b"", text.into_bytes(), false).await;
        });
    }

    /// Forwards the rest of the pipes after the end of all PEs, also of a pipe that a leftover
    /// process keeps open. Waits until everything is written. Returns an error message if output
    /// was lost, unless [`Output::next_loss`] has returned it.
    pub async fn finish(&mut self) -> Option<String> {
        self.ending.send_replace(true);
        while self.tasks.join_next().await.is_some() {}

        // The writers end when nothing can write to them any more.
        for sink in [&self.stdout, &self.stderr] {
            sink.lock().await.close();
        }
        self.files = None;

        for end in self.writer_ends.drain(..) {
            // Nothing is sent: the channel closes when the writer ends.
            let _ = end.await;
        }
        self.losses.try_recv().ok()
    }
}

fn is_same(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino, a.st_rdev) == (b.st_dev, b.st_ino, b.st_rdev),
        _ => false,
    }
}
