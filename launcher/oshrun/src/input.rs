//! Forwards oshrun's stdin to PE 0.
//!
//! PE 0 inherits a file, pipe or socket. oshrun itself reads a terminal, which would stop a PE that
//! reads, since PEs are in background process groups. If a daemon starts PE 0, oshrun reads its own
//! stdin, whatever it is, and sends it to the daemon in pieces.
#![allow(unsafe_code)]

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use tokio::io::AsyncWriteExt;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Semaphore, mpsc};

/// Maximum size of a piece of input.
const PIECE: usize = 32 * 1024;

/// Returns a pipe to which a task forwards the input from the terminal; `None` if stdin is no
/// terminal.
pub fn terminal_input() -> io::Result<Option<PipeReader>> {
    let stdin = io::stdin();
    if !rustix::termios::isatty(&stdin) {
        return Ok(None);
    }

    let (read, write) = io::pipe()?;
    // SAFETY: Stdin is always descriptor 0, which is open and is neither closed nor replaced here.
    let terminal = unsafe { AsyncFd::register_with_interest(stdin, Interest::READABLE) }?;
    tokio::spawn(forward_lines(
        terminal,
        Sender::from_owned_fd(write.into())?,
    ));
    Ok(Some(read))
}

/// The stdin of oshrun, in pieces to send to the daemon that has started PE 0.
#[derive(Debug)]
pub struct JobInput {
    /// `None` after the last piece.
    pieces: Option<mpsc::Receiver<Vec<u8>>>,
}

impl JobInput {
    /// Returns an input without pieces, for a job whose PE 0 is on this host.
    pub fn none() -> JobInput {
        JobInput { pieces: None }
    }

    /// Starts reading stdin.
    pub fn begin() -> io::Result<JobInput> {
        let source = match terminal_input()? {
            Some(pipe) => pipe.into(),
            None => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 0)?,
        };
        Ok(JobInput {
            pieces: Some(pieces(source)?),
        })
    }

    /// Waits for a permit of the window and for the next piece, and uses up the permit. An empty
    /// piece is the last one; after it, waits forever. Cancel safe.
    pub async fn next(&mut self, window: &Semaphore) -> Vec<u8> {
        let Some(pieces) = &mut self.pieces else {
            return std::future::pending().await;
        };
        let Ok(permit) = window.acquire().await else {
            return std::future::pending().await;
        };

        // If this future is dropped during the wait, the permit is given back.
        let piece = pieces.recv().await.unwrap_or_default();
        permit.forget();
        if piece.is_empty() {
            self.pieces = None;
        }
        piece
    }
}

/// Starts a thread that reads a file in pieces, and queues one piece at most. An empty piece is the
/// last one.
fn pieces(source: OwnedFd) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, pieces) = mpsc::channel(1);
    std::thread::Builder::new().spawn(move || {
        let mut bytes = vec![0; PIECE];
        loop {
            let nbytes = match rustix::io::read(&source, &mut bytes) {
                Ok(nbytes) => nbytes,
                Err(Errno::INTR) => continue,
                // Another process has made the shared stream non-blocking.
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&source, PollFlags::IN)];
                    // If a signal interrupts this, the loop comes here again.
                    let _ = rustix::event::poll(&mut fds, None);
                    continue;
                }
                // An error counts as the end of the input.
                Err(_) => 0,
            };

            if sender.blocking_send(bytes[..nbytes].to_vec()).is_err() || nbytes == 0 {
                return;
            }
        }
    })?;
    Ok(pieces)
}

/// Writes the pieces of input that oshrun has sent to the stdin of PE 0. Dropping this value ends
/// the input.
#[derive(Debug)]
pub struct InputPipe(mpsc::UnboundedSender<Vec<u8>>);

impl InputPipe {
    /// Creates the pipe. Returns it with the stdin of PE 0. Each piece is reported to `consumed`
    /// once it was written to the pipe or dropped.
    pub fn new(consumed: mpsc::UnboundedSender<()>) -> io::Result<(InputPipe, Stdio)> {
        let (read, write) = io::pipe()?;
        let mut pipe = Sender::from_owned_fd(write.into())?;
        let (queue, mut pieces) = mpsc::unbounded_channel::<Vec<u8>>();

        tokio::spawn(async move {
            let mut is_read = true;
            while let Some(piece) = pieces.recv().await {
                // If PE 0 has closed its stdin, pieces are dropped and reported, so that the sender
                // can finish.
                is_read = is_read && pipe.write_all(&piece).await.is_ok();
                if consumed.send(()).is_err() {
                    return;
                }
            }
        });
        Ok((InputPipe(queue), Stdio::from(read)))
    }

    /// Queues a piece. oshrun, which sends the pieces, limits their number in the queue.
    pub fn send(&self, bytes: Vec<u8>) {
        // This fails if the task has ended, as it does with the receiver of its reports.
        let _ = self.0.send(bytes);
    }
}

/// Forwards lines from the terminal, until the end of the input or of PE 0, or until the terminal
/// is closed. PE 0 then reads the end of its input.
async fn forward_lines(terminal: AsyncFd<io::Stdin>, mut pipe: Sender) {
    let mut bytes = [0; 4096];
    loop {
        let Ok(mut ready) = terminal.readable().await else {
            return;
        };
        // Clearing does not affect this readiness: another wait would return at once, forever.
        let is_closed = ready.ready().is_read_closed();
        ready.clear_ready();

        // The terminal is shared and must stay blocking, so it is read only if a line has arrived.
        // While oshrun is in the background, the line is for another process, and reading it would
        // stop oshrun.
        while is_in_foreground(&terminal) && has_line(&terminal) {
            match rustix::io::read(&terminal, &mut bytes) {
                Ok(0) => return,
                Ok(nbytes) => {
                    if pipe.write_all(&bytes[..nbytes]).await.is_err() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }

        if is_closed {
            return;
        }
    }
}

/// Returns true if the process group of oshrun may read the terminal.
fn is_in_foreground(terminal: impl AsFd) -> bool {
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Returns true if a read of the terminal would not block.
fn has_line(terminal: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(terminal, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec::default())) == Ok(1)
}
