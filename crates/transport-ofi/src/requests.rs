//! What an ep requests of the targets' CPUs: operations that are gathered to travel together,
//! messages that found no room, and answers that are due. Its endpoint and the threads that poll
//! share this under a lock, so that what is gathered leaves while the endpoint's thread is
//! elsewhere.

use crate::ep::{EpFailure, FiEndpoint, Post};
use crate::message::{HEAD, Message, NOWHERE};
use crate::replies::{Answer, Due};
use crate::shared::SharedState;
use libfabric_sys as fi;
use rushmem_transport::Pe;
use rushmem_transport::kit::acks::AckCounts;
use rushmem_transport::kit::gather::{Answers, Gather};
use rushmem_transport::kit::message::Request;
use rushmem_transport::kit::requests::IssuedRequests;
use rushmem_transport::kit::stream::Update;
use std::collections::VecDeque;
use std::sync::Arc;

/// How a request is sent.
#[derive(Clone, Copy, Default)]
pub(crate) struct How {
    /// It is carried out after all before it.
    pub(crate) ordered: bool,
    /// The target acknowledges it, which is after all before it, too.
    pub(crate) asks: bool,
    /// The call waits for the reply.
    pub(crate) awaited: bool,
}

/// A message that found no room.
struct Unsent {
    pe: Pe,
    at: fi::fi_addr_t,
    head: [u8; HEAD],
    batch: Vec<u8>,
}

/// The requests of an ep.
pub(crate) struct Requests {
    pub(crate) issued: IssuedRequests,
    pub(crate) gather: Gather,
    unsent: VecDeque<Unsent>,
    pub(crate) due: Vec<Due>,
    /// Slots that no answer will come to.
    pub(crate) slots: Vec<u32>,
    /// How many were sent, and how many of them the targets have acknowledged.
    sent: u32,
    acks: Arc<AckCounts>,
}

impl Requests {
    /// None so far, of the ep with this number.
    pub(crate) fn new(number: u32, acks: Arc<AckCounts>, shared: &SharedState) -> Requests {
        let (n_pes, window) = (shared.peers.n_pes(), shared.tuning.amos as u32);
        Requests {
            issued: IssuedRequests::new(number, Arc::clone(&acks), n_pes, window),
            gather: Gather::new(n_pes, shared.tuning.longest_message - HEAD),
            unsent: VecDeque::new(),
            due: Vec::new(),
            slots: (0..window).collect(),
            sent: acks.all(),
            acks,
        }
    }

    /// Whether some target has not acknowledged all requests.
    pub(crate) fn is_owed(&self) -> bool {
        self.acks.all() != self.sent
    }

    /// Whether something has not left.
    pub(crate) fn holds(&self) -> bool {
        !self.gather.pes().is_empty() || !self.unsent.is_empty()
    }

    /// The head of the next message of the stream to a PE.
    pub(crate) fn issue(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        update: Option<Update>,
        slot: Option<u32>,
        how: How,
    ) -> [u8; HEAD] {
        self.sent = self.sent.wrapping_add(1);
        let place = self.issued.issue(pe, (how.ordered, how.asks));
        let (stream, ack) = (self.issued.stream(shared.me), shared.acks.for_message_to(pe));
        let request = Request { stream, place, ack, slot, update, dest: NOWHERE };
        Message::Request(request).encode(shared.tag)
    }

    /// Sends what is gathered, as far as there is room.
    pub(crate) fn send_gathered(
        &mut self,
        shared: &SharedState,
        ep: &mut FiEndpoint,
    ) -> Result<(), EpFailure> {
        for i in (0..self.gather.pes().len()).rev() {
            let pe = self.gather.pes()[i];
            let Some(at) = shared.peers.known(pe).map(|peer| peer.at) else { continue };
            if self.issued.is_full(pe) || self.slots.is_empty() {
                continue;
            }
            let (batch, answers) = self.take(pe);
            let slot = if answers.is_empty() { None } else { self.slots.pop() };
            self.due.extend(slot.map(|slot| Due {
                slot,
                pe: pe.0,
                answer: Answer::Batch(answers),
            }));
            let head = self.issue(shared, pe, None, slot, How::default());
            self.unsent.push_back(Unsent { pe, at, head, batch });
        }
        self.send_unsent(ep)
    }

    /// What is gathered for a PE, and where the answers go. Its memory goes with it, so that none is
    /// held for PEs to which nothing goes now.
    pub(crate) fn take(&mut self, pe: Pe) -> (Vec<u8>, Answers) {
        let (mut batch, mut answers) = (Vec::new(), Answers::default());
        self.gather.take(pe, &mut batch, &mut answers);
        (batch, answers)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub(crate) fn send_unsent(&mut self, ep: &mut FiEndpoint) -> Result<(), EpFailure> {
        while let Some(Unsent { pe, at, head, batch }) = self.unsent.pop_front() {
            match ep.send(pe.0, at, &head, &batch) {
                Ok(Post::Started) => {}
                Ok(Post::Later) => {
                    self.unsent.push_front(Unsent { pe, at, head, batch });
                    break;
                }
                Err(code) => return Err(EpFailure { pe: Some(pe.0), why: ep.strerror(code) }),
            }
        }
        Ok(())
    }

    /// Forgets everything, since the ep is closed.
    pub(crate) fn clear(&mut self) {
        self.gather.forget();
        self.unsent.clear();
        self.due.clear();
    }
}
