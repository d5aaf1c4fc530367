//! The endpoint that peers address: it receives their atomic operations, carries them out by this CPU, and
//! takes the replies to this PE's own. Polling it lets the provider serve peers' reads and writes.
//!
//! One thread at a time, under a lock that is only ever tried: a PE that waits in the library, or else the
//! service thread.
#![allow(unsafe_code)]

use crate::ep::{Failure, FiEndpoint, Post};
use crate::message::{Message, NBYTES};
use libfabric_sys as fi;
use rushmem_transport::{AmoWidth, Pe, RemoteAddr, mem};
use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};

/// The PE that a service serves.
pub(crate) trait Served {
    /// What every message of this job holds.
    fn tag(&self) -> u64;
    /// A word of this PE's memory, if peers may reach it.
    fn word(&self, at: RemoteAddr, width: AmoWidth) -> Option<*mut u8>;
    /// Takes the old value that a peer sent for an operation of the endpoint `ep`.
    fn answered(&self, ep: u32, slot: u32, value: u64);
    /// How many PEs the job has.
    fn n_pes(&self) -> usize;
    /// Where a PE is, once it is connected.
    fn address(&self, pe: Pe) -> Option<fi::fi_addr_t>;
}

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

    /// Offer the buffers to the fabric.
    ///
    /// # Errors
    /// libfabric's number.
    pub(crate) fn receive(&mut self) -> Result<(), i32> {
        while self.ep.receiving() < self.receives && self.ep.receive()? == Post::Started {}
        Ok(())
    }

    /// Serve what has come; returns whether there was work.
    ///
    /// # Errors
    /// When the fabric says that something failed.
    pub(crate) fn poll(&mut self, served: &impl Served) -> Result<bool, Failure> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let taken = self.ep.poll(|message| arrivals.push(message));
        for message in arrivals.drain(..) {
            if let Some(message) = Message::decode(&message, served.tag()) {
                self.take(served, message);
            }
        }
        self.arrivals = arrivals;
        let worked = taken? > 0;
        self.receive().map_err(|code| {
            let why = format!("a buffer for messages was refused: {}", self.ep.strerror(code));
            Failure { pe: None, why }
        })?;
        if !self.backlog.is_empty() {
            self.flush(served)?;
        }
        Ok(worked)
    }

    fn take(&mut self, served: &impl Served, message: Message) {
        match message {
            Message::Amo { pe, token, dest, op, width, operand, condition } => {
                // What asks for memory that there is not is no peer's.
                let Some(at) = served.word(dest, width) else { return };
                // What peers wrote before is seen before what this one writes.
                fence(Ordering::Release);
                // SAFETY: within a registered segment and aligned.
                let value = unsafe { mem::apply(op, width, at, operand, condition) };
                self.backlog.push_back((pe, Message::Old { token, value }));
            }
            Message::Old { token, value } => {
                served.answered(token.ep, token.slot, value);
            }
        }
    }

    /// Send what waits to be sent: one turn around, so that a peer that takes nothing holds up nobody.
    fn flush(&mut self, served: &impl Served) -> Result<(), Failure> {
        for _ in 0..self.backlog.len() {
            let Some((pe, message)) = self.backlog.pop_front() else { break };
            if pe as usize >= served.n_pes() {
                continue;
            }
            // A peer that is faster may ask before this PE has learnt of it.
            let posted = match served.address(Pe(pe)) {
                Some(at) => self.ep.send(pe, at, &message.encode(served.tag())),
                None => Ok(Post::Later),
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
