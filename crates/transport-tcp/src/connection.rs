//! The connection to a peer: requests of this PE and requests of the peer, on one socket.
//!
//! Replies go out between requests: where both wait, one frame of each in turn, so that an answer
//! does not wait for all the data that this PE sends. Whatever waits, everything that comes is
//! read, since two PEs that waited for each other to read would wait forever.
#![allow(unsafe_code)]

use crate::heartbeat::PeerHeartbeat;
use crate::low_water::LowWater;
use crate::proto::{Frame, Piece, Reader, ReplyFrame, RequestFrame};
use crate::receiving::ReceivingPe;
use crate::requests::Requests;
use crate::send_queue::UpTo;
use crate::settings::{DESCRIPTORS, Tuning};
use crate::socket::is_of_peer;
use crate::sys;
use crate::target::{Target, range};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::segments::Segments;
use rushmem_transport::{Fault, LocalAccess, LocalBuf, Pe};
use std::fmt;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::slice::from_raw_parts;
use std::sync::atomic::{Ordering, fence};

/// Bytes received at once behind a head or what goes straight to its destination. They are on the
/// stack, of which threads of the user may have little.
const BUFFER: usize = 16 << 10;
/// The protocol error for data received after the peer's last message.
const AFTER_FAREWELL: Violation = Violation::Unknown("request after its farewell");
/// Answers of this many bytes leave with the next poll. A request that this PE makes because of
/// what came with the peer's one leaves before: behind the answer it would wait for as long as that
/// takes, and of two PEs that exchange data by gets one would receive nothing meanwhile.
const LONG: u64 = 64 << 10;
/// Reads of one connection before others get their turn.
const READS: usize = 32;

/// The reason for which a connection ended.
#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    /// The peer said so.
    Bye,
    /// It broke; the text says how.
    Broken(String),
    /// This PE cannot use it; the text says why.
    Own(String),
    /// This PE cannot access memory that it sends or receives.
    Fault(Fault),
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectionEnd::Bye => "it has left the job",
            ConnectionEnd::Broken(why) | ConnectionEnd::Own(why) => why,
            ConnectionEnd::Fault(fault) => return fault.fmt(f),
        })
    }
}

impl From<Violation> for ConnectionEnd {
    fn from(violation: Violation) -> ConnectionEnd {
        ConnectionEnd::Broken(violation.to_string())
    }
}

/// Returns how a connection ends by an error of the kernel, which accessed this memory.
fn end(error: &io::Error, access: LocalAccess, memory: LocalBuf) -> ConnectionEnd {
    match error.raw_os_error() {
        Some(libc::EFAULT) => ConnectionEnd::Fault(Fault::new(access, memory)),
        _ if is_of_peer(error) => ConnectionEnd::Broken(error.to_string()),
        _ => {
            let why = DESCRIPTORS.explain(error);
            ConnectionEnd::Own(format!("the kernel refused to send or receive: {why}"))
        }
    }
}

/// A connection that is open.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    peer: Pe,
    pub(crate) requests: Requests,
    target: Target,
    reader: Reader,
    low_water: LowWater,
    /// Replies are sent next, or are being sent; else requests.
    replies_turn: bool,
    /// The peer has said that it leaves.
    bye: bool,
    /// Something came since the last call of [`took_in`](Connection::took_in).
    received: bool,
    /// The kernel had no room for what is left to send.
    blocked: bool,
    /// The kernel reports when there is room to send.
    pub(crate) watches_room: bool,
    /// Listed as having something to send.
    pub(crate) listed: bool,
    pub(crate) heartbeat: PeerHeartbeat,
}

impl Connection {
    /// Returns a new connection to a peer.
    pub(crate) fn new(socket: TcpStream, peer: Pe) -> Connection {
        Connection {
            socket,
            peer,
            requests: Requests::new(),
            target: Target::new(peer),
            reader: Reader::new(),
            low_water: LowWater::default(),
            replies_turn: false,
            bye: false,
            received: false,
            blocked: false,
            watches_room: false,
            listed: false,
            heartbeat: PeerHeartbeat::default(),
        }
    }

    /// Returns true if something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.requests.queue.is_empty() || !self.target.replies.is_empty()
    }

    /// Returns true if there is room for one more request, once what waits has left as far as the
    /// kernel takes it.
    pub(crate) fn make_room(&mut self, tuning: &Tuning) -> Result<bool, ConnectionEnd> {
        if !self.requests.has_room(tuning) {
            self.flush()?;
        }
        Ok(self.requests.has_room(tuning))
    }

    /// Returns true if what waits to be sent waits for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Returns true if something came since the last call.
    pub(crate) fn took_in(&mut self) -> bool {
        std::mem::take(&mut self.received)
    }

    /// Returns true if this PE's memory was changed since the last call.
    pub(crate) fn has_changed_memory(&mut self) -> bool {
        std::mem::take(&mut self.target.changed)
    }

    /// Sends what the kernel takes.
    pub(crate) fn flush(&mut self) -> Result<(), ConnectionEnd> {
        self.blocked = false;
        while self.has_unsent() {
            let (requests, replies) = (&mut self.requests.queue, &mut self.target.replies);
            let both = !requests.is_empty() && !replies.is_empty();
            let next = if self.replies_turn { replies } else { requests };
            let up_to = if both { UpTo::EndOfMemory } else { UpTo::Everything };
            match next.flush(&self.socket, up_to) {
                Ok(true) => {}
                Ok(false) => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(end(&error, LocalAccess::Read, next.next_memory())),
            }
            self.replies_turn = !self.replies_turn;
        }
        Ok(())
    }

    /// Takes what has come: carries out requests, and puts answers where they belong. Returns
    /// whether anything came.
    pub(crate) fn receive(&mut self, receiving: &ReceivingPe) -> Result<bool, ConnectionEnd> {
        let (mut small, mut large) = ([MaybeUninit::uninit(); BUFFER], None);
        let mut came = false;
        for _ in 0..READS {
            let whole = self.direct(&receiving.local.segments)?;
            let is_bounced = self.reader.body().is_some() && whole.nbytes == 0;
            let buffer = match is_bounced {
                true => &mut *large.get_or_insert_with(|| receiving.buffers.borrow()).bytes,
                false => &mut small,
            };
            match self.receive_once(receiving, whole, buffer)? {
                Received::Nothing => break,
                Received::All => {
                    came = true;
                    break;
                }
                Received::MoreToCome => came = true,
            }
        }
        self.received |= came;
        let rest = self.reader.body().map_or(0, |(head, done)| head.body() - done);
        let followed = self.low_water.follow(&self.socket, rest);
        followed.map_err(|error| end(&error, LocalAccess::Write, LocalBuf::EMPTY))?;
        Ok(came)
    }

    /// Returns the destination into which the kernel may receive the current body without a copy:
    /// of a segment, or valid until the request is answered that this is the answer to.
    fn direct(&self, segments: &Segments) -> Result<LocalBuf, Violation> {
        Ok(match self.reader.body() {
            Some((Frame::Request(_), _)) if self.bye => return Err(AFTER_FAREWELL),
            Some((Frame::Request(RequestFrame::Put { dest, nbytes, in_parts: true }), _)) => {
                range(segments, dest, nbytes as usize)?
            }
            Some((Frame::Reply(ReplyFrame::Data { seq, nbytes }), _)) => {
                self.requests.private_destination(seq, nbytes)?.unwrap_or(LocalBuf::EMPTY)
            }
            _ => LocalBuf::EMPTY,
        })
    }

    /// Receives to the rest of the [direct](Connection::direct) destination, then into a buffer.
    fn receive_once(
        &mut self,
        receiving: &ReceivingPe,
        whole: LocalBuf,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Received, ConnectionEnd> {
        let body = self.reader.body();
        let direct = match body {
            Some((_, done)) if whole.nbytes > 0 => whole.skip(done),
            _ => LocalBuf::EMPTY,
        };
        let received = if direct.nbytes == 0 {
            sys::receive_own(&self.socket, buffer)
        } else {
            // The data that came earlier are seen before these.
            fence(Ordering::Release);
            // SAFETY: of a segment, or a destination that is valid until its request is answered.
            unsafe { sys::receive(&self.socket, direct, buffer) }
        };
        let nbytes = match received {
            Ok(0) if self.bye => return Err(ConnectionEnd::Bye),
            Ok(0) => return Err(ConnectionEnd::Broken("its connection was closed".to_owned())),
            Ok(nbytes) => nbytes,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(Received::MoreToCome),
            // Closed by a peer to which something was on its way, it is reset.
            Err(_) if self.bye => return Err(ConnectionEnd::Bye),
            Err(e) => return Err(end(&e, LocalAccess::Write, whole)),
        };
        let to_place = nbytes.min(direct.nbytes);
        if let Some((head, _)) = body
            && to_place > 0
        {
            self.reader.advance(to_place);
            let is_last = to_place == direct.nbytes;
            match head {
                Frame::Request(_) => self.target.placed(is_last),
                Frame::Reply(reply) if is_last => self.requests.complete(reply)?,
                Frame::Reply(_) => {}
            }
        }
        // SAFETY: the kernel has written the range first, then this many bytes of the buffer.
        let bytes = unsafe { from_raw_parts(buffer.as_ptr().cast(), nbytes - to_place) };
        let answers_all = self.target.replies.is_empty();
        let (requests, target, bye) = (&mut self.requests, &mut self.target, &mut self.bye);
        let from = (receiving, self.peer);
        self.reader.feed(bytes, |Piece { head, done, bytes }| match head {
            Frame::Reply(reply) => requests.take(from, reply, done, bytes),
            Frame::Request(_) if *bye => Err(AFTER_FAREWELL),
            Frame::Request(RequestFrame::Bye) => {
                *bye = true;
                Ok(())
            }
            Frame::Request(request) => target.take(&receiving.local, request, done, bytes),
        })?;
        if answers_all && self.target.replies.unsent() >= LONG {
            self.replies_turn = false;
        } else if !self.target.replies.is_empty() {
            self.flush()?;
        }
        self.target.check_waiting()?;
        let is_all = nbytes < direct.nbytes + buffer.len() && self.reader.body().is_none();
        Ok(if is_all { Received::All } else { Received::MoreToCome })
    }

    /// Says that this PE leaves.
    pub(crate) fn leave(&mut self) {
        self.requests.queue.push(&RequestFrame::Bye.encode());
        // A peer that this does not reach finds the connection closed.
        let _ = self.flush();
    }
}

/// The result of a read.
enum Received {
    Nothing,
    /// Likely all that is there.
    All,
    MoreToCome,
}

#[cfg(test)]
mod tests;
