//! The target's side of a connection: carry out what a peer asks, answer in order.
#![allow(unsafe_code)]

use crate::area::Areas;
use crate::proto::{Piece, Reader, Reply, Request, Violation};
use crate::queue::Queue;
use crate::sys;
use crate::vigil::Vigil;
use rushmem_transport::{LocalBuf, mem};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::atomic::{Ordering, fence};

/// Reads of one connection before others get their turn.
const READS: usize = 32;
/// A read of so few bytes that called for no answer is likely followed by another such.
const FEW: usize = 256;
/// Data that an answer copies, as long as few copies wait.
const COPY_UP_TO: usize = 4 << 10;
const MOST_COPIED: usize = 64 << 10;
/// Data that an answer always copies: the kernel may take memory by reference in parts, at different
/// times, and a word in it would be torn.
const COPY_ALWAYS: usize = 64;

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The peer said so.
    Bye,
    /// It broke; the text says how.
    Broken(String),
}

impl From<Violation> for End {
    fn from(violation: Violation) -> End {
        End::Broken(violation.to_string())
    }
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> End {
        End::Broken(error.to_string())
    }
}

/// What a turn did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Turn {
    /// Something was received.
    pub(crate) worked: bool,
    /// This PE's memory was changed.
    pub(crate) changed: bool,
}

/// A peer that uses this PE's memory.
pub(crate) struct Inbound {
    pub(crate) socket: TcpStream,
    /// The peer's number.
    pub(crate) pe: u32,
    reader: Reader<Request>,
    served: Served,
    /// Few bytes came last and called for no answer. Taking such bytes out of the kernel makes it send an
    /// empty acknowledgement at once, which costs as much as a message: so they are only looked at, and
    /// taken when the next ones are awaited, while what they caused is under way already.
    one_way: bool,
    /// Bytes that were looked at and served, and have to be taken.
    looked_at: usize,
    /// The kernel tells when there is room to send.
    pub(crate) told_of_room: bool,
    pub(crate) vigil: Vigil,
}

/// The part that requests work on.
pub(crate) struct Served {
    /// How many requests were carried out.
    done: u64,
    replies: Queue,
    changed: bool,
    bye: bool,
}

impl Inbound {
    pub(crate) fn new(socket: TcpStream, pe: u32) -> Inbound {
        Inbound {
            socket,
            pe,
            reader: Reader::new(),
            served: Served::new(),
            one_way: false,
            looked_at: 0,
            told_of_room: false,
            vigil: Vigil::default(),
        }
    }

    /// Whether answers wait for room.
    pub(crate) fn blocked(&self) -> bool {
        !self.served.replies.is_empty()
    }

    /// Serve what has come. While answers wait for room nothing is read, so that a peer that does not
    /// take them cannot make this PE hold more than one buffer's worth.
    pub(crate) fn serve(&mut self, areas: &Areas, buffer: &mut [u8]) -> Result<Turn, End> {
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
                    areas.range(dest, nbytes as usize)?.skip(done)
                }
                _ => LocalBuf::EMPTY,
            };
            let look = self.one_way && direct.nbytes == 0;
            let received = if look {
                sys::look(&self.socket, &mut buffer[..FEW])
            } else if direct.nbytes == 0 {
                sys::receive_own(&self.socket, buffer)
            } else {
                // SAFETY: the first range was checked to be in a segment, the second is a live buffer.
                unsafe {
                    sys::receive(
                        &self.socket,
                        direct,
                        LocalBuf { base: buffer.as_mut_ptr(), nbytes: buffer.len() },
                    )
                }
            };
            let nbytes = match received {
                Ok(0) if self.served.bye => return Err(End::Bye),
                Ok(0) => return Err(End::Broken("its connection was closed".to_owned())),
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
            self.reader.feed(&buffer[..nbytes - to_place], |piece| served.take(areas, piece))?;
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

    /// Take out of the kernel what was served already.
    fn take_looked_at(&mut self, buffer: &mut [u8]) -> Result<(), End> {
        while self.looked_at > 0 {
            match sys::receive_own(&self.socket, &mut buffer[..self.looked_at]) {
                Ok(0) => return Err(End::Broken("its connection was closed".to_owned())),
                Ok(nbytes) => self.looked_at -= nbytes,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Say that this PE leaves.
    pub(crate) fn leave(&mut self) {
        self.served.replies.push(&Reply::Bye.encode());
        // Whoever cannot be told finds the connection closed.
        let _ = self.served.replies.flush(&self.socket);
    }
}

impl Served {
    pub(crate) fn new() -> Served {
        Served { done: 0, replies: Queue::new(), changed: false, bye: false }
    }

    /// Carry out what came, which was not checked so far.
    pub(crate) fn take(
        &mut self,
        areas: &Areas,
        piece: Piece<'_, Request>,
    ) -> Result<(), Violation> {
        // What earlier requests wrote is seen before what this one writes.
        fence(Ordering::Release);
        match piece {
            Piece::Part { head: Request::Put { dest, nbytes }, done, bytes } => {
                let to = areas.range(dest, nbytes as usize)?.skip(done);
                // SAFETY: checked to be in the segment; a part is no longer than what is left.
                unsafe { mem::copy_bytes(to.base, bytes.as_ptr(), bytes.len()) };
                self.changed = true;
                self.done += u64::from(bytes.len() == to.nbytes);
                Ok(())
            }
            Piece::Part { .. } => Err(Violation::Unknown("request")),
            Piece::Whole(request, body) => self.carry_out(areas, request, body),
        }
    }

    fn carry_out(&mut self, areas: &Areas, request: Request, body: &[u8]) -> Result<(), Violation> {
        if self.bye {
            return Err(Violation::Unknown("request after its farewell"));
        }
        self.done += 1;
        match request {
            Request::Put { dest, .. } => {
                let to = areas.range(dest, body.len())?;
                // SAFETY: checked to be in the segment.
                unsafe { mem::copy_bytes(to.base, body.as_ptr(), to.nbytes) };
                self.changed = true;
            }
            Request::Get { source, nbytes } => {
                let from = areas.range(source, nbytes as usize)?;
                self.replies.push(&Reply::Data { seq: self.done, nbytes }.encode());
                let few = self.replies.own_bytes() < MOST_COPIED;
                if from.nbytes <= COPY_ALWAYS || from.nbytes <= COPY_UP_TO && few {
                    // SAFETY: checked to be in the segment.
                    unsafe { self.replies.push_copy(from) };
                } else {
                    // SAFETY: checked to be in the segment, which outlives the connection.
                    unsafe { self.replies.push_memory(from) };
                }
            }
            Request::Amo { dest, op, width, fetch } => {
                let at = areas.word(dest, width.nbytes())?;
                let (operand, condition) = operands(body);
                // SAFETY: checked to be in the segment and aligned.
                let old = unsafe { mem::apply(op, width, at, operand, condition) };
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
    use rushmem_transport::{RemoteAddr, Segment};

    #[test]
    fn words_are_copied_however_many_answers_wait() {
        let mut words = vec![0u64; 512];
        let (areas, base) = (Areas::default(), words.as_mut_ptr().cast());
        // SAFETY: the vector outlives the areas.
        assert!(unsafe { areas.open(Segment::Heap, base, 4096) });
        let get = |nbytes| Request::Get {
            source: RemoteAddr { segment: Segment::Heap, offset: 0 },
            nbytes,
        };
        let mut served = Served::new();
        for _ in 0..10_000 {
            served.take(&areas, Piece::Whole(get(8), &[])).expect("within the segment");
        }
        assert_eq!((served.replies.n_pieces(), served.replies.own_bytes()), (1, 10_000 * 24));
        served.take(&areas, Piece::Whole(get(4096), &[])).expect("within the segment");
        assert_eq!(served.replies.n_pieces(), 2, "a large answer goes by reference then");
    }
}
