//! Decides which connections to a PE's socket come from PEs of its job.
//!
//! Every process may connect. Connections of other users are closed at once. Processes of this user
//! have a short time to prove that they know the job's key; many may do so at once, and none makes
//! another one wait.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::node_key::{NodeKey, PROOF};
use super::node_socket::{BACKLOG, NodeSocket};
use super::time_left::timespec;

/// Most connections that have proved nothing yet: one more takes the place of the oldest, which is
/// closed. A PE that loses its connection in this way connects again.
const MOST: usize = 64;

/// How long a process that connects may take to prove that it belongs to the job.
const PROVING: Duration = Duration::from_secs(10);

/// Bytes of a hello: the PE's number and its proof.
const HELLO: usize = 4 + PROOF;

/// What PE `from` sends to PE `to` first.
pub(super) fn hello(key: &NodeKey, from: u32, to: u32) -> [u8; HELLO] {
    let mut hello = [0; HELLO];
    hello[..4].copy_from_slice(&from.to_le_bytes());
    hello[4..].copy_from_slice(&key.proof(from, to));
    hello
}

/// A connection of this user's that has proved nothing yet.
#[derive(Debug)]
struct Unproven {
    stream: UnixStream,
    hello: [u8; HELLO],
    filled: usize,
    since: Instant,
}

/// What has become of it.
enum ProofState {
    Unproven(Unproven),
    Proven(u32, UnixStream),
    Over,
}

impl Unproven {
    fn new(stream: UnixStream) -> Unproven {
        Unproven { stream, hello: [0; HELLO], filled: 0, since: Instant::now() }
    }

    /// Reads what is there, never more than a hello and never waiting.
    fn advance(mut self, socket: &NodeSocket) -> ProofState {
        while self.filled < HELLO {
            match self.stream.read(&mut self.hello[self.filled..]) {
                Ok(0) => return ProofState::Over,
                Ok(nbytes) => self.filled += nbytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let is_late = self.since.elapsed() > PROVING;
                    return if is_late { ProofState::Over } else { ProofState::Unproven(self) };
                }
                Err(_) => return ProofState::Over,
            }
        }
        let (pe, proof) = self.hello.split_first_chunk::<4>().expect("a hello is longer");
        let pe = u32::from_le_bytes(*pe);
        let is_proven = socket.key().is_proof(pe, socket.pe(), proof);
        if is_proven && self.stream.set_nonblocking(false).is_ok() {
            ProofState::Proven(pe, self.stream)
        } else {
            ProofState::Over
        }
    }
}

/// The connections at the socket of one PE.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    socket: &'a NodeSocket,
    unproven: VecDeque<Unproven>,
}

impl<'a> Admission<'a> {
    pub(super) fn new(socket: &'a NodeSocket) -> Admission<'a> {
        Admission { socket, unproven: VecDeque::new() }
    }

    /// Waits for at most `wait` until something happens. The PEs that have proved to be of this
    /// job.
    ///
    /// # Errors
    /// When no connection can be accepted, for want of descriptors for example.
    pub(super) fn admit(&mut self, wait: Duration) -> io::Result<Vec<(u32, UnixStream)>> {
        let mut fds = vec![PollFd::new(self.socket, PollFlags::IN)];
        fds.extend(self.unproven.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)));
        match poll(&mut fds, Some(&timespec(wait))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut proven = Vec::new();
        for one in std::mem::take(&mut self.unproven) {
            self.look_at(one, &mut proven);
        }
        // A queue that others fill as fast as it empties must not keep this PE from the rest.
        for _ in 0..=BACKLOG {
            match self.socket.accept() {
                None => break,
                Some(Ok(None)) => {}
                Some(Ok(Some(stream))) => self.look_at(Unproven::new(stream), &mut proven),
                // Without descriptors the oldest makes room.
                Some(Err(error)) => {
                    self.unproven.pop_front().ok_or(error)?;
                }
            }
        }
        Ok(proven)
    }

    fn look_at(&mut self, one: Unproven, proven: &mut Vec<(u32, UnixStream)>) {
        match one.advance(self.socket) {
            ProofState::Proven(pe, stream) => proven.push((pe, stream)),
            ProofState::Over => {}
            ProofState::Unproven(one) => {
                if self.unproven.len() == MOST {
                    self.unproven.pop_front();
                }
                self.unproven.push_back(one);
            }
        }
    }
}
