//! The requests of all origins of this PE to one peer, and the destinations of the answers.
#![allow(unsafe_code)]

use crate::proto::{ExpectedReply, Ledger, ReplyFrame, RequestFrame};
use crate::receiving::{ReceivingPe, WholeBody, WholeWords};
use crate::send_queue::SendQueue;
use crate::settings::Tuning;
use rushmem_transport::engine::Payload;
use rushmem_transport::engine::message::{REPLY, REQUEST, Reply, Request};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{LocalBuf, Pe, RemoteAddr, mem};

/// Maximum number of unanswered batches with results. It keeps the bytes of replies that are queued
/// at the target below the limit at which the target ends the connection.
const MAX_ANSWERED: usize = 8;

/// The destination of an answer. Its memory stays valid until the answer has arrived or the
/// connection is closed.
#[derive(Clone, Copy)]
enum AnswerDest {
    /// Memory that no other thread or PE reads meanwhile.
    Private(LocalBuf),
    /// Memory that other threads or PEs may read meanwhile.
    Shared(LocalBuf),
    /// The origin that the reply names.
    Origin,
    /// The origin that the reply names, with the results of a batch.
    OriginOfBatch,
    Nowhere,
}

// SAFETY: plain addresses; the caller keeps the memory valid until the request is answered.
unsafe impl Send for AnswerDest {}

/// The state of this PE's requests to the peer.
pub(crate) struct Requests {
    pub(crate) queue: SendQueue,
    ledger: Ledger<AnswerDest>,
    /// The number of unanswered batches with results.
    n_answered_batches: usize,
    /// Writes the answer that is being received to memory that others may read.
    words: WholeWords,
    /// The reply that is being received.
    reply: WholeBody,
}

impl Requests {
    pub(crate) fn new() -> Requests {
        Requests {
            queue: SendQueue::new(),
            ledger: Ledger::new(),
            n_answered_batches: 0,
            words: WholeWords::default(),
            reply: WholeBody::default(),
        }
    }

    /// Returns true if another request may be issued.
    pub(crate) fn has_room(&self, tuning: &Tuning) -> bool {
        self.queue.own_bytes() < tuning.max_waiting_bytes
            && self.queue.n_unsent() < 2 * tuning.max_waiting_transfers
            && self.ledger.n_unanswered() < tuning.max_unanswered
            && self.n_answered_batches < MAX_ANSWERED
    }

    /// Returns true if enough bytes are queued to be sent at once.
    pub(crate) fn is_full(&self, tuning: &Tuning) -> bool {
        self.queue.own_bytes() >= tuning.send_at
    }

    /// Returns the number of the last acknowledged request.
    pub(crate) fn acked(&self) -> u64 {
        self.ledger.acked()
    }

    /// Queues a put, and returns its number. Its words may be torn if `in_parts`.
    ///
    /// # Safety
    /// The source is valid for reads, during the call if it is copied (`copy`), otherwise until it
    /// is sent.
    pub(crate) unsafe fn put(
        &mut self,
        dest: RemoteAddr,
        source: LocalBuf,
        (copy, in_parts): (bool, bool),
    ) -> u64 {
        let nbytes = source.nbytes as u32;
        self.queue.push(
            &RequestFrame::Put {
                dest,
                nbytes,
                in_parts,
            }
            .encode(),
        );
        if copy {
            // SAFETY: the source is valid during the call, by the contract of this function.
            unsafe { self.queue.push_copy::<mem::VolatileLoads>(source) };
        } else {
            // SAFETY: the source is valid until it is sent, by the contract of this function.
            unsafe { self.queue.push_memory(source) };
        }
        self.ledger.issue()
    }

    /// Queues a get, and returns its number. Its words may be torn if `in_parts`. Others may read
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
        self.queue.push(
            &RequestFrame::Get {
                source,
                nbytes,
                in_parts,
            }
            .encode(),
        );
        let to = if is_shared {
            AnswerDest::Shared(dest)
        } else {
            AnswerDest::Private(dest)
        };
        self.ledger.expect(ExpectedReply::Data(nbytes), to)
    }

    /// Queues a message with a copy of its payload.
    ///
    /// # Safety
    /// The payload's data are valid for reads.
    pub(crate) unsafe fn message(&mut self, request: &Request, payload: Payload<'_>) {
        let (is_batch, nbytes) = match &payload {
            Payload::Batch(batch) => (true, batch.len()),
            Payload::Data(data) => (false, data.nbytes),
        };
        let nbytes = (REQUEST + nbytes) as u32;
        self.queue
            .push(&RequestFrame::Message { nbytes, is_batch }.encode());
        self.queue.push(&request.encode());
        match payload {
            Payload::Batch(batch) => self.queue.push_all(batch),
            Payload::Data(LocalBuf { nbytes: 0, .. }) => {}
            // SAFETY: the data are valid for reads, by the contract of this function.
            Payload::Data(data) => unsafe { self.queue.push_copy::<mem::VolatileLoads>(data) },
        }
        let is_answered = request.slot.is_some() || request.position.asks;
        if !is_answered {
            self.ledger.issue();
            return;
        }
        let has_answers = is_batch && request.slot.is_some();
        self.n_answered_batches += usize::from(has_answers);
        let to = if has_answers {
            AnswerDest::OriginOfBatch
        } else {
            AnswerDest::Origin
        };
        self.ledger.expect(ExpectedReply::Message, to);
    }

    /// Requests an acknowledgment that covers request `seq`, unless an expected answer does.
    pub(crate) fn ask_for_ack(&mut self, seq: u64) {
        if !self.ledger.will_ack(seq) {
            self.queue.push(&RequestFrame::Sync.encode());
            self.ledger.expect(ExpectedReply::Ack, AnswerDest::Nowhere);
        }
    }

    /// Returns the destination of the body of a `Data` reply, if the kernel may write to it. Fails
    /// if the reply is not the next expected answer.
    pub(crate) fn private_destination(
        &self,
        seq: u64,
        nbytes: u32,
    ) -> Result<Option<LocalBuf>, Violation> {
        match *self.ledger.data(seq, nbytes)? {
            AnswerDest::Private(dest) => Ok(Some(dest)),
            _ => Ok(None),
        }
    }

    /// Completes the request of a reply whose whole body was delivered.
    pub(crate) fn complete(&mut self, reply: ReplyFrame) -> Result<(), Violation> {
        let to = self.ledger.complete(reply)?;
        self.n_answered_batches -= usize::from(matches!(to, AnswerDest::OriginOfBatch));
        Ok(())
    }

    /// Handles the next bytes of a reply of peer `pe`, which are at offset `done` of its body.
    pub(crate) fn take(
        &mut self,
        (receiving, pe): (&ReceivingPe, Pe),
        reply: ReplyFrame,
        done: usize,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        match reply {
            ReplyFrame::Data { seq, nbytes } => {
                match *self.ledger.data(seq, nbytes)? {
                    AnswerDest::Private(dest) => store(dest.skip(done), bytes),
                    // SAFETY: `dest` is valid until the request is answered, by the contract of
                    // `get`.
                    AnswerDest::Shared(dest) => unsafe { self.words.write(dest.skip(done), bytes) },
                    _ => return Err(Violation::Unrequested),
                }
                if done + bytes.len() < nbytes as usize {
                    return Ok(());
                }
            }
            ReplyFrame::Message { nbytes } => {
                self.ledger.message()?;
                let take = |body: &[u8]| take_reply(receiving, pe, body);
                match self.reply.take(nbytes as usize, bytes, take) {
                    Some(taken) => taken?,
                    None => return Ok(()),
                }
            }
            ReplyFrame::Ack { .. } => {}
        }
        self.complete(reply)
    }
}

/// Passes a reply of a peer to the origin that it names.
fn take_reply(receiving: &ReceivingPe, pe: Pe, body: &[u8]) -> Result<(), Violation> {
    let (head, answers) = body
        .split_at_checked(REPLY)
        .ok_or(Violation::Unknown("reply"))?;
    let reply = Reply::decode(head).map_err(|_| Violation::Unknown("reply"))?;
    if reply.pe != pe {
        return Err(Violation::Unrequested);
    }
    receiving
        .replies
        .deliver(&receiving.local.acks, reply, answers)
}

/// Copies received bytes to the start of a private destination.
fn store(to: LocalBuf, bytes: &[u8]) {
    assert!(
        bytes.len() <= to.nbytes,
        "an answer is as long as was requested"
    );
    // SAFETY: the bytes fit the destination, which is valid until its request is answered.
    unsafe { mem::copy_bytes::<mem::VolatileLoads>(to.base, bytes.as_ptr(), bytes.len()) };
}
