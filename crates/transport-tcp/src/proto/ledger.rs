//! The requests of an origin and the answers to them, on one connection.

use super::frame::ReplyFrame;
use rushmem_transport::kit::violation::Violation;
use std::collections::VecDeque;

/// The answer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedReply {
    /// This many bytes.
    Data(u32),
    /// An old value.
    Value,
    /// An acknowledgement.
    Ack,
}

struct DueReply<T> {
    seq: u64,
    want: ExpectedReply,
    to: T,
}

/// Requests are numbered from 1. `T` says where an answer goes.
pub(crate) struct Ledger<T> {
    issued: u64,
    acked: u64,
    due: VecDeque<DueReply<T>>,
}

impl<T> Ledger<T> {
    /// Nothing requested yet.
    pub(crate) fn new() -> Ledger<T> {
        Ledger { issued: 0, acked: 0, due: VecDeque::new() }
    }

    /// Numbers a request that has no answer.
    pub(crate) fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// Numbers a request that is answered.
    pub(crate) fn expect(&mut self, want: ExpectedReply, to: T) -> u64 {
        let seq = self.issue();
        self.due.push_back(DueReply { seq, want, to });
        seq
    }

    /// Every request up to this number is done at the target.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns how many requests are not known to be done.
    pub(crate) fn unacked(&self) -> u64 {
        self.issued - self.acked
    }

    /// Returns true if an answer that is due will acknowledge request `seq`.
    pub(crate) fn will_ack(&self, seq: u64) -> bool {
        self.acked >= seq || self.due.back().is_some_and(|due| due.seq >= seq)
    }

    /// Returns how many answers are due.
    pub(crate) fn due(&self) -> usize {
        self.due.len()
    }

    /// Whom the body of a `Data` reply is for, which must be the next answer that is due.
    pub(crate) fn data(&self, seq: u64, nbytes: u32) -> Result<&T, Violation> {
        match self.due.front() {
            Some(due) if due.want == ExpectedReply::Data(nbytes) && due.seq == seq => Ok(&due.to),
            _ => Err(Violation::Unrequested),
        }
    }

    /// Strikes out the next answer that is due, which has come as a whole; returns whom it is for.
    pub(crate) fn complete(&mut self, reply: ReplyFrame) -> Result<T, Violation> {
        let due = self.due.pop_front().ok_or(Violation::Unrequested)?;
        let fits = match reply {
            ReplyFrame::Data { seq, nbytes } => {
                due.want == ExpectedReply::Data(nbytes) && due.seq == seq
            }
            ReplyFrame::Value(_) => due.want == ExpectedReply::Value,
            ReplyFrame::Ack { seq } => due.want == ExpectedReply::Ack && due.seq == seq,
        };
        if !fits {
            return Err(Violation::Unrequested);
        }
        self.acked = due.seq;
        Ok(due.to)
    }
}
