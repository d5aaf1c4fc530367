//! The endpoint that peers address: it receives their atomic operations, carries them out by this
//! CPU, and takes the replies to this PE's own. Polling it lets the provider serve peers' reads and
//! writes.
//!
//! One thread at a time does so. This module does not know which thread polls.

use crate::ep::{EpFailure, FiEndpoint, Post};
use crate::message::{Data, Message, NBYTES};
use crate::shared::SharedState;
use rushmem_transport::kit::carried_out::Turn;
use rushmem_transport::kit::message::{Reply, Request};
use rushmem_transport::kit::streams::Streams;
use rushmem_transport::{Error, Pe};
use std::collections::VecDeque;

/// Sends in flight at once, where they cannot be injected.
pub(crate) const SENDS: usize = 64;

/// The target's side of this PE.
pub(crate) struct Service {
    ep: FiEndpoint,
    /// Buffers that wait for messages, at most.
    receives: usize,
    /// What peers ask, by their streams.
    streams: Streams<(Request, Data)>,
    /// What could not be sent yet, and to whom.
    backlog: VecDeque<(u32, Message)>,
    /// Messages that came in a turn.
    arrivals: Vec<[u8; NBYTES]>,
}

impl Service {
    /// That of PE `me`. `ep` has room for `receives` receives and for [`SENDS`].
    pub(crate) fn new(me: Pe, ep: FiEndpoint, receives: usize) -> Service {
        let (streams, backlog, arrivals) = (Streams::new(me), VecDeque::new(), Vec::new());
        Service { ep, receives, streams, backlog, arrivals }
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
    /// When the fabric says that something failed.
    pub(crate) fn poll(&mut self, shared: &SharedState) -> Result<bool, EpFailure> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let taken = self.ep.poll(|message| arrivals.push(message));
        for message in arrivals.drain(..) {
            if let Some(message) = Message::decode(&message, shared.tag) {
                self.take(shared, message);
            }
        }
        self.arrivals = arrivals;
        let worked = taken? > 0;
        self.receive().map_err(|code| {
            let why = format!("a buffer for messages was refused: {}", self.ep.strerror(code));
            EpFailure { pe: None, why }
        })?;
        if !self.backlog.is_empty() {
            self.flush(shared)?;
        }
        Ok(worked)
    }

    /// Takes a request of a peer, or a reply.
    fn take(&mut self, shared: &SharedState, message: Message) {
        let (request, data) = match message {
            Message::Request(request, data) => (request, data),
            Message::Reply(Reply { pe, ack, old }) => {
                shared.acks.acknowledge(pe, ack);
                if let Some((slot, value)) = old {
                    shared.replied(ack.origin, slot, value);
                }
                return;
            }
        };
        if self.streams.arrived(&shared.acks, &request, || (request, data)) == Turn::Now {
            let mut next = Some((request, data));
            while let Some((request, data)) = next {
                if let Some(reply) = self.carry_out(shared, &request, &data) {
                    self.backlog.push_back((request.stream.pe.0, Message::Reply(reply)));
                }
                next = self.streams.take_early(request.stream);
            }
        }
    }

    /// Carries out a request; returns the reply, if one is due.
    fn carry_out(&mut self, shared: &SharedState, request: &Request, data: &Data) -> Option<Reply> {
        let (segments, bytes) = (&shared.segments, data.bytes());
        // No PE of this job requests memory that does not exist.
        let is_stored = bytes.is_empty() || segments.write(request.dest, bytes);
        let old = is_stored.then(|| request.apply(segments))??;
        self.streams.carried_out(&shared.acks, request, old)
    }

    /// Sends what waits to be sent: one turn around, so that a peer that takes nothing holds up
    /// none.
    fn flush(&mut self, shared: &SharedState) -> Result<(), EpFailure> {
        for _ in 0..self.backlog.len() {
            let Some((pe, message)) = self.backlog.pop_front() else { break };
            // A peer that is faster may ask before this PE has learnt of it.
            let posted = match shared.peers.get(Pe(pe)) {
                Ok(peer) => self.ep.send(pe, peer.at, &message.encode(shared.tag)),
                Err(Error::Unreachable(_)) => Ok(Post::Later),
                Err(error) => return Err(EpFailure { pe: Some(pe), why: error.to_string() }),
            };
            match posted {
                Ok(Post::Started) => {}
                Ok(Post::Later) => self.backlog.push_back((pe, message)),
                Err(code) => {
                    return Err(EpFailure { pe: Some(pe), why: self.ep.strerror(code) });
                }
            }
        }
        Ok(())
    }

    /// Whether replies wait to be sent, or are on their way: they move when the ep is polled.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty() || self.ep.in_flight() > 0
    }
}
