//! What an ep requests of the targets' CPUs: operations that are gathered to travel together,
//! messages that found no room, and answers that are due. Its endpoint and the threads that poll
//! share this under a lock, so that what is gathered leaves while the endpoint's thread is
//! elsewhere.

use crate::ep::{EpFailure, FiEndpoint, Post};
use crate::message::HEAD;
use crate::replies::Due;
use crate::settings::Tuning;
use libfabric_sys as fi;
use rushmem_transport::Pe;
use rushmem_transport::kit::acks::AckCounts;
use rushmem_transport::kit::gather::{Answers, Gather};
use rushmem_transport::kit::requests::IssuedRequests;
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
pub(crate) struct Unsent {
    pub(crate) pe: Pe,
    pub(crate) at: fi::fi_addr_t,
    pub(crate) head: [u8; HEAD],
    pub(crate) batch: Vec<u8>,
}

/// The requests of an ep.
pub(crate) struct Requests {
    pub(crate) issued: IssuedRequests,
    pub(crate) gather: Gather,
    pub(crate) unsent: VecDeque<Unsent>,
    pub(crate) due: Vec<Due>,
    /// Slots that no answer will come to.
    pub(crate) slots: Vec<u32>,
    /// How many were sent, and how many of them the targets have acknowledged.
    pub(crate) sent: u32,
    acks: Arc<AckCounts>,
}

impl Requests {
    /// None so far, of the ep with this number.
    pub(crate) fn new(
        number: u32,
        acks: Arc<AckCounts>,
        n_pes: usize,
        tuning: &Tuning,
    ) -> Requests {
        let (window, longest) = (tuning.amos as u32, tuning.longest_batch());
        Requests {
            issued: IssuedRequests::new(number, Arc::clone(&acks), n_pes, window),
            gather: Gather::new(n_pes, (longest, longest)),
            unsent: VecDeque::new(),
            due: Vec::new(),
            slots: (0..window).collect(),
            sent: acks.all(),
            acks,
        }
    }

    /// Returns true if some target has not acknowledged all requests.
    pub(crate) fn is_owed(&self) -> bool {
        self.acks.all() != self.sent
    }

    /// Returns true if something has not left.
    pub(crate) fn holds(&self) -> bool {
        !self.gather.pes().is_empty() || !self.unsent.is_empty()
    }

    /// Returns what is gathered for a PE, and where the answers go. Its memory goes with it, so
    /// that none is held for PEs to which nothing goes now.
    pub(crate) fn take(&mut self, pe: Pe) -> (Vec<u8>, Answers) {
        let (mut batch, mut answers) = (Vec::new(), Answers::default());
        self.gather.take(pe, &mut batch, &mut answers);
        (batch, answers)
    }

    /// Sends the messages that found no room, as far as there is some now.
    pub(crate) fn send_unsent(&mut self, ep: &mut FiEndpoint) -> Result<(), EpFailure> {
        while let Some(Unsent { pe, at, head, batch }) = self.unsent.pop_front() {
            let sent = match ep.pauses(pe.0) {
                true => Ok(Post::Later),
                false => ep.send(pe.0, at, &head, &batch),
            };
            match sent {
                Ok(Post::Started) => {}
                Ok(Post::Later) => {
                    self.unsent.push_front(Unsent { pe, at, head, batch });
                    break;
                }
                Err(code) => {
                    return Err(EpFailure { pe: Some(pe.0), why: ep.why_refused(pe.0, code) });
                }
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
