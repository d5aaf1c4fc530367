//! Carries what PEs print to oshrun's own stdout and stderr, to files, or from a daemon to its parent, line by line.
//!
//! A task per pipe collects whole lines (`forwarder`), and a task per child daemon and stream passes on the lines that the
//! daemon has collected (`relay`). The holder of the [`Sink`] of a destination may write. A line longer than
//! [`LONGEST`](lines::LONGEST) is written in pieces while its PE holds the sink, until the line ends or the PE prints nothing
//! for [`lines::HOLD`]. Others wait for at most that long, so a line that never ends cannot stop a job.
//!
//! If the reader of a destination closes it, PEs get SIGPIPE, as they would without oshrun. If output is lost in any other
//! way, for example because a file system is full, the job is informed.

mod files;
mod forwarder;
mod lines;
mod relay;
mod sink;
mod tags;
mod writer;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

pub use self::files::Files;
use self::forwarder::{Forwarder, forward};
use self::lines::{Incoming, Owner};
use self::relay::{Relay, relay};
use self::sink::{Parent, Sink, Stream};
pub use self::tags::Tags;
use self::writer::{Destination, Writer};
use crate::tree::senders::{DownSender, UpSender};
use crate::tree::wire::{Printed, Which};

/// The output of the PEs below this process.
#[derive(Debug)]
pub struct Output {
    stdout: Arc<Mutex<Sink>>,
    stderr: Arc<Mutex<Sink>>,
    /// Writes the files of PEs; started with the first file.
    files: Option<Writer>,
    tags: Arc<Tags>,
    prompts: bool,
    tasks: JoinSet<()>,
    ending: watch::Sender<bool>,
    /// Each resolves when a writer has ended.
    written: Vec<oneshot::Receiver<()>>,
    lose: mpsc::UnboundedSender<String>,
    losses: mpsc::UnboundedReceiver<String>,
}

/// Where the output of a child enters.
pub type Inlet = [mpsc::UnboundedSender<Printed>; 2];

impl Output {
    /// Output to oshrun's own streams. If both are one file, terminal or pipe, their lines stay whole towards each other.
    ///
    /// # Errors
    /// When the writing thread cannot be started.
    pub fn to_streams(tags: Tags) -> io::Result<Output> {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let (lose, losses) = mpsc::unbounded_channel();
        let mut written = Vec::new();
        let mut sink = |name: &str, fd| {
            let (writer, end) = Writer::start(lose.clone())?;
            written.push(end);
            let stream = Stream::new(Arc::new(Destination::new(name.to_string(), fd)), writer);
            Ok::<_, io::Error>(Arc::new(Mutex::new(Sink::Stream(stream))))
        };
        let stdout = sink("standard output", out)?;
        let stderr = if is_same(out, err) { stdout.clone() } else { sink("standard error", err)? };
        let prompts = rustix::termios::isatty(rustix::stdio::stdin());
        let output = Output::new(stdout, stderr, tags, prompts, (lose, losses));
        Ok(Output { written, ..output })
    }

    /// Output to the parent of a daemon, through these windows. `prompts`: oshrun has a terminal for PE 0.
    pub fn to_parent(up: &UpSender, windows: &[Arc<Semaphore>; 2], prompts: bool) -> Output {
        let sink = |window: &Arc<Semaphore>| {
            Arc::new(Mutex::new(Sink::Parent(Parent::new(window.clone(), up.clone()))))
        };
        let losses = mpsc::unbounded_channel();
        Output::new(sink(&windows[0]), sink(&windows[1]), Tags::none(), prompts, losses)
    }

    fn new(
        stdout: Arc<Mutex<Sink>>,
        stderr: Arc<Mutex<Sink>>,
        tags: Tags,
        prompts: bool,
        (lose, losses): (mpsc::UnboundedSender<String>, mpsc::UnboundedReceiver<String>),
    ) -> Output {
        Output {
            stdout,
            stderr,
            files: None,
            tags: Arc::new(tags),
            prompts,
            tasks: JoinSet::new(),
            ending: watch::Sender::new(false),
            written: Vec::new(),
            lose,
            losses,
        }
    }

    /// Forwards the output of PE `pe` from now on, to its files if it has some.
    ///
    /// # Errors
    /// When the event loop has no room for a pipe, or the thread that writes files cannot be started.
    pub fn forward(
        &mut self,
        pe: u32,
        pipes: [OwnedFd; 2],
        files: Option<&Files>,
    ) -> io::Result<()> {
        let owners = [Owner::Stdout(pe), Owner::Stderr(pe)];
        let mut sinks = [self.stdout.clone(), self.stderr.clone()];
        let (mut tag, mut prompts) = (self.tags.of(pe), self.prompts && pe == 0);
        if let Some(files) = files {
            let writer = self.writer_of_files()?;
            let sink = |file| Arc::new(Mutex::new(Sink::Stream(Stream::new(file, writer.clone()))));
            sinks = files.of(pe).map(sink);
            (tag, prompts) = (Vec::new(), false);
        }
        for ((pipe, sink), owner) in pipes.into_iter().zip(sinks).zip(owners) {
            self.tasks.spawn(forward(Forwarder {
                pipe: Receiver::from_owned_fd(pipe)?,
                incoming: Incoming::default(),
                sink,
                turn: None,
                owner,
                tag: tag.clone(),
                prompts,
                ending: self.ending.subscribe(),
            }));
        }
        Ok(())
    }

    /// One thread writes all files.
    fn writer_of_files(&mut self) -> io::Result<Writer> {
        if let Some(writer) = &self.files {
            return Ok(writer.clone());
        }
        let (writer, end) = Writer::start(self.lose.clone())?;
        self.written.push(end);
        self.files = Some(writer.clone());
        Ok(writer)
    }

    /// Whether a PE has printed anything to oshrun's standard error.
    pub async fn has_complaint(&self) -> bool {
        self.stderr.lock().await.has_complaint()
    }

    /// Waits until output is lost for another reason than a closed reader; returns what could not be written, and why.
    pub async fn lost(&mut self) -> String {
        match self.losses.recv().await {
            Some(sentence) => sentence,
            None => std::future::pending().await,
        }
    }

    /// Forwards the output of a child daemon until the inlet is dropped, and tells the daemon what was read.
    pub fn relay(&mut self, child: &DownSender) -> Inlet {
        [(Which::Out, self.stdout.clone()), (Which::Err, self.stderr.clone())].map(
            |(stream, sink)| {
                let (inlet, arrivals) = mpsc::unbounded_channel();
                let (tags, child) = (self.tags.clone(), child.clone());
                self.tasks.spawn(relay(Relay { arrivals, sink, stream, tags, child }));
                inlet
            },
        )
    }

    /// Prints a message of oshrun, or one that a PE asked it to print, on stderr.
    pub fn message(&mut self, text: &str) {
        let (sink, text) = (self.stderr.clone(), format!("{text}\n").into_bytes());
        self.tasks.spawn(async move {
            sink.lock().await.write(Owner::Launcher, b"", text, false).await;
        });
    }

    /// After the end of all PEs: forwards what is left in the pipes, even in those that a leftover process keeps open.
    /// Returns when all of it is written, with what could not be written, and why, if anything.
    pub async fn finish(&mut self) -> Option<String> {
        self.ending.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        for sink in [&self.stdout, &self.stderr] {
            sink.lock().await.close();
        }
        self.files = None;
        for written in self.written.drain(..) {
            // Nothing is ever sent: the channel ends with the writer.
            let _ = written.await;
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
