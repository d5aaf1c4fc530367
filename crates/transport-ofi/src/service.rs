//! The endpoint that peers address: it receives their atomic operations, carries them out by this CPU, and
//! takes the replies to this PE's own. Polling it lets the provider serve peers' reads and writes.
//!
//! One thread at a time does so. This file must never know who polls.

use crate::ep::{Failure, FiEndpoint, Post};
use crate::message::{Message, NBYTES};
use crate::shared::Shared;
use rushmem_transport::{AmoRequest, Error, OldValue, Pe};
use std::collections::VecDeque;

/// Sends in flight at once, where they cannot be injected.
pub(crate) const SENDS: usize = 64;

/// The target's side of this PE.
pub(crate) struct Service {
    ep: FiEndpoint,
    /// Buffers that wait for messages, of so many.
    receives: usize,
    /// What could not be sent yet, and to whom.
    backlog: VecDeque<(u32, Message)>,
    /// Messages that came in a turn.
    arrivals: Vec<[u8; NBYTES]>,
}

impl Service {
    /// `ep` has room for so many receives and for [`SENDS`].
    pub(crate) fn new(ep: FiEndpoint, receives: usize) -> Service {
        Service { ep, receives, backlog: VecDeque::new(), arrivals: Vec::new() }
    }

    pub(crate) fn ep(&self) -> &FiEndpoint {
        &self.ep
    }

    /// Offers the buffers to the fabric.
    ///
    /// # Errors
    /// libfabric's number.
    pub(crate) fn receive(&mut self) -> Result<(), i32> {
        while self.ep.receiving() < self.receives && self.ep.receive()? == Post::Started {}
        Ok(())
    }

    /// Serves what has come; returns whether there was work.
    ///
    /// # Errors
    /// When the fabric says that something failed.
    pub(crate) fn poll(&mut self, shared: &Shared) -> Result<bool, Failure> {
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
            Failure { pe: None, why }
        })?;
        if !self.backlog.is_empty() {
            self.flush(shared)?;
        }
        Ok(worked)
    }

    /// Carries out what a peer asks for, or takes in what it answers.
    fn take(&mut self, shared: &Shared, message: Message) {
        match message {
            Message::Amo { pe, token, dest, op, width, operand, condition, data } => {
                let old = OldValue::Returned;
                let request = AmoRequest { dest, width, op, operand, condition, old };
                let stored = data.is_none_or(|data| shared.segments.write(data.dest, data.bytes()));
                // What asks for memory that there is not is no peer's.
                if stored && let Some(value) = shared.segments.apply(&request) {
                    self.backlog.push_back((pe, Message::Old { token, value }));
                }
            }
            Message::Old { token, value } => shared.replied(token.ep, token.slot, value),
        }
    }

    /// Sends what waits to be sent: one turn around, so that a peer that takes nothing holds up nobody.
    fn flush(&mut self, shared: &Shared) -> Result<(), Failure> {
        for _ in 0..self.backlog.len() {
            let Some((pe, message)) = self.backlog.pop_front() else { break };
            if pe as usize >= shared.peers.n_pes() {
                continue;
            }
            // A peer that is faster may ask before this PE has learnt of it.
            let posted = match shared.peers.get(Pe(pe)) {
                Ok(peer) => self.ep.send(pe, peer.at, &message.encode(shared.tag)),
                Err(Error::Unreachable(_)) => Ok(Post::Later),
                Err(error) => return Err(Failure { pe: Some(pe), why: error.to_string() }),
            };
            match posted {
                Ok(Post::Started) => {}
                Ok(Post::Later) => self.backlog.push_back((pe, message)),
                Err(code) => {
                    return Err(Failure { pe: Some(pe), why: self.ep.strerror(code) });
                }
            }
        }
        Ok(())
    }

    /// Whether replies wait to be sent.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }
}
