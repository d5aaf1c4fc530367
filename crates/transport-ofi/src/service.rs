//! The endpoint that peers address: it receives their requests, carries them out by this CPU, and
//! takes the replies to this PE's own. Polling it lets the provider serve peers' reads and writes.
//!
//! One thread at a time does so. This module does not know which thread polls.

use crate::ep::{EpFailure, FiEndpoint, Post, ReceiveEnd};
use crate::message::Message;
use crate::shared::SharedState;
use rushmem_transport::kit::carried_out::Turn;
use rushmem_transport::kit::message::{Body, Reply, Request};
use rushmem_transport::kit::streams::Streams;
use rushmem_transport::kit::violation::{RefusedMessage, Violation};
use rushmem_transport::{Error, Pe};
use std::collections::VecDeque;

/// Sends in flight at once, where they cannot be injected.
pub(crate) const SENDS: usize = 64;

/// The target's side of this PE.
pub(crate) struct Service {
    ep: FiEndpoint,
    /// Buffers that wait for messages, at most.
    receives: usize,
    target: Target,
}

/// What this PE carries out for its peers.
struct Target {
    /// What peers ask, by their streams.
    streams: Streams<Early>,
    /// Replies that could not be sent yet, to whom, and the bytes that they bring.
    backlog: VecDeque<(u32, Reply, Vec<u8>)>,
    /// What has gone wrong since this was last taken.
    failure: Option<ServiceFailure>,
}

/// Why peers cannot be served any more.
pub(crate) enum ServiceFailure {
    /// The fabric says that something failed.
    Ep(EpFailure),
    /// A message cannot be carried out.
    Message(RefusedMessage),
}

impl From<EpFailure> for ServiceFailure {
    fn from(failure: EpFailure) -> ServiceFailure {
        ServiceFailure::Ep(failure)
    }
}

/// A request that came before what it is to follow.
struct Early {
    request: Request,
    is_batch: bool,
    bytes: Vec<u8>,
}

impl Service {
    /// That of PE `me`. `ep` has room for `receives` receives and for [`SENDS`].
    pub(crate) fn new(me: Pe, ep: FiEndpoint, receives: usize) -> Service {
        let (streams, backlog) = (Streams::new(me), VecDeque::new());
        let target = Target { streams, backlog, failure: None };
        Service { ep, receives, target }
    }

    pub(crate) fn ep(&self) -> &FiEndpoint {
        &self.ep
    }

    /// Offers the buffers to the fabric.
    ///
    /// # Errors
    /// libfabric's number.
    pub(crate) fn receive(&mut self) -> Result<(), i32> {
        while self.ep.receiving() < self.receives && self.ep.receive()? != Post::Later {}
        Ok(())
    }

    /// Serves what has come; returns whether there was work.
    ///
    /// # Errors
    /// When the fabric says that something failed, or a message cannot be carried out.
    pub(crate) fn poll(&mut self, shared: &SharedState) -> Result<bool, ServiceFailure> {
        let target = &mut self.target;
        let worked = self.ep.poll(|end| target.take(shared, end))? > 0;
        if let Some(failure) = self.target.failure.take() {
            return Err(failure);
        }
        self.receive().map_err(|code| {
            let why = format!("a buffer for messages was refused: {}", self.ep.strerror(code));
            EpFailure { pe: None, why }
        })?;
        if !self.target.backlog.is_empty() {
            self.flush(shared)?;
        }
        Ok(worked)
    }

    /// Sends what waits to be sent: one turn around, so that a peer that takes nothing holds up
    /// none.
    fn flush(&mut self, shared: &SharedState) -> Result<(), EpFailure> {
        let backlog = &mut self.target.backlog;
        for _ in 0..backlog.len() {
            let Some((pe, reply, bytes)) = backlog.pop_front() else { break };
            let head = Message::Reply(reply).encode(shared.tag);
            // A peer that is faster may ask before this PE has learnt of it.
            let posted = match shared.peers.get(Pe(pe)) {
                Ok(_) if self.ep.pauses(pe) => Ok(Post::Later),
                Ok(peer) => self.ep.send(pe, peer.at, &head, &bytes),
                Err(Error::Unreachable(_)) => Ok(Post::Later),
                Err(error) => return Err(EpFailure { pe: Some(pe), why: error.to_string() }),
            };
            match posted {
                Ok(Post::Started) => {}
                Ok(Post::Later) => backlog.push_back((pe, reply, bytes)),
                Err(code) => {
                    return Err(EpFailure { pe: Some(pe), why: self.ep.why_refused(pe, code) });
                }
            }
        }
        Ok(())
    }

    /// Returns true if replies wait to be sent, or are on their way: they move when the ep is
    /// polled.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.target.backlog.is_empty() || self.ep.in_flight() > 0
    }
}

impl Target {
    /// Takes what has come.
    fn take(&mut self, shared: &SharedState, end: ReceiveEnd<'_>) {
        let taken = match end {
            // It connects.
            ReceiveEnd::Whole([]) => Ok(()),
            ReceiveEnd::Whole(bytes) => self.take_whole(shared, bytes),
            ReceiveEnd::Cut { start, nbytes } => cut(start, nbytes, shared.tag),
            ReceiveEnd::Failed { start, why } => {
                let pe = sender(start, shared.tag).unwrap_or_else(|message| message.from);
                let failure = EpFailure { pe: pe.map(|pe| pe.0), why };
                self.failure.get_or_insert(ServiceFailure::Ep(failure));
                return;
            }
        };
        if let Err(message) = taken {
            self.failure.get_or_insert(ServiceFailure::Message(message));
        }
    }

    /// Takes a message: a request of a peer, or a reply.
    fn take_whole(&mut self, shared: &SharedState, bytes: &[u8]) -> Result<(), RefusedMessage> {
        let Some((message, body)) = Message::decode(bytes, shared.tag)? else {
            return ignore(bytes.len());
        };
        match message {
            Message::Request(request) => self.requested(shared, &request, Body::Batch(body)),
            Message::Data(request) => self.requested(shared, &request, Body::Data(body)),
            Message::Reply(reply) => shared.replied(reply, body),
        }
        .map_err(|violation| RefusedMessage::of(message.sender(), violation))
    }

    /// Carries out a request and those that waited for it, or keeps it until its turn comes.
    fn requested(
        &mut self,
        shared: &SharedState,
        request: &Request,
        body: Body<'_>,
    ) -> Result<(), Violation> {
        let early = || Early::of(*request, body);
        if self.streams.arrived(&shared.acks, request, early)? == Turn::Now {
            self.carry_out(shared, request, body)?;
            while let Some(early) = self.streams.take_early(request.stream) {
                self.carry_out(shared, &early.request, early.body())?;
            }
        }
        Ok(())
    }

    /// Carries out a request, and keeps the reply if one is due.
    fn carry_out(
        &mut self,
        shared: &SharedState,
        request: &Request,
        body: Body<'_>,
    ) -> Result<(), Violation> {
        let mut answers = Vec::new();
        let old = request.carry_out(body, &shared.segments, &*shared.host, &mut answers)?;
        if answers.len() > shared.tuning.longest_batch() {
            return Err(Violation::TooMany);
        }
        if let Some(reply) = self.streams.carried_out(&shared.acks, request, old) {
            self.backlog.push_back((request.stream.pe.0, reply, answers));
        }
        Ok(())
    }
}

/// A message came that does not carry the job's tag, so that no PE waits for its effects.
fn ignore(nbytes: usize) -> Result<(), RefusedMessage> {
    rushmem_log::debug!("a message of {nbytes} bytes is not of this job");
    Ok(())
}

/// A message came that is longer than any of a job with this tag.
fn cut(start: &[u8], nbytes: usize, tag: u64) -> Result<(), RefusedMessage> {
    match sender(start, tag)? {
        Some(pe) => Err(RefusedMessage::of(pe, Violation::TooLong(nbytes as u64))),
        None => ignore(nbytes),
    }
}

/// The PE that sent a message that begins so, if it is of the job with this tag.
///
/// # Errors
/// When no PE of the job sends such a one.
fn sender(start: &[u8], tag: u64) -> Result<Option<Pe>, RefusedMessage> {
    let message = Message::decode(start, tag)?;
    Ok(message.map(|(message, _)| message.sender()))
}

impl Early {
    fn of(request: Request, body: Body<'_>) -> Early {
        let (is_batch, bytes) = match body {
            Body::Batch(bytes) => (true, bytes),
            Body::Data(bytes) => (false, bytes),
        };
        Early { request, is_batch, bytes: bytes.to_vec() }
    }

    fn body(&self) -> Body<'_> {
        if self.is_batch { Body::Batch(&self.bytes) } else { Body::Data(&self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::kit::acks::Ack;

    #[test]
    fn a_message_that_is_too_long_is_refused_if_it_is_of_this_job() {
        let reply = Reply { pe: Pe(2), ack: Ack { origin: 0, count: 0 }, old: None };
        let start = Message::Reply(reply).encode(7);
        let too_long = RefusedMessage::of(Pe(2), Violation::TooLong(70_000));
        assert_eq!(cut(&start, 70_000, 7), Err(too_long));
        assert_eq!(cut(&start, 70_000, 8), Ok(()), "of another job");
        assert_eq!(cut(&[0; 8], 70_000, 7), Ok(()), "nothing of it has come");
    }
}
