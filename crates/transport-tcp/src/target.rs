//! The target's side of a connection: what a peer asks is carried out by this CPU and answered in order.
//!
//! It must never know other connections, nor who polls.
#![allow(unsafe_code)]

use crate::connection::End;
use crate::heartbeat::Heartbeat;
use crate::proto::{Piece, Reader, Reply, Request, Violation};
use crate::send_queue::SendQueue;
use crate::sys;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::{AmoRequest, LocalBuf, OldValue, Pe, RemoteAddr};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::atomic::{Ordering, fence};

/// Reads of one connection before others get their turn.
const READS: usize = 32;
/// A read of so few bytes that called for no answer is likely followed by another such.
const FEW: usize = 256;
/// Data that an answer copies, as long as few copies wait.
const COPY_UP_TO: usize = 4 << 10;
const MAX_COPIED: usize = 64 << 10;
/// Data that an answer always copies: the kernel may take memory by reference in parts, at different
/// times, and a word in it would be torn.
const COPY_ALWAYS: usize = 64;

/// What a turn did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Turn {
    /// Something was received.
    pub(crate) worked: bool,
    /// This PE's memory was changed.
    pub(crate) changed: bool,
}

/// A peer that uses this PE's memory.
pub(crate) struct Target {
    pub(crate) socket: TcpStream,
    /// The peer's number.
    pub(crate) pe: Pe,
    reader: Reader<Request>,
    served: Served,
    /// Few bytes came last and called for no answer. Taking such bytes out of the kernel makes it send an
    /// empty acknowledgement at once, which costs as much as a message: so they are only looked at, and
    /// taken when the next ones are awaited, while what they caused happens already.
    one_way: bool,
    /// PEs share CPUs: what they caused happens no sooner, and to look first is a system call more.
    oversubscribed: bool,
    /// Bytes that were looked at and served, and have to be taken.
    looked_at: usize,
    /// The kernel tells when there is room to send.
    pub(crate) told_of_room: bool,
    pub(crate) heartbeat: Heartbeat,
}

/// The part that requests work on.
pub(crate) struct Served {
    /// How many requests were carried out.
    done: u64,
    replies: SendQueue,
    changed: bool,
    bye: bool,
}

impl Target {
    pub(crate) fn new(socket: TcpStream, pe: Pe, oversubscribed: bool) -> Target {
        Target {
            socket,
            pe,
            reader: Reader::new(),
            served: Served::new(),
            one_way: false,
            oversubscribed,
            looked_at: 0,
            told_of_room: false,
            heartbeat: Heartbeat::default(),
        }
    }

    /// Whether answers wait for room.
    pub(crate) fn blocked(&self) -> bool {
        !self.served.replies.is_empty()
    }

    /// Serves what has come. While answers wait for room nothing is read, so that a peer that does not
    /// take them cannot make this PE hold more than one buffer's worth.
    pub(crate) fn serve(&mut self, segments: &Segments, buffer: &mut [u8]) -> Result<Turn, End> {
        let mut turn = Turn::default();
        for _ in 0..READS {
            if !self.served.replies.flush(&self.socket)? {
                break;
            }
            self.take_looked_at(buffer)?;
            // What came earlier is seen before what the kernel may write now.
            fence(Ordering::Release);
            let direct = match self.reader.body() {
                Some((Request::Put { dest, nbytes }, done)) => {
                    range(segments, dest, nbytes as usize)?.skip(done)
                }
                _ => LocalBuf::EMPTY,
            };
            let look = self.one_way && !self.oversubscribed && direct.nbytes == 0;
            let received = if look {
                sys::look(&self.socket, &mut buffer[..FEW])
            } else if direct.nbytes == 0 {
                sys::receive_own(&self.socket, buffer)
            } else {
                // SAFETY: the range was checked to be in a segment.
                unsafe { sys::receive(&self.socket, direct, buffer) }
            };
            let nbytes = match received {
                Ok(0) if self.served.bye => return Err(End::Bye),
                Ok(0) => return Err(End::closed()),
                Ok(nbytes) => nbytes,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
            };
            turn.worked = true;
            self.looked_at = if look { nbytes } else { 0 };
            let to_place = nbytes.min(direct.nbytes);
            if to_place > 0 {
                self.reader.advance(to_place);
                self.served.changed = true;
                self.served.done += u64::from(to_place == direct.nbytes);
            }
            let served = &mut self.served;
            self.reader.feed(&buffer[..nbytes - to_place], |piece| served.take(segments, piece))?;
            self.one_way = nbytes < FEW && self.served.replies.is_empty();
            let room = if look { FEW } else { direct.nbytes + buffer.len() };
            if nbytes < room && self.reader.body().is_none() {
                self.served.replies.flush(&self.socket)?;
                break;
            }
        }
        turn.changed = std::mem::take(&mut self.served.changed);
        Ok(turn)
    }

    /// Takes out of the kernel what was served already.
    fn take_looked_at(&mut self, buffer: &mut [u8]) -> Result<(), End> {
        while self.looked_at > 0 {
            match sys::receive_own(&self.socket, &mut buffer[..self.looked_at]) {
                Ok(0) => return Err(End::closed()),
                Ok(nbytes) => self.looked_at -= nbytes,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Says that this PE leaves.
    pub(crate) fn leave(&mut self) {
        self.served.replies.push(&Reply::Bye.encode());
        // Whoever cannot be told finds the connection closed.
        let _ = self.served.replies.flush(&self.socket);
    }
}

impl Served {
    pub(crate) fn new() -> Served {
        Served { done: 0, replies: SendQueue::new(), changed: false, bye: false }
    }

    /// Carries out what came, which was not checked so far.
    pub(crate) fn take(
        &mut self,
        segments: &Segments,
        piece: Piece<'_, Request>,
    ) -> Result<(), Violation> {
        match piece {
            Piece::Part { head: Request::Put { dest, nbytes }, done, bytes } => {
                let left = range(segments, dest, nbytes as usize)?.nbytes - done;
                let at = RemoteAddr { offset: dest.offset + done as u64, ..dest };
                expect(segments.write(at, bytes), at)?;
                self.changed = true;
                self.done += u64::from(bytes.len() == left);
                Ok(())
            }
            Piece::Part { .. } => Err(Violation::Unknown("request")),
            Piece::Whole(request, body) => self.carry_out(segments, request, body),
        }
    }

    fn carry_out(
        &mut self,
        segments: &Segments,
        request: Request,
        body: &[u8],
    ) -> Result<(), Violation> {
        if self.bye {
            return Err(Violation::Unknown("request after its farewell"));
        }
        self.done += 1;
        match request {
            Request::Put { dest, .. } => {
                expect(segments.write(dest, body), dest)?;
                self.changed = true;
            }
            Request::Get { source, nbytes } => {
                let from = range(segments, source, nbytes as usize)?;
                self.replies.push(&Reply::Data { seq: self.done, nbytes }.encode());
                let few = self.replies.own_bytes() < MAX_COPIED;
                if from.nbytes <= COPY_ALWAYS || from.nbytes <= COPY_UP_TO && few {
                    // SAFETY: checked to be in the segment.
                    unsafe { self.replies.push_copy(from) };
                } else {
                    // SAFETY: checked to be in the segment, which outlives the connection.
                    unsafe { self.replies.push_memory(from) };
                }
            }
            Request::Amo { dest, op, width, fetch } => {
                let (operand, condition) = operands(body);
                let old = OldValue::Ignored;
                let request = AmoRequest { dest, width, op, operand, condition, old };
                let old = segments.apply(&request).ok_or(Violation::Address(dest.offset))?;
                self.changed = true;
                if fetch {
                    self.replies.push(&Reply::Value(old).encode());
                }
            }
            Request::Sync => self.replies.push(&Reply::Ack { seq: self.done }.encode()),
            Request::Bye => self.bye = true,
        }
        Ok(())
    }
}

/// So many bytes of a segment.
fn range(segments: &Segments, at: RemoteAddr, nbytes: usize) -> Result<LocalBuf, Violation> {
    segments.bytes(at, nbytes).ok_or(Violation::Address(at.offset))
}

/// What a peer may use is within a segment.
fn expect(is_within: bool, at: RemoteAddr) -> Result<(), Violation> {
    if is_within { Ok(()) } else { Err(Violation::Address(at.offset)) }
}

/// Operand and condition.
fn operands(body: &[u8]) -> (u64, u64) {
    let mut words = [[0; 8]; 2];
    for (word, bytes) in words.iter_mut().zip(body.chunks_exact(8)) {
        word.copy_from_slice(bytes);
    }
    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::Segment;

    #[test]
    fn words_are_copied_however_many_answers_wait() {
        let mut words = vec![0u64; 512];
        let (segments, base) = (Segments::default(), words.as_mut_ptr().cast());
        let memory = LocalBuf { base, nbytes: 4096 };
        // SAFETY: the vector outlives the segments.
        assert_eq!(unsafe { segments.register(Segment::Heap, memory, ()) }, Ok(()));
        let get = |nbytes| Request::Get {
            source: RemoteAddr { segment: Segment::Heap, offset: 0 },
            nbytes,
        };
        let mut served = Served::new();
        for _ in 0..10_000 {
            served.take(&segments, Piece::Whole(get(8), &[])).expect("within the segment");
        }
        assert_eq!((served.replies.n_unsent(), served.replies.own_bytes()), (1, 10_000 * 24));
        served.take(&segments, Piece::Whole(get(4096), &[])).expect("within the segment");
        assert_eq!(served.replies.n_unsent(), 2, "a large answer goes by reference then");
    }
}
