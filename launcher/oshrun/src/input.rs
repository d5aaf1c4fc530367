//! oshrun's stdin for PE 0.
//!
//! A file, pipe or socket is simply inherited. A terminal cannot be: a PE is in a process group of its own, which the
//! terminal would stop, so oshrun reads it and passes on what was typed. For a PE 0 that a daemon holds, oshrun reads
//! whatever it is and sends it in pieces.
#![allow(unsafe_code)]

use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags};
use tokio::io::AsyncWriteExt;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;

/// Maximum size of a piece of input.
const PIECE: usize = 32 * 1024;

/// The stdin of PE 0 if this process starts it. Input that oshrun must forward itself is forwarded in the background.
pub fn of_first_pe() -> io::Result<Stdio> {
    Ok(typed()?.map_or_else(Stdio::inherit, Stdio::from))
}

/// The input from the terminal, if stdin is one.
fn typed() -> io::Result<Option<PipeReader>> {
    let stdin = io::stdin();
    if !rustix::termios::isatty(&stdin) {
        return Ok(None);
    }
    let (read, write) = io::pipe()?;
    // SAFETY: Stdin is always descriptor 0, which Rust's runtime keeps open and nothing here closes or replaces.
    let terminal = unsafe { AsyncFd::register_with_interest(stdin, Interest::READABLE) }?;
    tokio::spawn(pass_on(terminal, Sender::from_owned_fd(write.into())?));
    Ok(Some(read))
}

/// The pieces of oshrun's stdin, the last of them empty. A thread reads at most one piece ahead; it may never end.
pub fn pieces() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let source: OwnedFd = match typed()? {
        Some(pipe) => pipe.into(),
        None => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 0)?,
    };
    let (sender, pieces) = mpsc::channel(1);
    std::thread::Builder::new().spawn(move || {
        let mut bytes = vec![0; PIECE];
        loop {
            let nbytes = match rustix::io::read(&source, &mut bytes) {
                Err(rustix::io::Errno::INTR) => continue,
                // Another process has made the shared stream non-blocking.
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

/// The input of a PE 0 that this process holds for a parent; dropping it ends the input.
#[derive(Debug)]
pub struct Fed(mpsc::UnboundedSender<Vec<u8>>);

impl Fed {
    /// Where pieces are queued, and the stdin of the PE. Each piece that was taken is reported.
    pub fn new(taken: mpsc::UnboundedSender<()>) -> io::Result<(Fed, Stdio)> {
        let (read, write) = io::pipe()?;
        let mut pipe = Sender::from_owned_fd(write.into())?;
        let (fed, mut pieces) = mpsc::unbounded_channel::<Vec<u8>>();
        tokio::spawn(async move {
            let mut is_read = true;
            while let Some(piece) = pieces.recv().await {
                // Input that nobody reads is taken too, so that its sender can finish.
                is_read = is_read && pipe.write_all(&piece).await.is_ok();
                if taken.send(()).is_err() {
                    return;
                }
            }
        });
        Ok((Fed(fed), Stdio::from(read)))
    }

    /// Passes on a piece; the parent sends only a limited number ahead.
    pub fn pass(&self, bytes: Vec<u8>) {
        let _ = self.0.send(bytes);
    }
}

/// Passes on lines as they are typed, until the end of input or of PE 0.
async fn pass_on(terminal: AsyncFd<io::Stdin>, mut pipe: Sender) {
    let mut bytes = [0; 4096];
    loop {
        let Ok(mut ready) = terminal.readable().await else {
            return;
        };
        // The terminal is shared and stays blocking, so a line is read only once it is there; the next one is announced
        // anew. In the background the line is somebody else's, and reading it would stop oshrun.
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
