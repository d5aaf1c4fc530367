//! An established connection to a peer: requests of this PE and requests of the peer, on one
//! socket.
//!
//! If both requests and replies are queued, some of each are sent in turn, so that a reply does not
//! wait for all data that this PE sends. Data are received even if data to send are queued,
//! since two PEs that wait for each other to receive would deadlock.
#![allow(unsafe_code)]

use crate::answers::Answers;
use crate::low_water::LowWater;
use crate::proto::{Frame, Piece, Reader, ReplyFrame, RequestFrame};
use crate::receiving::ReceivingPe;
use crate::send_queue::{SendQueue, UpTo};
use crate::settings::{DESCRIPTORS, Tuning};
use crate::socket::is_of_peer;
use crate::sys;
use crate::target::{Target, range};
use rushmem_transport::engine::message::REQUEST;
use rushmem_transport::engine::{SentMessage, WriteSent};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::segments::Segments;
use rushmem_transport::{DestBuf, LocalBuf, Pe, RemoteAddr, SourceBuf, mem};
use std::fmt;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::slice::from_raw_parts;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// Bytes of the buffer for heads and short bodies; long bodies are received to their destination or
/// into a bounce buffer. It is on the stack, of which threads of the program may have little.
const BUFFER: usize = 16 << 10;
/// The protocol error for a request received after the peer's goodbye.
const AFTER_FAREWELL: Violation = Violation::Unknown("request after its farewell");
/// If a receive queues replies of at least this many bytes, and none were queued before, they are
/// sent only at the next poll, after a request that this PE may be about to issue. Otherwise, if
/// two PEs exchange data by gets, one would receive nothing until the other has received all.
const LONG: u64 = 64 << 10;
/// Maximum number of reads of one connection before other connections are polled, so that a peer
/// which sends without end does not keep the others waiting.
const READS: usize = 32;

/// The reason for which a connection ended.
#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    /// The peer has said goodbye.
    Bye,
    /// The connection broke; the text says how.
    Broken(String),
    /// This PE cannot use the connection; the text says why.
    Own(String),
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectionEnd::Bye => "it has left the job",
            ConnectionEnd::Broken(why) | ConnectionEnd::Own(why) => why,
        })
    }
}

impl From<Violation> for ConnectionEnd {
    fn from(violation: Violation) -> ConnectionEnd {
        ConnectionEnd::Broken(violation.to_string())
    }
}

/// Returns how a connection ends after an error of the kernel.
fn end(error: &io::Error) -> ConnectionEnd {
    let why = match error.raw_os_error() {
        Some(libc::EFAULT) => {
            "it cannot access the local memory of an operation: check the pointer and the count"
                .into()
        }
        _ if is_of_peer(error) => return ConnectionEnd::Broken(error.to_string()),
        _ => DESCRIPTORS.explain(error),
    };
    ConnectionEnd::Own(format!("the kernel refused to send or receive: {why}"))
}

/// A request that is queued or sent.
pub(crate) struct QueuedRequest {
    /// The number of gets on the connection up to this request.
    pub(crate) n_gets: u64,
    /// The request, or others, are not sent yet.
    pub(crate) is_unsent: bool,
    /// The position up to which the kernel must take the queue before the source of a put is free;
    /// `None` if it is free.
    pub(crate) reads_until: Option<u64>,
}

/// An established connection.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    peer: Pe,
    /// The requests of this PE that are to be sent.
    pub(crate) requests: SendQueue,
    pub(crate) answers: Answers,
    target: Target,
    reader: Reader,
    low_water: LowWater,
    /// Replies are sent next, or are being sent; otherwise requests.
    replies_turn: bool,
    /// The peer has said goodbye.
    has_said_bye: bool,
    /// Data have arrived since the last call of [`take_received`](Connection::take_received).
    has_received: bool,
    /// The kernel had no room for the queued data.
    is_blocked: bool,
    /// The kernel reports when there is room to send.
    pub(crate) watches_room: bool,
    /// The PE is in the list of those whose queued data a poll or the service thread sends.
    pub(crate) is_listed: bool,
    /// The thread that has queued the data is about to send them with its next operation.
    pub(crate) sends_next: bool,
    pub(crate) heartbeat: PeerHeartbeat,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream, peer: Pe) -> Connection {
        Connection {
            socket,
            peer,
            requests: SendQueue::new(),
            answers: Answers::new(),
            target: Target::new(peer),
            reader: Reader::new(),
            low_water: LowWater::default(),
            replies_turn: false,
            has_said_bye: false,
            has_received: false,
            is_blocked: false,
            watches_room: false,
            is_listed: false,
            sends_next: false,
            heartbeat: PeerHeartbeat::default(),
        }
    }

    /// Returns true if data are queued.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.requests.is_empty() || !self.target.replies.is_empty()
    }

    /// Queues a put, and sends what is queued when `sent` says. A short source is copied, a long
    /// one taken; the words of a long put may be torn if `in_parts`. Returns `None` if there is no
    /// room for the put.
    pub(crate) fn put(
        &mut self,
        tuning: &Tuning,
        dest: RemoteAddr,
        source: &mut SourceBuf,
        in_parts: bool,
        sent: WriteSent,
    ) -> Result<Option<QueuedRequest>, ConnectionEnd> {
        if !self.make_room(tuning)? {
            return Ok(None);
        }

        let nbytes = source.nbytes();
        let is_copied = nbytes <= tuning.copy_up_to;
        let head = RequestFrame::Put {
            dest,
            nbytes: nbytes as u32,
            in_parts: in_parts && !is_copied,
        };
        self.requests.push(&head.encode());
        if is_copied {
            self.requests.push_copy::<mem::VolatileLoads>(source);
        } else {
            self.requests.push_memory(std::mem::take(source));
        }

        let sends_now = match sent {
            WriteSent::Now => true,
            WriteSent::WithNext => {
                self.sends_next = true;
                false
            }
            // One system call for each put of 512 bytes to 4 KiB would divide the rate of a stream
            // of such puts by 5 to 13. Smaller ones are batched by the engine. If the engine
            // batched these, too, the rate would be divided by 1.3 (512 bytes) to 2.8 (4 KiB).
            WriteSent::WithOthers => !is_copied || self.is_full(tuning),
        };
        if sends_now {
            self.flush()?;
        }

        let mut queued = self.queued();
        if queued.is_unsent && !is_copied {
            queued.reads_until = Some(self.requests.appended());
        }
        Ok(Some(queued))
    }

    /// Queues a get, and sends what is queued if the get `is_awaited` or enough is queued. Its
    /// words may be torn if `in_parts`. Others may read `dest` meanwhile if it `is_shared`. Returns
    /// `None` if there is no room for the get.
    pub(crate) fn get(
        &mut self,
        tuning: &Tuning,
        source: RemoteAddr,
        dest: &mut DestBuf,
        in_parts: bool,
        is_shared: bool,
        is_awaited: bool,
    ) -> Result<Option<QueuedRequest>, ConnectionEnd> {
        if !self.make_room(tuning)? {
            return Ok(None);
        }

        let head = RequestFrame::Get {
            source,
            nbytes: dest.nbytes() as u32,
            in_parts,
        };
        self.requests.push(&head.encode());
        self.answers.expect_data(std::mem::take(dest), is_shared);

        if is_awaited || self.is_full(tuning) {
            self.flush()?;
        }
        Ok(Some(self.queued()))
    }

    /// Queues a copy of a message. One with attached data of a call that does not wait is sent
    /// together with later operations, or at once if enough is queued. Others are sent at once.
    /// Returns `None` if there is no room for the message.
    pub(crate) fn message(
        &mut self,
        tuning: &Tuning,
        message: SentMessage<'_>,
    ) -> Result<Option<QueuedRequest>, ConnectionEnd> {
        if !self.make_room(tuning)? {
            return Ok(None);
        }

        let SentMessage {
            request,
            entries,
            attached,
            awaited,
        } = message;
        let nbytes = (REQUEST + entries.len() + attached.nbytes()) as u32;
        self.requests
            .push(&RequestFrame::Message { nbytes }.encode());
        self.requests.push(&request.encode());
        self.requests.push_all(entries);
        if attached.nbytes() > 0 {
            self.requests.push_copy::<mem::VolatileLoads>(attached);
        }
        self.answers.expect_reply(request);

        if awaited || attached.nbytes() == 0 || self.is_full(tuning) {
            self.flush()?;
        }
        Ok(Some(self.queued()))
    }

    /// Describes the last request. Its source, if it has one, is free.
    fn queued(&self) -> QueuedRequest {
        QueuedRequest {
            n_gets: self.answers.n_gets(),
            is_unsent: !self.requests.is_empty(),
            reads_until: None,
        }
    }

    /// Returns true if there is room for one more request. If there is none at first, sends what
    /// the kernel takes.
    fn make_room(&mut self, tuning: &Tuning) -> Result<bool, ConnectionEnd> {
        if !self.has_room(tuning) {
            self.flush()?;
        }
        Ok(self.has_room(tuning))
    }

    fn has_room(&self, tuning: &Tuning) -> bool {
        self.requests.own_bytes() < tuning.max_waiting_bytes
            && self.requests.n_unsent() < 2 * tuning.max_waiting_transfers
            && self.answers.have_room(tuning)
    }

    /// Returns true if enough bytes are queued to be sent at once.
    fn is_full(&self, tuning: &Tuning) -> bool {
        self.requests.own_bytes() >= tuning.send_at
    }

    /// Returns true if the kernel had no room for the queued data.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Returns true if data have been received since the last call.
    pub(crate) fn take_received(&mut self) -> bool {
        std::mem::take(&mut self.has_received)
    }

    /// Returns true if the peer has changed this PE's memory since the last call.
    pub(crate) fn take_changed_memory(&mut self) -> bool {
        std::mem::take(&mut self.target.has_changed_memory)
    }

    /// Sends as much queued data as the kernel takes.
    pub(crate) fn flush(&mut self) -> Result<(), ConnectionEnd> {
        self.is_blocked = false;
        self.sends_next = false;

        while self.has_unsent() {
            let requests = &mut self.requests;
            let replies = &mut self.target.replies;
            let both = !requests.is_empty() && !replies.is_empty();
            let next = if self.replies_turn { replies } else { requests };
            let up_to = if both {
                UpTo::EndOfMemory
            } else {
                UpTo::Everything
            };

            match next.flush(&self.socket, up_to) {
                Ok(true) => {}
                Ok(false) => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(end(&error)),
            }
            self.replies_turn = !self.replies_turn;
        }
        Ok(())
    }

    /// Receives what has arrived, by at most [`READS`] reads: carries out requests and delivers
    /// replies. Returns true if anything has arrived.
    pub(crate) fn receive(&mut self, receiving: &ReceivingPe) -> Result<bool, ConnectionEnd> {
        let mut small = [MaybeUninit::uninit(); BUFFER];
        let mut large = None;
        let mut has_arrived = false;

        for _ in 0..READS {
            let whole = self.direct(&receiving.local.segments)?;
            let is_bounced = self.reader.body().is_some() && whole.nbytes == 0;
            let buffer = if is_bounced {
                &mut *large
                    .get_or_insert_with(|| receiving.buffers.borrow())
                    .bytes
            } else {
                &mut small
            };

            match self.receive_once(receiving, whole, buffer)? {
                Received::Nothing => break,
                Received::All => {
                    has_arrived = true;
                    break;
                }
                Received::MoreToCome => has_arrived = true,
            }
        }

        self.has_received |= has_arrived;
        let rest = self
            .reader
            .body()
            .map_or(0, |(head, done)| head.body() - done);
        let followed = self.low_water.follow(&self.socket, rest);
        followed.map_err(|error| end(&error))?;
        Ok(has_arrived)
    }

    /// Returns the memory into which the kernel may receive the current body without a copy: a
    /// range of a segment, or the destination of a get, which is valid until the get is answered.
    /// Empty if there is none.
    fn direct(&self, segments: &Segments) -> Result<LocalBuf, Violation> {
        Ok(match self.reader.body() {
            Some((Frame::Request(_), _)) if self.has_said_bye => return Err(AFTER_FAREWELL),
            Some((
                Frame::Request(RequestFrame::Put {
                    dest,
                    nbytes,
                    in_parts: true,
                }),
                _,
            )) => range(segments, dest, nbytes as usize)?,
            Some((Frame::Reply(ReplyFrame::Data { nbytes }), _)) => self
                .answers
                .private_destination(nbytes)?
                .unwrap_or(LocalBuf::EMPTY),
            _ => LocalBuf::EMPTY,
        })
    }

    /// Receives once: into the rest of the [direct](Connection::direct) destination `whole`, if
    /// there is one, and then into the buffer.
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
            // Data that have arrived earlier become visible before these: the kernel's stores may
            // write a flag for which a thread waits with an acquire load.
            fence(Ordering::Release);
            // SAFETY: `direct` is in a segment, or in a destination that is valid until its request
            // is answered.
            unsafe { sys::receive(&self.socket, direct, buffer) }
        };

        let nbytes = match received {
            Ok(0) if self.has_said_bye => return Err(ConnectionEnd::Bye),
            Ok(0) => {
                return Err(ConnectionEnd::Broken(
                    "its connection was closed".to_owned(),
                ));
            }
            Ok(nbytes) => nbytes,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(Received::MoreToCome),
            // If the peer closes the connection before it has received all data that this PE sent,
            // the kernel reports a reset.
            Err(_) if self.has_said_bye => return Err(ConnectionEnd::Bye),
            Err(e) => return Err(end(&e)),
        };

        let to_place = nbytes.min(direct.nbytes);
        if let Some((head, _)) = body
            && to_place > 0
        {
            self.reader.advance(to_place);
            let is_last = to_place == direct.nbytes;
            match head {
                Frame::Request(_) => self.target.has_changed_memory = true,
                Frame::Reply(_) if is_last => self.answers.complete(),
                Frame::Reply(_) => {}
            }
        }

        // SAFETY: the kernel has written `nbytes` bytes, first those of `direct`, then the start of
        // `buffer`, which is borrowed as long as `bytes`.
        let bytes = unsafe { from_raw_parts(buffer.as_ptr().cast(), nbytes - to_place) };

        let answers_all = self.target.replies.is_empty();
        let answers = &mut self.answers;
        let target = &mut self.target;
        let bye = &mut self.has_said_bye;
        let peer = self.peer;
        self.reader
            .feed(bytes, |Piece { head, done, bytes }| match head {
                Frame::Reply(reply) => answers.take(receiving, peer, reply, done, bytes),
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
        Ok(if is_all {
            Received::All
        } else {
            Received::MoreToCome
        })
    }

    /// Says goodbye to the peer.
    pub(crate) fn leave(&mut self) {
        self.requests.push(&RequestFrame::Bye.encode());
        // If this fails, the peer does not receive the goodbye, and finds the connection closed.
        let _ = self.flush();
    }
}

/// The result of a read.
enum Received {
    Nothing,
    /// The kernel has probably no more data.
    All,
    MoreToCome,
}

/// Measures how long a host has been silent although the kernel awaits an answer of it. Holds the
/// time of the first of the latest samples that all found an answer missing; `None` if the last
/// sample found none missing.
///
/// The kernel reports when it last received data from the host. On a connection that was idle, this
/// may be long before an answer was expected. So silence counts from the first sample that found an
/// answer missing, at the earliest.
#[derive(Default)]
pub(crate) struct PeerHeartbeat(Option<Instant>);

impl PeerHeartbeat {
    /// Adds a sample: `silence` is the time since the kernel last received data from the host, or
    /// `None` if the kernel awaits no answer. Returns the time for which the host has been silent
    /// although the kernel awaits an answer.
    pub(crate) fn add_sample(&mut self, silence: Option<Duration>, now: Instant) -> Duration {
        let Some(silence) = silence else {
            self.0 = None;
            return Duration::ZERO;
        };
        let since = *self.0.get_or_insert(now);
        silence.min(now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests;
