//! Forwards oshrun's stdin to PE 0.
//!
//! A file, pipe or socket is inherited. A terminal is read by oshrun, since the terminal would stop
//! a PE, which is in a background process group. If a daemon starts PE 0, or if the job may have
//! another try, oshrun reads its stdin and sends it in pieces.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use tokio::io::AsyncWriteExt;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Semaphore, mpsc};

/// Maximum size of a piece of input.
const PIECE: usize = 32 * 1024;

/// The stdin of PE 0 if this process starts it. A task forwards input from a terminal.
pub fn of_first_pe() -> io::Result<Stdio> {
    Ok(terminal_input()?.map_or_else(Stdio::inherit, Stdio::from))
}

/// A pipe with the input from the terminal, if stdin is one.
fn terminal_input() -> io::Result<Option<PipeReader>> {
    let stdin = io::stdin();
    if !rustix::termios::isatty(&stdin) {
        return Ok(None);
    }
    let (read, write) = io::pipe()?;
    // SAFETY: Stdin is always descriptor 0, which is open and is neither closed nor replaced here.
    let terminal = unsafe { AsyncFd::register_with_interest(stdin, Interest::READABLE) }?;
    tokio::spawn(forward_lines(terminal, Sender::from_owned_fd(write.into())?));
    Ok(Some(read))
}

/// oshrun's stdin in pieces, for all tries of a job.
#[derive(Debug, Default)]
pub struct JobInput {
    pieces: Option<mpsc::Receiver<Vec<u8>>>,
    /// Whether the try has not received the last piece.
    is_open: bool,
    /// Whether each try receives the whole input.
    is_file: bool,
    /// Whether a try has received a part of it.
    is_partly_read: bool,
}

impl JobInput {
    /// Begins the input of a try: from where it was when oshrun was started if stdin is a file,
    /// otherwise from where the input of the last try has ended.
    pub fn begin(&mut self) -> io::Result<()> {
        let file = reopened();
        self.is_file = file.is_some();
        if let Some(file) = file {
            self.pieces = Some(pieces(file.into())?);
        } else if self.pieces.is_none() {
            self.pieces = Some(pieces(match terminal_input()? {
                Some(pipe) => pipe.into(),
                None => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 0)?,
            })?);
        }
        self.is_open = true;
        Ok(())
    }

    /// Waits for room in the window, then for a piece; an empty piece is the last. Cancel safe.
    pub async fn next(&mut self, window: &Semaphore) -> Vec<u8> {
        let pieces = self.pieces.as_mut().filter(|_| self.is_open);
        let (Some(pieces), Ok(room)) = (pieces, window.acquire().await) else {
            return std::future::pending().await;
        };
        let piece = pieces.recv().await.unwrap_or_default();
        room.forget();
        self.is_open = !piece.is_empty();
        self.is_partly_read |= self.is_open;
        piece
    }

    /// Whether the next try receives only a rest.
    pub fn is_used_up(&self) -> bool {
        self.is_partly_read && !self.is_file
    }
}

/// A second descriptor of stdin, at the same place, if it is a file that can be opened again.
fn reopened() -> Option<File> {
    let stdin = rustix::stdio::stdin();
    if !FileType::from_raw_mode(fstat(stdin).ok()?.st_mode).is_file() {
        return None;
    }
    let file = File::open("/proc/self/fd/0").ok()?;
    seek(&file, SeekFrom::Start(seek(stdin, SeekFrom::Current(0)).ok()?)).ok()?;
    Some(file)
}

/// The pieces of a file; an empty piece is the last. A thread reads one piece ahead.
fn pieces(source: OwnedFd) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, pieces) = mpsc::channel(1);
    std::thread::Builder::new().spawn(move || {
        let mut bytes = vec![0; PIECE];
        loop {
            let nbytes = match rustix::io::read(&source, &mut bytes) {
                Err(rustix::io::Errno::INTR) => continue,
                // Another process may make the shared stream non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&source, PollFlags::IN)];
                    let _ = rustix::event::poll(&mut fds, None);
                    continue;
                }
                outcome => outcome.unwrap_or(0),
            };
            if sender.blocking_send(bytes[..nbytes].to_vec()).is_err() || nbytes == 0 {
                return;
            }
        }
    })?;
    Ok(pieces)
}

/// Writes pieces that the parent sends to the stdin of PE 0; dropping it ends the input.
#[derive(Debug)]
pub struct InputPipe(mpsc::UnboundedSender<Vec<u8>>);

impl InputPipe {
    /// Creates the pipe; also returns the stdin of the PE. Each consumed piece is reported.
    pub fn new(consumed: mpsc::UnboundedSender<()>) -> io::Result<(InputPipe, Stdio)> {
        let (read, write) = io::pipe()?;
        let mut pipe = Sender::from_owned_fd(write.into())?;
        let (queue, mut pieces) = mpsc::unbounded_channel::<Vec<u8>>();
        tokio::spawn(async move {
            let mut is_read = true;
            while let Some(piece) = pieces.recv().await {
                // Without a reader, input is consumed too, so that the sender can finish.
                is_read = is_read && pipe.write_all(&piece).await.is_ok();
                if consumed.send(()).is_err() {
                    return;
                }
            }
        });
        Ok((InputPipe(queue), Stdio::from(read)))
    }

    /// Queues a piece. The parent limits the number of queued pieces.
    pub fn send(&self, bytes: Vec<u8>) {
        let _ = self.0.send(bytes);
    }
}

/// Forwards lines from the terminal, until the end of the input or of PE 0.
async fn forward_lines(terminal: AsyncFd<io::Stdin>, mut pipe: Sender) {
    let mut bytes = [0; 4096];
    loop {
        let Ok(mut ready) = terminal.readable().await else {
            return;
        };
        // The terminal is shared and must stay blocking, so it is read only if a line is there. In
        // the background, the line is for another process, and reading it would stop oshrun.
        ready.clear_ready();
        while in_foreground(&terminal) && has_input(&terminal) {
            match rustix::io::read(&terminal, &mut bytes) {
                Ok(0) => return,
                Ok(nbytes) if pipe.write_all(&bytes[..nbytes]).await.is_err() => return,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

fn in_foreground(terminal: &AsyncFd<io::Stdin>) -> bool {
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

fn has_input(terminal: &AsyncFd<io::Stdin>) -> bool {
    use rustix::event::{Timespec, poll};
    let mut fds = [PollFd::new(terminal, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1)
}
