//! The requests of an origin and the answers to them, on one connection.

use super::frame::ReplyFrame;
use rushmem_transport::peers::loss::Violation;
use std::collections::VecDeque;

/// The answer that a request expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedReply {
    /// This many bytes.
    Data(u32),
    /// A reply to a message, with as many bytes as it needs.
    Message,
    /// An acknowledgement.
    Ack,
}

struct UnansweredRequest<T> {
    seq: u64,
    expected: ExpectedReply,
    to: T,
}

/// Requests are numbered from 1. `T` says where an answer goes.
pub(crate) struct Ledger<T> {
    issued: u64,
    acked: u64,
    unanswered: VecDeque<UnansweredRequest<T>>,
}

impl<T> Ledger<T> {
    /// Returns a ledger without requests.
    pub(crate) fn new() -> Ledger<T> {
        Ledger { issued: 0, acked: 0, unanswered: VecDeque::new() }
    }

    /// Numbers a request that has no answer.
    pub(crate) fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// Numbers a request that is answered.
    pub(crate) fn expect(&mut self, expected: ExpectedReply, to: T) -> u64 {
        let seq = self.issue();
        self.unanswered.push_back(UnansweredRequest { seq, expected, to });
        seq
    }

    /// Returns the number of the last request that is known to be done at the target.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns true if an expected answer will acknowledge request `seq`.
    pub(crate) fn will_ack(&self, seq: u64) -> bool {
        self.acked >= seq || self.unanswered.back().is_some_and(|last| last.seq >= seq)
    }

    /// Returns the number of requests without an answer.
    pub(crate) fn n_unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// Returns the recipient of the body of a `Data` reply, which must be the next expected answer.
    pub(crate) fn data(&self, seq: u64, nbytes: u32) -> Result<&T, Violation> {
        match self.unanswered.front() {
            Some(next) if next.expected == ExpectedReply::Data(nbytes) && next.seq == seq => {
                Ok(&next.to)
            }
            _ => Err(Violation::Unrequested),
        }
    }

    /// Requires that the next expected answer is the reply to a message.
    pub(crate) fn message(&self) -> Result<(), Violation> {
        let next = self.unanswered.front().map(|next| next.expected);
        (next == Some(ExpectedReply::Message)).then_some(()).ok_or(Violation::Unrequested)
    }

    /// Removes the next expected answer, which has arrived completely. Returns its recipient.
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
