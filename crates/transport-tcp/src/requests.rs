//! The requests that all origins of this PE send to one peer, and the destinations of the answers.
#![allow(unsafe_code)]

use crate::proto::{ExpectedReply, Ledger, ReplyFrame, RequestFrame};
use crate::receiving::ReceivingPe;
use crate::send_queue::SendQueue;
use crate::settings::Tuning;
use crate::whole_body::WholeBody;
use crate::whole_words::WholeWords;
use rushmem_transport::engine::Payload;
use rushmem_transport::engine::message::{REPLY, REQUEST, Reply, Request};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{LocalBuf, Pe, RemoteAddr, mem};

/// The maximum number of unanswered batches that request answers. It keeps the answers that wait at
/// the target below the size at which the target refuses the peer.
const MAX_ANSWERED: usize = 8;

/// The destination of an answer. Its memory stays valid until the answer has arrived or the
/// connection is closed.
#[derive(Clone, Copy)]
enum To {
    /// Memory of this PE alone, or that no other thread reads meanwhile.
    Private(LocalBuf),
    /// Memory that others may read meanwhile.
    Shared(LocalBuf),
    /// The origin that a reply names.
    Origin,
    /// The origin that a reply with the answers to a batch names.
    OriginOfBatch,
    Nowhere,
}

// SAFETY: plain addresses; the caller keeps the memory valid until the request is answered.
unsafe impl Send for To {}

/// The state of this PE's requests to the peer.
pub(crate) struct Requests {
    pub(crate) queue: SendQueue,
    ledger: Ledger<To>,
    /// The number of unanswered batches that request answers.
    n_answered_batches: usize,
    /// Writes the words of the answer that is being received into memory that others read.
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

    /// Returns true if enough bytes wait that they should be sent now.
    pub(crate) fn is_full(&self, tuning: &Tuning) -> bool {
        self.queue.own_bytes() >= tuning.send_at
    }

    /// Returns the number of the last request that is known to be done.
    pub(crate) fn acked(&self) -> u64 {
        self.ledger.acked()
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
        self.queue.push(&RequestFrame::Put { dest, nbytes, in_parts }.encode());
        if copy {
            // SAFETY: valid by contract.
            unsafe { self.queue.push_copy::<mem::VolatileLoads>(source) };
        } else {
            // SAFETY: valid by contract.
            unsafe { self.queue.push_memory(source) };
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
        self.queue.push(&RequestFrame::Get { source, nbytes, in_parts }.encode());
        let to = if is_shared { To::Shared(dest) } else { To::Private(dest) };
        self.ledger.expect(ExpectedReply::Data(nbytes), to)
    }

    /// Appends a message, with a copy of its payload.
    ///
    /// # Safety
    /// Data are valid for reads.
    pub(crate) unsafe fn message(&mut self, request: &Request, payload: Payload<'_>) {
        let (is_batch, nbytes) = match &payload {
            Payload::Batch(batch) => (true, batch.len()),
            Payload::Data(data) => (false, data.nbytes),
        };
        let nbytes = (REQUEST + nbytes) as u32;
        self.queue.push(&RequestFrame::Message { nbytes, is_batch }.encode());
        self.queue.push(&request.encode());
        match payload {
            Payload::Batch(batch) => self.queue.push_all(batch),
            // SAFETY: valid by contract.
            Payload::Data(data) => unsafe { self.queue.push_copy::<mem::VolatileLoads>(data) },
        }
        let is_answered = request.slot.is_some() || request.place.asks;
        if !is_answered {
            self.ledger.issue();
            return;
        }
        let has_answers = is_batch && request.slot.is_some();
        self.n_answered_batches += usize::from(has_answers);
        let to = if has_answers { To::OriginOfBatch } else { To::Origin };
        self.ledger.expect(ExpectedReply::Message, to);
    }

    /// Requests an acknowledgment that covers `seq`, unless an expected answer does.
    pub(crate) fn ask_for_ack(&mut self, seq: u64) {
        if !self.ledger.will_ack(seq) {
            self.queue.push(&RequestFrame::Sync.encode());
            self.ledger.expect(ExpectedReply::Ack, To::Nowhere);
        }
    }

    /// Returns the destination of the body of a `Data` reply, if the kernel may write there. Fails
    /// if the reply is not the next expected answer.
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
        let to = self.ledger.complete(reply)?;
        self.n_answered_batches -= usize::from(matches!(to, To::OriginOfBatch));
        Ok(())
    }

    /// Delivers an answer of the peer `pe`. If it has a body, `bytes` are a part of the body, which
    /// begins at the offset `done`.
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
                    To::Private(dest) => store(dest.skip(done), bytes),
                    // SAFETY: valid until the request is answered, by the contract of `get`.
                    To::Shared(dest) => unsafe { self.words.write(dest.skip(done), bytes) },
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

/// Adds a reply of a peer to the replies of the origin that it names.
fn take_reply(receiving: &ReceivingPe, pe: Pe, body: &[u8]) -> Result<(), Violation> {
    let (head, answers) = body.split_at_checked(REPLY).ok_or(Violation::Unknown("reply"))?;
    let reply = Reply::decode(head).map_err(|_| Violation::Unknown("reply"))?;
    if reply.pe != pe {
        return Err(Violation::Unrequested);
    }
    receiving.replies.replied(&receiving.local.acks, reply, answers)
}

/// Copies received bytes, in whole words, to the start of a destination that has as many or more.
fn store(to: LocalBuf, bytes: &[u8]) {
    assert!(bytes.len() <= to.nbytes, "an answer is as long as was requested");
    // SAFETY: within a destination that is valid until its request is answered.
    unsafe { mem::copy_bytes::<mem::VolatileLoads>(to.base, bytes.as_ptr(), bytes.len()) };
}
