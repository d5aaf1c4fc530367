//! Carries what PEs print to oshrun's own stdout and stderr, to files, or from a daemon to its parent, line by line.
//!
//! A task per pipe collects whole lines (`carrier`), and one per child daemon and stream passes on what that one has
//! collected (`relay`). Who holds the [`Pen`] of a destination may write. A line beyond
//! [`LONGEST`](lines::LONGEST) leaves in pieces while its PE holds the pen, until the line ends or the PE is silent for
//! [`HOLD`]: others wait for at most that long, so no line without end can stop a job.
//!
//! Where the reader of a destination has left, its PEs learn of it by SIGPIPE, as they would without oshrun. Output
//! that is lost in any other way, as on a full file system, is told to the job.

mod carrier;
mod files;
mod lines;
mod pen;
mod relay;
mod tags;
mod writer;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use self::carrier::{Carrier, carry};
pub use self::files::Files;
use self::lines::{Incoming, Owner};
use self::pen::{Parent, Pen, Stream};
use self::relay::{Relay, relay};
pub use self::tags::Tags;
use self::writer::{Destination, Writer};
use crate::tree::wire::{Printed, Which};
use crate::tree::{DownSender, UpSender};

/// How long the owner of a long line keeps others waiting without adding to it.
const HOLD: Duration = Duration::from_secs(1);

/// The output of the PEs below this process.
#[derive(Debug)]
pub struct Output {
    stdout: Arc<Mutex<Pen>>,
    stderr: Arc<Mutex<Pen>>,
    /// Writes files of PEs; started with the first of them.
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

/// Where a child's output is put in.
pub type Inlet = [mpsc::UnboundedSender<Printed>; 2];

impl Output {
    /// Output to oshrun's own streams. If both are one file, terminal or pipe, their lines stay whole towards each other.
    ///
    /// # Errors
    /// When there can be no thread that writes.
    pub fn to_streams(tags: Tags) -> io::Result<Output> {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let (lose, losses) = mpsc::unbounded_channel();
        let mut written = Vec::new();
        let mut pen = |name: &str, fd| {
            let (writer, end) = Writer::start(lose.clone())?;
            written.push(end);
            let stream = Stream::new(Arc::new(Destination::new(name.to_string(), fd)), writer);
            Ok::<_, io::Error>(Arc::new(Mutex::new(Pen::Stream(stream))))
        };
        let stdout = pen("standard output", out)?;
        let stderr = if is_same(out, err) { stdout.clone() } else { pen("standard error", err)? };
        let prompts = rustix::termios::isatty(rustix::stdio::stdin());
        let output = Output::new(stdout, stderr, tags, prompts, (lose, losses));
        Ok(Output { written, ..output })
    }

    /// Output to the parent of a daemon, through these windows. `prompts`: oshrun has a terminal for PE 0.
    pub fn to_parent(up: &UpSender, windows: &[Arc<Semaphore>; 2], prompts: bool) -> Output {
        let pen = |window: &Arc<Semaphore>| {
            Arc::new(Mutex::new(Pen::Parent(Parent::new(window.clone(), up.clone()))))
        };
        let losses = mpsc::unbounded_channel();
        Output::new(pen(&windows[0]), pen(&windows[1]), Tags::none(), prompts, losses)
    }

    fn new(
        stdout: Arc<Mutex<Pen>>,
        stderr: Arc<Mutex<Pen>>,
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

    /// Carries the output of PE `pe` from now on, to its files if it has some.
    ///
    /// # Errors
    /// When the event loop has no room for a pipe, or there can be no thread that writes files.
    pub fn carry(&mut self, pe: u32, pipes: [OwnedFd; 2], files: Option<&Files>) -> io::Result<()> {
        let owners = [Owner::Stdout(pe), Owner::Stderr(pe)];
        let mut pens = [self.stdout.clone(), self.stderr.clone()];
        let (mut tag, mut prompts) = (self.tags.of(pe), self.prompts && pe == 0);
        if let Some(files) = files {
            let writer = self.writer_of_files()?;
            let pen = |file| Arc::new(Mutex::new(Pen::Stream(Stream::new(file, writer.clone()))));
            pens = files.of(pe).map(pen);
            (tag, prompts) = (Vec::new(), false);
        }
        for ((pipe, pen), owner) in pipes.into_iter().zip(pens).zip(owners) {
            self.tasks.spawn(carry(Carrier {
                pipe: Receiver::from_owned_fd(pipe)?,
                incoming: Incoming::default(),
                pen,
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

    /// Waits until output is lost otherwise than by a reader that has left; what could not be written, and why.
    pub async fn lost(&mut self) -> String {
        match self.losses.recv().await {
            Some(sentence) => sentence,
            None => std::future::pending().await,
        }
    }

    /// Passes on the output of a child daemon, who hears what was read, until the inlet is dropped.
    pub fn relay(&mut self, child: &DownSender) -> Inlet {
        [(Which::Out, self.stdout.clone()), (Which::Err, self.stderr.clone())].map(
            |(stream, pen)| {
                let (inlet, arrivals) = mpsc::unbounded_channel();
                let (tags, child) = (self.tags.clone(), child.clone());
                self.tasks.spawn(relay(Relay { arrivals, pen, stream, tags, child }));
                inlet
            },
        )
    }

    /// Prints a message of oshrun, or one that a PE asked it to print, on stderr.
    pub fn message(&mut self, text: &str) {
        let (pen, text) = (self.stderr.clone(), format!("{text}\n").into_bytes());
        self.tasks.spawn(async move {
            pen.lock().await.write(Owner::Launcher, b"", text, false).await;
        });
    }

    /// After the end of all PEs: passes on what is left in the pipes, also of those that a stray process keeps open, and
    /// returns when all of it is written: what could not be, and why, if anything.
    pub async fn finish(&mut self) -> Option<String> {
        self.ending.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        for pen in [&self.stdout, &self.stderr] {
            pen.lock().await.close();
        }
        self.files = None;
        for written in self.written.drain(..) {
            // Nothing is ever sent: the end of the writer is the end of the channel.
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
