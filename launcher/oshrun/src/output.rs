//! Carries what PEs print to oshrun's own stdout and stderr, line by line.
//!
//! A task per pipe collects whole lines; one thread per destination writes them, so that a destination whose reader has
//! stopped holds up neither the job's end nor anything else. A line beyond [`LONGEST`](crate::lines::LONGEST) leaves in
//! pieces while its PE holds the destination, until the line ends or the PE is silent for [`HOLD`]: others wait for at
//! most that long, so no line without end can stop a job.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::lines::{Incoming, Owner, Page};

/// How long the owner of a long line keeps others waiting without adding to it.
const HOLD: Duration = Duration::from_secs(1);

/// After this time an unfinished line of PE 0 is shown at a terminal: it may be a question.
const PROMPT: Duration = Duration::from_millis(100);

/// Most bytes a pipe can hold that are read after the end of all PEs (the kernel's default limit for users).
const LARGEST_PIPE: usize = 1024 * 1024;

/// Chunks that wait for a destination before its PEs have to.
const QUEUE: usize = 8;

/// The output of a job.
#[derive(Debug)]
pub struct Output {
    stdout: Arc<Mutex<Pen>>,
    stderr: Arc<Mutex<Pen>>,
    tagged: bool,
    tasks: JoinSet<()>,
    ending: watch::Sender<bool>,
}

impl Output {
    /// Output to oshrun's own streams. If both are one file, terminal or pipe, their lines stay whole towards each other.
    pub fn new(tagged: bool) -> Output {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let stdout = Arc::new(Mutex::new(Pen::new(out)));
        let stderr =
            if is_same(out, err) { stdout.clone() } else { Arc::new(Mutex::new(Pen::new(err))) };
        Output { stdout, stderr, tagged, tasks: JoinSet::new(), ending: watch::Sender::new(false) }
    }

    /// Carries the output of PE `pe` from now on.
    pub fn carry(&mut self, pe: u32, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<()> {
        let terminal = rustix::termios::isatty(rustix::stdio::stdin());
        let pipes =
            [(stdout, &self.stdout, Owner::Stdout(pe)), (stderr, &self.stderr, Owner::Stderr(pe))];
        for (pipe, pen, owner) in pipes {
            self.tasks.spawn(carry(Carrier {
                pipe: Receiver::from_owned_fd(pipe)?,
                incoming: Incoming::default(),
                pen: pen.clone(),
                turn: None,
                owner,
                tag: if self.tagged { format!("[{pe}] ").into_bytes() } else { Vec::new() },
                prompts: terminal && pe == 0,
                ending: self.ending.subscribe(),
            }));
        }
        Ok(())
    }

    /// Prints a message of oshrun, or one that a PE asked it to print, on stderr.
    pub fn message(&mut self, text: &str) {
        let (pen, text) = (self.stderr.clone(), format!("{text}\n").into_bytes());
        self.tasks.spawn(async move {
            pen.lock().await.write(Owner::Launcher, b"", text).await;
        });
    }

    /// After the end of all PEs: passes on what is left in the pipes, also of those that a stray process keeps open, and
    /// returns when all of it is written.
    pub async fn finish(mut self) {
        self.ending.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        for pen in [self.stdout, self.stderr] {
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

/// The right to write to one destination.
#[derive(Debug)]
struct Pen {
    page: Page,
    fd: BorrowedFd<'static>,
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    chunks: mpsc::Sender<Vec<u8>>,
    written: oneshot::Receiver<()>,
}

impl Pen {
    fn new(fd: BorrowedFd<'static>) -> Pen {
        Pen { page: Page::default(), fd, writer: None }
    }

    /// Adds text. Returns whether anybody can still read it.
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

    /// Ends the writer after what it has. The receiver resolves when all is written.
    fn close(&mut self) -> Option<oneshot::Receiver<()>> {
        self.writer.take().map(|writer| writer.written)
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

/// One pipe of a PE on its way to a destination.
struct Carrier {
    pipe: Receiver,
    incoming: Incoming,
    pen: Arc<Mutex<Pen>>,
    /// Held while a line leaves in pieces.
    turn: Option<OwnedMutexGuard<Pen>>,
    owner: Owner,
    tag: Vec<u8>,
    prompts: bool,
    ending: watch::Receiver<bool>,
}

/// Carries a pipe to its end. When the destination has no reader any more, the pipe closes, and the PE learns of it as it
/// would without oshrun, by SIGPIPE.
async fn carry(mut carrier: Carrier) {
    let mut bytes = vec![0; 16 * 1024];
    while let Some(nbytes) = carrier.read(&mut bytes).await {
        if !carrier.pass(&bytes[..nbytes]).await {
            return;
        }
    }
    // What the event loop has not seen yet, but no more of what a stray process may go on writing.
    let mut left = LARGEST_PIPE;
    while left > 0
        && let Ok(nbytes @ 1..) = rustix::io::read(&carrier.pipe, &mut bytes)
    {
        if !carrier.pass(&bytes[..nbytes]).await {
            return;
        }
        left = left.saturating_sub(nbytes);
    }
    if let Some(text) = carrier.incoming.rest() {
        carrier.write(text).await;
    }
}

impl Carrier {
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
            let patience = if self.turn.is_some() { Some(HOLD) } else { asks.then_some(PROMPT) };
            let arrival = async {
                tokio::select! {
                    _ = self.pipe.readable() => {}
                    _ = self.ending.changed() => {}
                }
            };
            let silent = match patience {
                Some(patience) => timeout(patience, arrival).await.is_err(),
                None => {
                    arrival.await;
                    false
                }
            };
            if silent
                && self.turn.take().is_none()
                && let Some(question) = self.incoming.rest()
            {
                self.write(question).await;
                self.turn = None;
            }
        }
        None
    }

    /// Takes what was read and writes what may leave. Returns whether anybody can still read it.
    async fn pass(&mut self, bytes: &[u8]) -> bool {
        self.incoming.push(bytes);
        while let Some(text) = self.incoming.take() {
            if !self.write(text).await {
                return false;
            }
        }
        true
    }

    /// Writes text, and keeps the turn if it ends within a line.
    async fn write(&mut self, text: Vec<u8>) -> bool {
        let mut pen = match self.turn.take() {
            Some(pen) => pen,
            None => self.pen.clone().lock_owned().await,
        };
        let within_line = text.last() != Some(&b'\n');
        let read = pen.write(self.owner, &self.tag, text).await;
        self.turn = within_line.then_some(pen);
        read
    }
}
