//! Connects PEs outside the transport under test: a socket from each to the parent, inherited as
//! standard input.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// A PE's end of the socket.
pub(crate) struct Side {
    link: Mutex<UnixStream>,
    n_pes: usize,
}

impl Side {
    pub(crate) fn inherited(n_pes: u32) -> Side {
        let link = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .expect("the inherited socket");
        Side {
            link: Mutex::new(UnixStream::from(link)),
            n_pes: n_pes as usize,
        }
    }

    /// Sends `own` to all PEs and returns the bytes of each.
    pub(crate) fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.announce(own);
        self.collect()
    }

    pub(crate) fn barrier(&self) {
        self.exchange(&[]);
    }

    /// Waits for all but the last PE, which is gone. The parent reads from the PEs in order, so it
    /// reaches the last one after all others, and then closes the sockets.
    pub(crate) fn barrier_without_the_last(&self) {
        self.announce(&[]);
        let answered = self.link().read(&mut [0]).expect("the parent's end");
        assert_eq!(answered, 0, "the last PE is there");
    }

    /// Calls `compute` until all PEs have reached this barrier. Calls the transport only if
    /// `compute` does.
    pub(crate) fn compute_until_barrier(&self, mut compute: impl FnMut()) {
        self.announce(&[]);

        let mut first = [0; 1];
        let set_nonblocking = |is_nonblocking| {
            let set = self.link().set_nonblocking(is_nonblocking);
            set.expect("the mode of a socket can change");
        };
        set_nonblocking(true);
        loop {
            // A statement of its own, so that the lock is free while `compute` runs.
            let read = self.link().read(&mut first);
            match read {
                Err(e) if e.kind() == ErrorKind::WouldBlock => compute(),
                Ok(1) => break,
                _ => panic!("the other PEs are gone"),
            }
        }
        set_nonblocking(false);

        // The message of each PE in a barrier is empty: only its length is sent, which is 0. The
        // first byte of all of them was read above.
        let mut rest = vec![0; LENGTH_BYTES * self.n_pes - 1];
        let read = self.link().read_exact(&mut rest);
        read.expect("the other PEs are there");
        assert!(
            first[0] == 0 && rest.iter().all(|&byte| byte == 0),
            "all are in a barrier"
        );
    }

    fn link(&self) -> MutexGuard<'_, UnixStream> {
        self.link.lock().expect("no PE panics here")
    }

    fn announce(&self, own: &[u8]) {
        write_message(&mut *self.link(), own).expect("the parent is there");
    }

    fn collect(&self) -> Vec<Vec<u8>> {
        let mut link = self.link();
        let mut messages = Vec::new();
        for _ in 0..self.n_pes {
            messages.push(read_message(&mut *link).expect("the other PEs are there"));
        }
        messages
    }
}

/// Serves exchanges until a PE closes its end or the deadline is over. Returns a text that says how
/// it ended.
pub(crate) fn serve(links: &[UnixStream], deadline: Instant) -> String {
    let mut meetings = 0;
    loop {
        // The messages of all PEs, in their order, which each of them gets.
        let mut all = Vec::new();
        for (pe, mut link) in links.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return format!("at meeting {meetings} without PE {pe}");
            }
            link.set_read_timeout(Some(left))
                .expect("a timeout that is not zero");
            match read_message(&mut link) {
                Ok(message) => write_message(&mut all, &message).expect("memory"),
                Err(_) => return format!("after {meetings} meetings PE {pe} came no more"),
            }
        }

        for mut link in links {
            // If a PE has died meanwhile, the next exchange finds that.
            let _ = link.write_all(&all);
        }
        meetings += 1;
    }
}

/// Bytes of the length that precedes a message.
const LENGTH_BYTES: usize = size_of::<u32>();

fn write_message(link: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let nbytes = u32::try_from(message.len()).expect("a short message");
    let mut frame = nbytes.to_le_bytes().to_vec();
    frame.extend_from_slice(message);
    link.write_all(&frame)
}

fn read_message(link: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut nbytes = [0; LENGTH_BYTES];
    link.read_exact(&mut nbytes)?;
    let mut message = vec![0; u32::from_le_bytes(nbytes) as usize];
    link.read_exact(&mut message)?;
    Ok(message)
}
