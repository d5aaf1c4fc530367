//! Carries what PEs print to oshrun's own stdout and stderr, or from a daemon to its parent, line by line.
//!
//! A task per pipe collects whole lines (`carrier`), and one per child daemon and stream passes on what that one has
//! collected (`relay`). Who holds the [`Pen`] of a destination may write. A line beyond
//! [`LONGEST`](lines::LONGEST) leaves in pieces while its PE holds the pen, until the line ends or the PE is silent for
//! [`HOLD`]: others wait for at most that long, so no line without end can stop a job.
#![forbid(unsafe_code)]

mod carrier;
mod lines;
mod pen;
mod relay;
mod tags;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use self::carrier::{Carrier, carry};
use self::lines::{Incoming, Owner};
use self::pen::{Parent, Pen, Stream};
use self::relay::{Relay, relay};
pub use self::tags::Tags;
use crate::tree::wire::{Printed, Which};
use crate::tree::{DownSender, UpSender};

/// How long the owner of a long line keeps others waiting without adding to it.
const HOLD: Duration = Duration::from_secs(1);

/// The output of the PEs below this process.
#[derive(Debug)]
pub struct Output {
    stdout: Arc<Mutex<Pen>>,
    stderr: Arc<Mutex<Pen>>,
    tags: Arc<Tags>,
    prompts: bool,
    tasks: JoinSet<()>,
    ending: watch::Sender<bool>,
}

/// Where a child's output is put in.
pub type Inlet = [mpsc::UnboundedSender<Printed>; 2];

impl Output {
    /// Output to oshrun's own streams. If both are one file, terminal or pipe, their lines stay whole towards each other.
    pub fn to_streams(tags: Tags) -> Output {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let pen = |fd| Arc::new(Mutex::new(Pen::Stream(Stream::new(fd))));
        let stdout = pen(out);
        let stderr = if is_same(out, err) { stdout.clone() } else { pen(err) };
        let prompts = rustix::termios::isatty(rustix::stdio::stdin());
        Output::new(stdout, stderr, tags, prompts)
    }

    /// Output to the parent of a daemon, through these windows. `prompts`: oshrun has a terminal for PE 0.
    pub fn to_parent(up: &UpSender, windows: &[Arc<Semaphore>; 2], prompts: bool) -> Output {
        let pen = |window: &Arc<Semaphore>| {
            Arc::new(Mutex::new(Pen::Parent(Parent::new(window.clone(), up.clone()))))
        };
        Output::new(pen(&windows[0]), pen(&windows[1]), Tags::none(), prompts)
    }

    fn new(stdout: Arc<Mutex<Pen>>, stderr: Arc<Mutex<Pen>>, tags: Tags, prompts: bool) -> Output {
        let (tasks, ending) = (JoinSet::new(), watch::Sender::new(false));
        Output { stdout, stderr, tags: Arc::new(tags), prompts, tasks, ending }
    }

    /// Carries the output of PE `pe` from now on.
    pub fn carry(&mut self, pe: u32, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<()> {
        let pipes =
            [(stdout, &self.stdout, Owner::Stdout(pe)), (stderr, &self.stderr, Owner::Stderr(pe))];
        for (pipe, pen, owner) in pipes {
            self.tasks.spawn(carry(Carrier {
                pipe: Receiver::from_owned_fd(pipe)?,
                incoming: Incoming::default(),
                pen: pen.clone(),
                turn: None,
                owner,
                tag: self.tags.of(pe),
                prompts: self.prompts && pe == 0,
                ending: self.ending.subscribe(),
            }));
        }
        Ok(())
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
    /// returns when all of it is written.
    pub async fn finish(&mut self) {
        self.ending.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        for pen in [&self.stdout, &self.stderr] {
            let closed = pen.lock().await.close();
            if let Some(written) = closed {
                // An error is the writer's end as well.
                let _ = written.await;
            }
        }
    }
}

fn is_same(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino, a.st_rdev) == (b.st_dev, b.st_ino, b.st_rdev),
        _ => false,
    }
}
