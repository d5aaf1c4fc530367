//! The answers of one peer to the requests of all origins of this PE. They arrive in the order of
//! the requests, so a queue has the memory or the origin for which each of them is.
#![allow(unsafe_code)]

use crate::proto::ReplyFrame;
use crate::receiving::{ReceivingPe, WholeBody, WholeWords};
use crate::settings::Tuning;
use rushmem_transport::engine::message::{REPLY, Reply, Request};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{DestBuf, LocalBuf, Pe};
use std::collections::VecDeque;

/// Maximum number of unanswered requests with results that follow the reply. It keeps the bytes of
/// replies that are queued at the target below the limit at which the target ends the connection
/// (`target::MAX_WAITING`).
const MAX_ANSWERED: usize = 8;

/// The answer to a request.
enum ExpectedAnswer {
    /// The data of a get. Other threads or PEs may read `dest` meanwhile if it `is_shared`.
    Data { dest: DestBuf, is_shared: bool },
    /// A reply for the origin that it names. Results follow it if it `is_long`.
    Reply { is_long: bool },
}

/// The answers that are awaited.
pub(crate) struct Answers {
    /// The answers in the order in which they will arrive.
    expected: VecDeque<ExpectedAnswer>,
    /// The number of gets so far.
    n_gets: u64,
    /// The number of gets that are answered.
    n_got: u64,
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
            expected: VecDeque::new(),
            n_gets: 0,
            n_got: 0,
            n_long: 0,
            words: WholeWords::default(),
            reply: WholeBody::default(),
        }
    }

    /// Returns true if another request may be issued.
    pub(crate) fn have_room(&self, tuning: &Tuning) -> bool {
        self.expected.len() < tuning.max_unanswered && self.n_long < MAX_ANSWERED
    }

    /// Returns the number of gets so far.
    pub(crate) fn n_gets(&self) -> u64 {
        self.n_gets
    }

    /// Returns the number of gets that are answered, which are the first ones.
    pub(crate) fn n_got(&self) -> u64 {
        self.n_got
    }

    /// Expects the data of a get. `is_shared` says that others may read `dest` meanwhile.
    pub(crate) fn expect_data(&mut self, dest: DestBuf, is_shared: bool) {
        self.n_gets += 1;
        self.expected
            .push_back(ExpectedAnswer::Data { dest, is_shared });
    }

    /// Expects a reply to a message if its request has one.
    pub(crate) fn expect_reply(&mut self, request: &Request) {
        if request.slot.is_some() || request.position.asks {
            let is_long = request.slot.is_some_and(|slot| slot.is_long);
            self.n_long += usize::from(is_long);
            self.expected.push_back(ExpectedAnswer::Reply { is_long });
        }
    }

    /// Returns the destination of the body of a `Data` reply, if the kernel may write to it. Fails
    /// if the reply is not the next expected answer.
    pub(crate) fn private_destination(&self, nbytes: u32) -> Result<Option<LocalBuf>, Violation> {
        match self.expected.front() {
            Some(ExpectedAnswer::Data { dest, is_shared }) if dest.nbytes() == nbytes as usize => {
                Ok((!is_shared).then(|| dest.range()))
            }
            _ => Err(Violation::Unrequested),
        }
    }

    /// Removes the next expected answer, whose whole body was delivered.
    pub(crate) fn complete(&mut self) {
        match self.expected.pop_front() {
            Some(ExpectedAnswer::Data { .. }) => self.n_got += 1,
            Some(ExpectedAnswer::Reply { is_long }) => self.n_long -= usize::from(is_long),
            None => {}
        }
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
        match (reply, self.expected.front_mut()) {
            (ReplyFrame::Data { nbytes }, Some(ExpectedAnswer::Data { dest, is_shared }))
                if dest.nbytes() == nbytes as usize =>
            {
                if *is_shared {
                    let rest = dest.range().skip(done);
                    // SAFETY: `rest` is a part of the destination of a get. The get owns it until
                    // it is over, so that it is valid for writes.
                    unsafe { self.words.write(rest, bytes) }
                } else {
                    dest.store_at(done, bytes);
                }

                if done + bytes.len() < nbytes as usize {
                    return Ok(());
                }
            }
            (ReplyFrame::Message { nbytes }, Some(ExpectedAnswer::Reply { .. })) => {
                let taken = self.reply.take(nbytes as usize, bytes, |body| {
                    take_reply(receiving, pe, body)
                });
                match taken {
                    Some(taken) => taken?,
                    // The rest of the reply has not arrived.
                    None => return Ok(()),
                }
            }
            _ => return Err(Violation::Unrequested),
        }

        self.complete();
        Ok(())
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
