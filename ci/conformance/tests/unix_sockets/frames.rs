//! Frames with a length, a kind, a head and a body, over a stream.

use rushmem_transport::kit::violation::Violation;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

pub(super) const HELLO: u8 = 0;
pub(super) const WRITE: u8 = 1;
pub(super) const READ: u8 = 2;
pub(super) const REQUEST: u8 = 3;
pub(super) const BATCH: u8 = 4;
/// The end of a write or read, with the data of a read.
pub(super) const DONE: u8 = 5;
pub(super) const REPLIED: u8 = 6;

/// Bytes of the longest write or read, and of the longest body that a frame may have.
pub(super) const LONGEST: usize = 64 << 10;
const MAX_BODY: usize = 1 << 17;

/// A socket, what waits to be sent, and what has come.
pub(super) struct FrameStream {
    socket: UnixStream,
    /// A queue, since the answers to a long get are as long.
    unsent: VecDeque<u8>,
    come: Vec<u8>,
}

impl FrameStream {
    pub(super) fn new(socket: UnixStream) -> io::Result<FrameStream> {
        socket.set_nonblocking(true)?;
        Ok(FrameStream { socket, unsent: VecDeque::new(), come: Vec::new() })
    }

    pub(super) fn n_unsent(&self) -> usize {
        self.unsent.len()
    }

    pub(super) fn push(&mut self, kind: u8, head: &[u8], body: &[u8]) {
        let nbytes = (head.len() + body.len()) as u32;
        for part in [&nbytes.to_le_bytes()[..], &[kind], head, body] {
            self.unsent.extend(part);
        }
    }

    /// Sends and receives what the kernel takes and has. Returns whether anything has come. A peer
    /// that takes nothing any more may have sent its last frames before.
    pub(super) fn exchange(&mut self) -> io::Result<bool> {
        let (mut buffer, before) = ([0; 1 << 14], self.come.len());
        while !self.unsent.is_empty() {
            match self.socket.write(self.unsent.as_slices().0) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        match self.socket.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => self.come.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(self.come.len() > before)
    }

    /// Returns the next whole frame, by its kind.
    pub(super) fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, Violation> {
        let Some(&[a, b, c, d, kind]) = self.come.first_chunk() else { return Ok(None) };
        let nbytes = u32::from_le_bytes([a, b, c, d]) as usize;
        if nbytes > MAX_BODY {
            return Err(Violation::TooLong(nbytes as u64));
        }
        let is_whole = self.come.len() >= 5 + nbytes;
        if !is_whole {
            return Ok(None);
        }
        let rest = self.come.split_off(5 + nbytes);
        let mut frame = std::mem::replace(&mut self.come, rest);
        Ok(Some((kind, frame.split_off(5))))
    }
}
