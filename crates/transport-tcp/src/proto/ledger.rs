//! The numbers of the requests on one connection, and the answers that are expected.

use super::frame::ReplyFrame;
use rushmem_transport::peers::loss::Violation;
use std::collections::VecDeque;

/// The answer that a request expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedReply {
    /// Data of this many bytes.
    Data(u32),
    /// A reply to a message, of any length.
    Message,
    /// An acknowledgment.
    Ack,
}

struct UnansweredRequest<T> {
    seq: u64,
    expected: ExpectedReply,
    to: T,
}

/// The requests of this PE on a connection, numbered from 1. `T` is the destination of an answer.
pub(crate) struct Ledger<T> {
    issued: u64,
    acked: u64,
    unanswered: VecDeque<UnansweredRequest<T>>,
}

impl<T> Ledger<T> {
    pub(crate) fn new() -> Ledger<T> {
        Ledger {
            issued: 0,
            acked: 0,
            unanswered: VecDeque::new(),
        }
    }

    /// Numbers a request that has no answer.
    pub(crate) fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// Numbers a request that is answered.
    pub(crate) fn expect(&mut self, expected: ExpectedReply, to: T) -> u64 {
        let seq = self.issue();
        self.unanswered
            .push_back(UnansweredRequest { seq, expected, to });
        seq
    }

    /// Returns the number of the last request that the target has acknowledged; 0 if none.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns true if request `seq` is acknowledged, or an expected answer will acknowledge it.
    pub(crate) fn will_ack(&self, seq: u64) -> bool {
        self.acked >= seq || self.unanswered.back().is_some_and(|last| last.seq >= seq)
    }

    /// Returns the number of expected answers.
    pub(crate) fn n_unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// Returns the destination of the body of a `Data` reply, which must be the next expected
    /// answer.
    pub(crate) fn data(&self, seq: u64, nbytes: u32) -> Result<&T, Violation> {
        match self.unanswered.front() {
            Some(next) if next.expected == ExpectedReply::Data(nbytes) && next.seq == seq => {
                Ok(&next.to)
            }
            _ => Err(Violation::Unrequested),
        }
    }

    /// Checks that the next expected answer is the reply to a message.
    pub(crate) fn message(&self) -> Result<(), Violation> {
        match self.unanswered.front() {
            Some(next) if next.expected == ExpectedReply::Message => Ok(()),
            _ => Err(Violation::Unrequested),
        }
    }

    /// Removes the next expected answer, which has arrived completely. Returns its destination.
    pub(crate) fn complete(&mut self, reply: ReplyFrame) -> Result<T, Violation> {
        let next = self.unanswered.pop_front().ok_or(Violation::Unrequested)?;
        let fits = match reply {
            ReplyFrame::Data { seq, nbytes } => {
                next.expected == ExpectedReply::Data(nbytes) && next.seq == seq
            }
            ReplyFrame::Message { .. } => next.expected == ExpectedReply::Message,
            ReplyFrame::Ack { seq } => next.expected == ExpectedReply::Ack && next.seq == seq,
        };

        if !fits {
            return Err(Violation::Unrequested);
        }
        self.acked = next.seq;
        Ok(next.to)
    }
}
