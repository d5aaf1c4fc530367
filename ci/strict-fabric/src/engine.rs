//! The engine of an endpoint: performs operations and reports their completion.
//!
//! A message, or an operation that the target performs, is a request in a slot of the origin's
//! segment, to which an entry of the target's inbox refers until the target has read it. Except in
//! immediate profiles, operations start when the queue is read, a random number at a time, in a
//! random order that the profile permits, and posts fail at random with `FI_EAGAIN`.
//!
//! `post` accepts what the application posts, `origin` starts and completes accepted operations,
//! and `target` handles requests of peers.
#![allow(unsafe_code)]

mod origin;
mod post;
mod target;

use crate::address_vector::AddressVector;
use crate::connections::Connections;
use crate::domain::Domain;
use crate::operation::{AcceptedOp, Completions};
use crate::profile::Profile;
use crate::remote::RemotePeer;
use crate::reuse::{Contexts, ReuseCheck};
use crate::segment::{POSTED, SLOTS, TAKEN};
use fastrand::Rng;
use libfabric_sys as fi;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use target::Message;

/// Maximum number of requests that are read from an inbox at once.
const MAX_REQUESTS: usize = 64;
/// The number of oldest pending operations from which the next one to start is selected, and the
/// maximum number that a poll starts.
const CHOICE: usize = 8;

const AGAIN: isize = -(fi::FI_EAGAIN as isize);

/// An operation that has not started.
struct Pending {
    operation: AcceptedOp,
    reuse: ReuseCheck,
    /// The data, if they were copied from the source.
    bytes: Option<Box<[u8]>>,
    /// True if it may complete before it has reached its target.
    may_complete_early: bool,
}

/// A posted receive buffer.
struct Receive {
    piece: fi::iovec,
    context: usize,
    reuse: ReuseCheck,
}

/// A request that was submitted to its target.
struct Sent {
    slot: u32,
    operation: AcceptedOp,
    reuse: ReuseCheck,
}

/// The state of an enabled endpoint.
pub(crate) struct Engine {
    domain: Arc<Domain>,
    profile: &'static Profile,
    number: u32,
    av: Arc<AddressVector>,
    /// True if an operation has a completion only if it has the flag `FI_COMPLETION`.
    selective: bool,
    tx_size: usize,
    remotes: Vec<Option<RemotePeer>>,
    pending: VecDeque<Pending>,
    /// The indices of the free slots of this endpoint.
    slots: Vec<u32>,
    sent: Vec<Sent>,
    receives: VecDeque<Receive>,
    /// Messages that wait for a receive buffer.
    unexpected: VecDeque<Message>,
    contexts: Contexts,
    connections: Connections,
    random: Rng,
    /// Polls since the last completion of a submitted request.
    idle_polls: u32,
}

// SAFETY: the pointers are only used while the engine is locked, and are valid on all threads.
unsafe impl Send for Engine {}

impl Engine {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        number: u32,
        av: Arc<AddressVector>,
        selective: bool,
        tx_size: usize,
    ) -> Engine {
        let own_slots = &domain.segment.slots[number as usize];
        let mut slots: Vec<u32> = (0..SLOTS as u32).rev().collect();
        // Targets may not yet have read requests of a closed endpoint that had the same number.
        slots.retain(|&slot| {
            let state = own_slots[slot as usize].state.load(Ordering::Acquire);
            state != POSTED && state != TAKEN
        });

        Engine {
            profile: domain.profile,
            number,
            av,
            selective,
            tx_size: tx_size.min(SLOTS),
            remotes: Vec::new(),
            pending: VecDeque::new(),
            slots,
            sent: Vec::new(),
            receives: VecDeque::new(),
            unexpected: VecDeque::new(),
            contexts: Contexts::default(),
            connections: Connections::default(),
            // A constant seed: a failure comes again in the next run. 1 is added so that no seed
            // is 0.
            random: Rng::with_seed(u64::from(number) + 1),
            idle_polls: 0,
            domain: Arc::clone(domain),
        }
    }

    /// Makes progress: starts pending operations, completes submitted ones, and handles requests of
    /// peers.
    #[inline]
    pub(crate) fn progress(&mut self, completions: &mut Completions) {
        self.connections
            .progress(&self.domain.connections, completions);

        if !self.pending.is_empty() {
            for _ in 0..self.random_count(CHOICE) {
                self.start_one(completions);
            }
        }

        if !self.sent.is_empty() {
            self.complete_sent(completions);
        }

        self.handle_requests();
        while !self.unexpected.is_empty() && !self.receives.is_empty() && completions.room() > 0 {
            self.deliver(completions);
        }
    }

    /// Closes the endpoint. Operations that have completed early still reach their targets, if the
    /// targets' inboxes have room.
    pub(crate) fn close(&mut self, completions: &mut Completions) {
        self.connections.close(&self.domain.connections);

        for receive in &mut self.receives {
            receive.reuse.release(&self.domain, &mut self.contexts);
        }

        while let Some(mut pending) = self.pending.pop_front() {
            if pending.bytes.is_some() && !pending.operation.completes {
                // If the inbox has no room, the operation is lost, as with a fabric that is closed.
                drop(self.start(pending, completions));
            } else {
                pending.reuse.release(&self.domain, &mut self.contexts);
            }
        }

        // After the loop above, which may have added to them.
        for sent in &mut self.sent {
            sent.reuse.release(&self.domain, &mut self.contexts);
        }
    }

    /// Returns the registrations of a peer.
    #[inline]
    fn remote(&mut self, peer: usize) -> &mut RemotePeer {
        if self.remotes.get(peer).is_none_or(Option::is_none) {
            self.open_remote(peer);
        }
        match &mut self.remotes[peer] {
            Some(remote) => remote,
            None => unreachable!("opened above"),
        }
    }

    #[cold]
    fn open_remote(&mut self, peer: usize) {
        // Before the list grows: a peer that is not in the address vector is a violation.
        let endpoint = self.av.peer(peer);
        if self.remotes.len() <= peer {
            self.remotes.resize_with(peer + 1, || None);
        }
        self.remotes[peer] = Some(RemotePeer::new(endpoint));
    }

    /// Returns true if a post fails with `FI_EAGAIN`, at random.
    fn refuses(&mut self) -> bool {
        let one_in = self.profile.eagain_one_in;
        one_in > 0 && self.random.u32(0..one_in) == 0
    }

    /// Returns how many operations to process: 0 with probability 1/4, otherwise up to `most`.
    fn random_count(&mut self, most: usize) -> usize {
        if self.random.u32(0..4) == 0 {
            0
        } else {
            self.random.usize(1..=most)
        }
    }
}
