//! Issues requests to one peer for all endpoints of this PE, and takes the answers.
#![allow(unsafe_code)]

use crate::proto::{AMO_BODY, ExpectedReply, Ledger, ReplyFrame, RequestFrame};
use crate::send_queue::SendQueue;
use crate::settings::Tuning;
use crate::whole_body::WholeBody;
use crate::whole_words::WholeWords;
use rushmem_transport::kit::batching::ReplyDestinations;
use rushmem_transport::kit::violation::Violation;
use rushmem_transport::{AmoRequest, AmoWidth, LocalBuf, RemoteAddr, mem};
use std::collections::VecDeque;

/// Batches that are answered at a time. With the answers to single requests, the target has to hold
/// less than what it refuses.
const MAX_ANSWERED: usize = 8;

/// The destination of an answer. The memory that it points to stays valid until the answer has come
/// or the connection is closed.
#[derive(Clone, Copy)]
enum To {
    /// Memory of this PE alone, or that no other thread reads meanwhile.
    Private(LocalBuf),
    /// Memory that others may read meanwhile.
    Shared(LocalBuf),
    Word(*mut u8, AmoWidth),
    /// The destinations that the operations of the next answered batch have.
    Batch,
    Nowhere,
}

// SAFETY: plain addresses; the caller keeps the memory valid until the request is answered.
unsafe impl Send for To {}

/// The state of this PE's requests to the peer.
pub(crate) struct TcpOrigin {
    pub(crate) requests: SendQueue,
    ledger: Ledger<To>,
    /// The words of the answer to symmetric memory whose body is being received.
    words: WholeWords,
    /// The destinations of the answers to batches, in the order of the batches.
    answers: VecDeque<ReplyDestinations>,
    /// The answers to a batch that are being received.
    answered: WholeBody,
}

impl TcpOrigin {
    pub(crate) fn new() -> TcpOrigin {
        TcpOrigin {
            requests: SendQueue::new(),
            ledger: Ledger::new(),
            words: WholeWords::default(),
            answers: VecDeque::new(),
            answered: WholeBody::default(),
        }
    }

    /// Returns true if another request may be issued.
    pub(crate) fn has_room(&self, tuning: &Tuning) -> bool {
        self.requests.own_bytes() < tuning.max_waiting_bytes
            && self.requests.n_unsent() < 2 * tuning.max_waiting_transfers
            && self.ledger.n_unanswered() < tuning.max_unanswered
    }

    /// Returns true if another batch may be issued.
    pub(crate) fn has_room_for_batch(&self, tuning: &Tuning) -> bool {
        self.has_room(tuning) && self.answers.len() < MAX_ANSWERED
    }

    /// Returns true if so much waits that it should leave.
    pub(crate) fn is_full(&self, tuning: &Tuning) -> bool {
        self.requests.own_bytes() >= tuning.send_at
    }

    /// Returns the number of the last request that is known to be done.
    pub(crate) fn acked(&self) -> u64 {
        self.ledger.acked()
    }

    /// Returns how many requests are not known to be done.
    pub(crate) fn unacked(&self) -> u64 {
        self.ledger.unacked()
    }

    /// Returns the positions of the stream up to which data were appended and up to which the
    /// kernel has them.
    pub(crate) fn positions(&self) -> (u64, u64) {
        (self.requests.appended(), self.requests.sent())
    }

    /// Appends a put, whose words may be written `in_parts`; returns its number.
    ///
    /// # Safety
    /// The source is valid for reads: during the call when `copy`, else until it is sent.
    pub(crate) unsafe fn put(
        &mut self,
        dest: RemoteAddr,
        source: LocalBuf,
        (copy, in_parts): (bool, bool),
    ) -> u64 {
        let nbytes = source.nbytes as u32;
        self.requests.push(&RequestFrame::Put { dest, nbytes, in_parts }.encode());
        if copy {
            // SAFETY: valid by contract.
            unsafe { self.requests.push_copy::<mem::VolatileLoads>(source) };
        } else {
            // SAFETY: valid by contract.
            unsafe { self.requests.push_memory(source) };
        }
        self.ledger.issue()
    }

    /// Appends a get, whose words may be read `in_parts`; returns its number. Others may read
    /// `dest` meanwhile if it `is_shared`.
    ///
    /// # Safety
    /// `dest` is valid for writes until the request is answered or the connection is closed.
    pub(crate) unsafe fn get(
        &mut self,
        source: RemoteAddr,
        dest: LocalBuf,
        (is_shared, in_parts): (bool, bool),
    ) -> u64 {
        let nbytes = dest.nbytes as u32;
        self.requests.push(&RequestFrame::Get { source, nbytes, in_parts }.encode());
        let to = if is_shared { To::Shared(dest) } else { To::Private(dest) };
        self.ledger.expect(ExpectedReply::Data(nbytes), to)
    }

    fn push_amo(&mut self, request: &AmoRequest, fetch: bool) {
        let AmoRequest { dest, width, op, operand, condition, .. } = *request;
        let mut body = [0; AMO_BODY];
        body[..8].copy_from_slice(&operand.to_le_bytes());
        body[8..].copy_from_slice(&condition.to_le_bytes());
        self.requests.push(&RequestFrame::Amo { dest, op, width, fetch }.encode());
        self.requests.push(&body);
    }

    /// Appends an AMO whose old value is not wanted; returns its number.
    pub(crate) fn update(&mut self, request: &AmoRequest) -> u64 {
        self.push_amo(request, false);
        self.ledger.issue()
    }

    /// Appends an AMO whose old value goes `to` a word of width `write`; returns its number.
    ///
    /// # Safety
    /// `to` is valid for writes of such a word until the request is answered or the connection is
    /// closed.
    pub(crate) unsafe fn fetch(
        &mut self,
        request: &AmoRequest,
        to: *mut u8,
        write: AmoWidth,
    ) -> u64 {
        self.push_amo(request, true);
        self.ledger.expect(ExpectedReply::Value, To::Word(to, write))
    }

    /// Appends a batch, to which these are the answers; returns its number.
    ///
    /// # Safety
    /// What the answers go to is valid for writes until the batch is answered or the connection is
    /// closed.
    pub(crate) unsafe fn batch(&mut self, batch: &[u8], answers: ReplyDestinations) -> u64 {
        self.requests.push(&RequestFrame::Batch { nbytes: batch.len() as u32 }.encode());
        self.requests.push_all(batch);
        if answers.is_empty() {
            return self.ledger.issue();
        }
        let want = ExpectedReply::Data(answers.nbytes() as u32);
        self.answers.push_back(answers);
        self.ledger.expect(want, To::Batch)
    }

    /// Takes the next bytes of the answers to a batch, which has as many as they need.
    fn take_answers(&mut self, nbytes: usize, bytes: &[u8]) -> Result<(), Violation> {
        let answers = &mut self.answers;
        let taken = self.answered.take(nbytes, bytes, |answered| {
            let mut next = answers.pop_front().ok_or(Violation::Unrequested)?;
            // SAFETY: valid until the batch is answered, by the contract of `batch`.
            unsafe { next.store(answered) }
        });
        taken.unwrap_or(Ok(()))
    }

    /// Requests an acknowledgment that covers `seq`, unless an expected answer does.
    pub(crate) fn ask_for_ack(&mut self, seq: u64) {
        if !self.ledger.will_ack(seq) {
            self.requests.push(&RequestFrame::Sync.encode());
            self.ledger.expect(ExpectedReply::Ack, To::Nowhere);
        }
    }

    /// Returns where the body of a `Data` reply goes, which must be the next expected answer, if
    /// the kernel may write there.
    pub(crate) fn private_destination(
        &self,
        seq: u64,
        nbytes: u32,
    ) -> Result<Option<LocalBuf>, Violation> {
        match *self.ledger.data(seq, nbytes)? {
            To::Private(dest) => Ok(Some(dest)),
            _ => Ok(None),
        }
    }

    /// Completes a reply whose whole body has arrived at its destination.
    pub(crate) fn complete(&mut self, reply: ReplyFrame) -> Result<(), Violation> {
        self.ledger.complete(reply).map(|_| ())
    }

    /// Puts an answer, or the part of its body that follows the first `done` bytes, where it
    /// belongs.
    pub(crate) fn take(
        &mut self,
        reply: ReplyFrame,
        done: usize,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        match reply {
            ReplyFrame::Data { seq, nbytes } => {
                match *self.ledger.data(seq, nbytes)? {
                    To::Private(dest) => store(dest.skip(done), bytes),
                    // SAFETY: valid until the request is answered, by the contract of `get`.
                    To::Shared(dest) => unsafe { self.words.write(dest.skip(done), bytes) },
                    To::Batch => self.take_answers(nbytes as usize, bytes)?,
                    To::Word(..) | To::Nowhere => return Err(Violation::Unrequested),
                }
                if done + bytes.len() < nbytes as usize {
                    return Ok(());
                }
                self.complete(reply)
            }
            ReplyFrame::Value(value) => {
                if let To::Word(at, width) = self.ledger.complete(reply)? {
                    // SAFETY: valid for a word of this width until now, by the contract of `amo`.
                    unsafe { width.write(at, value) };
                }
                Ok(())
            }
            ReplyFrame::Ack { .. } => self.complete(reply),
        }
    }
}

/// Copies received bytes, in whole words, to the start of a destination that has as many or more.
fn store(to: LocalBuf, bytes: &[u8]) {
    assert!(bytes.len() <= to.nbytes, "an answer is as long as was requested");
    // SAFETY: within a destination that is valid until its request is answered.
    unsafe { mem::copy_bytes::<mem::VolatileLoads>(to.base, bytes.as_ptr(), bytes.len()) };
}
