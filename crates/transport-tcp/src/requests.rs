//! The requests of all origins of this PE to one peer, and the destinations of the answers.
#![allow(unsafe_code)]

use crate::proto::{ExpectedReply, Ledger, ReplyFrame, RequestFrame};
use crate::receiving::{ReceivingPe, WholeBody, WholeWords};
use crate::send_queue::SendQueue;
use crate::settings::Tuning;
use rushmem_transport::engine::SentMessage;
use rushmem_transport::engine::message::{REPLY, REQUEST, Reply};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{DestBuf, LocalBuf, Pe, RemoteAddr, SourceBuf, mem};

/// Maximum number of unanswered requests with results that follow the reply. It keeps the bytes of
/// replies that are queued at the target below the limit at which the target ends the connection.
const MAX_ANSWERED: usize = 8;

/// The destination of an answer.
enum AnswerDest {
    /// Memory that no other thread or PE reads meanwhile.
    Private(DestBuf),
    /// Memory that other threads or PEs may read meanwhile.
    Shared(DestBuf),
    /// The origin that the reply names.
    Origin,
    /// The origin that the reply names, with results that follow the reply.
    OriginOfLong,
    Nowhere,
}

/// The state of this PE's requests to the peer.
pub(crate) struct Requests {
    pub(crate) queue: SendQueue,
    ledger: Ledger<AnswerDest>,
    /// The number of unanswered requests with results that follow the reply.
    n_long: usize,
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
            n_long: 0,
            words: WholeWords::default(),
            reply: WholeBody::default(),
        }
    }

    /// Returns true if another request may be issued.
    pub(crate) fn has_room(&self, tuning: &Tuning) -> bool {
        self.queue.own_bytes() < tuning.max_waiting_bytes
            && self.queue.n_unsent() < 2 * tuning.max_waiting_transfers
            && self.ledger.n_unanswered() < tuning.max_unanswered
            && self.n_long < MAX_ANSWERED
    }

    /// Returns true if enough bytes are queued to be sent at once.
    pub(crate) fn is_full(&self, tuning: &Tuning) -> bool {
        self.queue.own_bytes() >= tuning.send_at
    }

    /// Returns the number of the last acknowledged request.
    pub(crate) fn acked(&self) -> u64 {
        self.ledger.acked()
    }

    /// Queues a put, and returns its number. Copies the source during the call (`copy`), or takes
    /// it. The words of the put may be torn if `in_parts`.
    pub(crate) fn put(
        &mut self,
        dest: RemoteAddr,
        source: &mut SourceBuf,
        (copy, in_parts): (bool, bool),
    ) -> u64 {
        let nbytes = source.nbytes() as u32;
        self.queue.push(
            &RequestFrame::Put {
                dest,
                nbytes,
                in_parts,
            }
            .encode(),
        );
        if copy {
            self.queue.push_copy::<mem::VolatileLoads>(source);
        } else {
            self.queue.push_memory(std::mem::take(source));
        }
        self.ledger.issue()
    }

    /// Queues a get, and returns its number. Its words may be torn if `in_parts`. Others may read
    /// `dest` meanwhile if it `is_shared`.
    pub(crate) fn get(
        &mut self,
        source: RemoteAddr,
        dest: DestBuf,
        (is_shared, in_parts): (bool, bool),
    ) -> u64 {
        let nbytes = dest.nbytes() as u32;
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

    /// Queues a copy of a message.
    pub(crate) fn message(&mut self, message: SentMessage<'_>) {
        let SentMessage {
            request,
            entries,
            attached,
            ..
        } = message;
        let nbytes = (REQUEST + entries.len() + attached.nbytes()) as u32;
        self.queue.push(&RequestFrame::Message { nbytes }.encode());
        self.queue.push(&request.encode());
        self.queue.push_all(entries);
        if attached.nbytes() > 0 {
            self.queue.push_copy::<mem::VolatileLoads>(attached);
        }

        let to = match request.slot {
            Some(slot) if slot.is_long => {
                self.n_long += 1;
                AnswerDest::OriginOfLong
            }
            Some(_) => AnswerDest::Origin,
            None if request.position.asks => AnswerDest::Origin,
            None => {
                self.ledger.issue();
                return;
            }
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
        match self.ledger.data(seq, nbytes)? {
            AnswerDest::Private(dest) => Ok(Some(dest.range())),
            _ => Ok(None),
        }
    }

    /// Completes the request of a reply whose whole body was delivered.
    pub(crate) fn complete(&mut self, reply: ReplyFrame) -> Result<(), Violation> {
        let to = self.ledger.complete(reply)?;
        self.n_long -= usize::from(matches!(to, AnswerDest::OriginOfLong));
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
                match self.ledger.data(seq, nbytes)? {
                    AnswerDest::Private(dest) => dest.store_at(done, bytes),
                    AnswerDest::Shared(dest) => {
                        let rest = dest.range().skip(done);
                        // SAFETY: the destination of a get that is not over.
                        unsafe { self.words.write(rest, bytes) }
                    }
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
    let (head, follow) = body
        .split_at_checked(REPLY)
        .ok_or(Violation::Unknown("reply"))?;
    let reply = Reply::decode(head).map_err(|_| Violation::Unknown("reply"))?;
    if reply.pe != pe {
        return Err(Violation::Unrequested);
    }
    receiving
        .replies
        .deliver(&receiving.local.acks, reply, follow)
}
