//! oshrun's stdin for PE 0.
//!
//! A file, pipe or socket is simply inherited. A terminal cannot be: a PE is in a process group of its own, which the
//! terminal would stop, so oshrun reads it and passes on what was typed.

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Sender;

/// The stdin of PE 0. What oshrun has to pass on itself is passed on in the background.
pub fn of_first_pe() -> io::Result<Stdio> {
    let stdin = io::stdin();
    if !rustix::termios::isatty(&stdin) {
        return Ok(Stdio::inherit());
    }
    let (read, write) = io::pipe()?;
    // SAFETY: Stdin is always descriptor 0, which Rust's runtime keeps open and nothing here closes or replaces.
    let terminal = unsafe { AsyncFd::register_with_interest(stdin, Interest::READABLE) }?;
    tokio::spawn(pass_on(terminal, Sender::from_owned_fd(write.into())?));
    Ok(Stdio::from(read))
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
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(terminal, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1)
}
