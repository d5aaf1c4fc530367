//! The answers of one peer to the requests of all origins of this PE. This file numbers the
//! requests, and finds for each answer the memory or the origin for which it is.
#![allow(unsafe_code)]

use crate::proto::{ExpectedReply, Ledger, ReplyFrame};
use crate::receiving::{ReceivingPe, WholeBody, WholeWords};
use crate::settings::Tuning;
use rushmem_transport::engine::message::{REPLY, Reply, Request};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{DestBuf, LocalBuf, Pe};

/// Maximum number of unanswered requests with results that follow the reply. It keeps the bytes of
/// replies that are queued at the target below the limit at which the target ends the connection
/// (`target::MAX_WAITING`).
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

/// The requests of this PE to the peer by their numbers, and the answers that are awaited.
pub(crate) struct Answers {
    ledger: Ledger<AnswerDest>,
    /// The number of unanswered requests with results that follow the reply.
    n_long: usize,
    /// Writes the answer that is being received to memory that others may read.
    words: WholeWords,
    /// The reply that is being received.
    reply: WholeBody,
}

impl Answers {
    pub(crate) fn new() -> Answers {
        Answers {
            ledger: Ledger::new(),
            n_long: 0,
            words: WholeWords::default(),
            reply: WholeBody::default(),
        }
    }

    /// Returns true if another request may be issued.
    pub(crate) fn have_room(&self, tuning: &Tuning) -> bool {
        self.ledger.n_unanswered() < tuning.max_unanswered && self.n_long < MAX_ANSWERED
    }

    /// Returns the number of the last acknowledged request.
    pub(crate) fn acked(&self) -> u64 {
        self.ledger.acked()
    }

    /// Numbers a request that has no answer.
    pub(crate) fn expect_none(&mut self) -> u64 {
        self.ledger.issue()
    }

    /// Numbers a get, and expects its data. `is_shared` says that others may read `dest` meanwhile.
    pub(crate) fn expect_data(&mut self, dest: DestBuf, is_shared: bool) -> u64 {
        let expected = ExpectedReply::Data(dest.nbytes() as u32);
        let to = if is_shared {
            AnswerDest::Shared(dest)
        } else {
            AnswerDest::Private(dest)
        };
        self.ledger.expect(expected, to)
    }

    /// Numbers a message, and expects a reply if its request asks for one.
    pub(crate) fn expect_reply(&mut self, request: &Request) -> u64 {
        let to = match request.slot {
            Some(slot) if slot.is_long => {
                self.n_long += 1;
                AnswerDest::OriginOfLong
            }
            Some(_) => AnswerDest::Origin,
            None if request.position.asks => AnswerDest::Origin,
            None => return self.ledger.issue(),
        };
        self.ledger.expect(ExpectedReply::Message, to)
    }

    /// Expects an acknowledgment that covers request `seq`. Returns true if it is to be requested,
    /// since no expected answer covers the request.
    pub(crate) fn expect_ack(&mut self, seq: u64) -> bool {
        if self.ledger.will_ack(seq) {
            return false;
        }
        self.ledger.expect(ExpectedReply::Ack, AnswerDest::Nowhere);
        true
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
        if matches!(to, AnswerDest::OriginOfLong) {
            self.n_long -= 1;
        }
        Ok(())
    }

    /// Handles the next bytes of a reply of peer `pe`, which are at offset `done` of its body.
    pub(crate) fn take(
        &mut self,
        receiving: &ReceivingPe,
        pe: Pe,
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
                        // SAFETY: `rest` is a part of the destination of a get. The get owns it
                        // until it is over, so that it is valid for writes.
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
                let taken = self.reply.take(nbytes as usize, bytes, |body| {
                    take_reply(receiving, pe, body)
                });
                match taken {
                    Some(taken) => taken?,
                    // The rest of the reply has not arrived.
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
