//! The origin's side of a connection: requests of all this PE's endpoints to one peer, and the answers to them.
//!
//! It must never know when anybody waits, nor other connections.
#![allow(unsafe_code)]

use crate::connection::End;
use crate::heartbeat::Heartbeat;
use crate::proto::{AMO_BODY, Head, Ledger, Piece, Reader, Reply, Request, Violation, Want};
use crate::send_queue::SendQueue;
use crate::settings::Tuning;
use crate::sys;
use rushmem_transport::{AmoRequest, AmoWidth, LocalBuf, RemoteAddr};
use std::io::ErrorKind;
use std::net::TcpStream;

/// Where an answer goes. What it points to stays valid until it has come or the connection is closed.
#[derive(Clone, Copy)]
enum To {
    Memory(LocalBuf),
    Word(*mut u8, AmoWidth),
    Nobody,
}

// SAFETY: plain addresses; whoever issued the request vouches for the memory until it is answered.
unsafe impl Send for To {}

/// Bytes that are received at once where they do not go straight to their place.
const BUFFER: usize = 16 << 10;

/// A connection that is open.
pub(crate) struct Origin {
    pub(crate) socket: TcpStream,
    queue: SendQueue,
    ledger: Ledger<To>,
    reader: Reader<Reply>,
    buffer: Box<[u8]>,
    bye: bool,
    /// The kernel had no room for what is left to send.
    blocked: bool,
    /// The kernel tells when there is room to send.
    pub(crate) told_of_room: bool,
    /// Noted as having something to send.
    pub(crate) noted: bool,
    pub(crate) heartbeat: Heartbeat,
}

impl Origin {
    pub(crate) fn new(socket: TcpStream) -> Origin {
        Origin {
            socket,
            queue: SendQueue::new(),
            ledger: Ledger::new(),
            reader: Reader::new(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            bye: false,
            blocked: false,
            told_of_room: false,
            noted: false,
            heartbeat: Heartbeat::default(),
        }
    }

    /// Whether another request may be issued.
    pub(crate) fn has_room(&self, tuning: &Tuning) -> bool {
        self.queue.own_bytes() < tuning.max_waiting_bytes
            && self.queue.n_unsent() < 2 * tuning.max_waiting_transfers
            && self.ledger.due() < tuning.max_due
    }

    /// Whether so much waits that it should leave.
    pub(crate) fn is_full(&self, tuning: &Tuning) -> bool {
        self.queue.own_bytes() >= tuning.send_at
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether the peer owes something.
    pub(crate) fn waits(&self) -> bool {
        self.has_unsent() || self.ledger.due() > 0
    }

    /// Every request up to this number is done.
    pub(crate) fn acked(&self) -> u64 {
        self.ledger.acked()
    }

    /// Position of the stream up to which everything was appended, and up to which the kernel has it.
    pub(crate) fn positions(&self) -> (u64, u64) {
        (self.queue.appended(), self.queue.sent())
    }

    /// Appends a put; returns its number.
    ///
    /// # Safety
    /// The source is valid for reads: during the call when `copy`, else until it is sent.
    pub(crate) unsafe fn put(&mut self, dest: RemoteAddr, source: LocalBuf, copy: bool) -> u64 {
        self.queue.push(&Request::Put { dest, nbytes: source.nbytes as u32 }.encode());
        if copy {
            // SAFETY: valid by contract.
            unsafe { self.queue.push_copy(source) };
        } else {
            // SAFETY: valid by contract.
            unsafe { self.queue.push_memory(source) };
        }
        self.ledger.issue()
    }

    /// Appends a get; returns its number.
    ///
    /// # Safety
    /// `dest` is valid for writes until the request is answered or the connection is closed.
    pub(crate) unsafe fn get(&mut self, source: RemoteAddr, dest: LocalBuf) -> u64 {
        let nbytes = dest.nbytes as u32;
        self.queue.push(&Request::Get { source, nbytes }.encode());
        self.ledger.expect(Want::Data(nbytes), To::Memory(dest))
    }

    fn push_amo(&mut self, request: &AmoRequest, fetch: bool) {
        let AmoRequest { dest, width, op, operand, condition, .. } = *request;
        let mut body = [0; AMO_BODY];
        body[..8].copy_from_slice(&operand.to_le_bytes());
        body[8..].copy_from_slice(&condition.to_le_bytes());
        self.queue.push(&Request::Amo { dest, op, width, fetch }.encode());
        self.queue.push(&body);
    }

    /// Appends an AMO whose old value nobody asks for; returns its number.
    pub(crate) fn update(&mut self, request: &AmoRequest) -> u64 {
        self.push_amo(request, false);
        self.ledger.issue()
    }

    /// Appends an AMO whose old value goes `to` a word of width `write`; returns its number.
    ///
    /// # Safety
    /// `to` is valid for writes of such a word until the request is answered or the connection is closed.
    pub(crate) unsafe fn fetch(
        &mut self,
        request: &AmoRequest,
        to: *mut u8,
        write: AmoWidth,
    ) -> u64 {
        self.push_amo(request, true);
        self.ledger.expect(Want::Value, To::Word(to, write))
    }

    /// Sees to it that request `seq` will be acknowledged.
    pub(crate) fn ask_for_ack(&mut self, seq: u64) {
        if !self.ledger.will_ack(seq) {
            self.queue.push(&Request::Sync.encode());
            self.ledger.expect(Want::Ack, To::Nobody);
        }
    }

    /// Sends what the kernel takes.
    pub(crate) fn flush(&mut self) -> Result<(), End> {
        self.blocked = !self.queue.flush(&self.socket)?;
        Ok(())
    }

    /// Whether what waits to be sent waits for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Takes the answers that have come.
    pub(crate) fn receive(&mut self) -> Result<(), End> {
        loop {
            let direct = match self.reader.body() {
                Some((Reply::Data { seq, nbytes }, done)) => {
                    memory(self.ledger.data(seq, nbytes)?)?.skip(done)
                }
                _ => LocalBuf::EMPTY,
            };
            let received = if direct.nbytes == 0 {
                sys::receive_own(&self.socket, &mut self.buffer)
            } else {
                // SAFETY: the destination is valid until its request is answered.
                unsafe { sys::receive(&self.socket, direct, &mut self.buffer) }
            };
            let nbytes = match received {
                Ok(0) if self.bye => return Err(End::Bye),
                Ok(0) => return Err(End::closed()),
                Ok(nbytes) => nbytes,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
            };
            let to_place = nbytes.min(direct.nbytes);
            if to_place > 0 {
                let head = self.reader.body().map(|(head, _)| head);
                self.reader.advance(to_place);
                if let Some(head) = head
                    && to_place == direct.nbytes
                {
                    self.ledger.settle(head)?;
                }
            }
            let (ledger, bye) = (&mut self.ledger, &mut self.bye);
            self.reader
                .feed(&self.buffer[..nbytes - to_place], |piece| take(ledger, bye, piece))?;
            if nbytes < direct.nbytes + self.buffer.len() && self.reader.body().is_none() {
                return Ok(());
            }
        }
    }

    /// Says that this PE leaves.
    pub(crate) fn leave(&mut self) {
        self.queue.push(&Request::Bye.encode());
        // Whoever cannot be told finds the connection closed.
        let _ = self.queue.flush(&self.socket);
    }
}

fn memory(to: &To) -> Result<LocalBuf, Violation> {
    match *to {
        To::Memory(range) => Ok(range),
        To::Word(..) | To::Nobody => Err(Violation::Unasked),
    }
}

/// Puts an answer, or a part of one, where it belongs.
fn take(ledger: &mut Ledger<To>, bye: &mut bool, piece: Piece<'_, Reply>) -> Result<(), Violation> {
    match piece {
        Piece::Part { head: head @ Reply::Data { seq, nbytes }, done, bytes } => {
            store(memory(ledger.data(seq, nbytes)?)?.skip(done), bytes);
            if done + bytes.len() == head.body() {
                ledger.settle(head)?;
            }
        }
        Piece::Part { .. } => return Err(Violation::Unknown("reply")),
        Piece::Whole(Reply::Bye, _) => *bye = true,
        Piece::Whole(head, body) => match (head, ledger.settle(head)?) {
            (Reply::Data { .. }, To::Memory(range)) => store(range, body),
            (Reply::Value(value), To::Word(at, width)) => {
                // SAFETY: valid for a word of this width until now, by the contract of `amo`.
                unsafe { width.write(at, value) };
            }
            _ => {}
        },
    }
    Ok(())
}

/// Copies received bytes to the start of a destination that has as many or more.
fn store(to: LocalBuf, bytes: &[u8]) {
    assert!(bytes.len() <= to.nbytes, "an answer is as long as was asked");
    // SAFETY: within a destination that is valid until its request is answered.
    unsafe { rushmem_transport::mem::copy_bytes(to.base, bytes.as_ptr(), bytes.len()) };
}
