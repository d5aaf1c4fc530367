//! The operations that one endpoint batches in a session (`kit::batching`). They are sent by the
//! endpoint, or by a thread that polls while the endpoint's owner is elsewhere.
//!
//! A batch is a request like others, to a PE or to the proxy of several. The stream to a PE keeps
//! the order of batches and of what follows them there.
#![allow(unsafe_code)]

use crate::connection::{Connection, ConnectionEnd};
use crate::settings::Tuning;
use rushmem_transport::Pe;
use rushmem_transport::kit::batching::{Batcher, ReplyDestinations};
use rushmem_transport::kit::lock::{lock, try_lock};
use std::sync::{Mutex, MutexGuard};

/// The work of a thread on a connection. It returns true if nothing is left to send.
pub(crate) type LinkWork<'a> = &'a mut dyn FnMut(&mut Connection) -> Result<bool, ConnectionEnd>;

/// The request for an acknowledgment that goes with a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckRequest {
    Omitted,
    /// The endpoint will wait for the acknowledgment.
    Included,
}

/// The session of an endpoint.
pub(crate) struct EndpointSession(Mutex<SessionBatches>);

/// The batched operations of an endpoint, and the batches of them that were sent.
pub(crate) struct SessionBatches {
    pub(crate) batcher: Batcher,
    /// Batches that were sent, by their PEs and numbers, of which the endpoint does not know yet.
    sent: Vec<(Pe, u64)>,
    /// Among what is unfinished.
    listed: bool,
    /// A buffer for the next batch, of those that were sent.
    spare: Vec<u8>,
}

impl EndpointSession {
    /// Returns an empty session in a job of `n_pes` PEs.
    pub(crate) fn new(n_pes: usize, tuning: &Tuning) -> EndpointSession {
        let mut batcher = Batcher::new(n_pes, (0, tuning.batch));
        batcher.session(true);
        EndpointSession(Mutex::new(SessionBatches {
            batcher,
            sent: Vec::new(),
            listed: false,
            spare: Vec::new(),
        }))
    }

    /// Locks the session for its endpoint, which may hold the lock of a link.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionBatches> {
        lock(&self.0)
    }

    /// Sends batched operations for a thread that polls, unless the owner will do so soon. Returns
    /// true if some remain. `try_link` does such work on the link to a PE if it is open and no
    /// other thread works on it; `None` when one does.
    pub(crate) fn finish(
        &self,
        tuning: &Tuning,
        try_link: impl FnMut(Pe, LinkWork<'_>) -> Option<bool>,
    ) -> bool {
        let Some(mut batches) = try_lock(&self.0) else { return true };
        let stays = batches.finish(tuning, try_link);
        batches.listed = stays;
        stays
    }
}

impl SessionBatches {
    /// Returns true if it is to be listed among what is unfinished.
    #[inline]
    pub(crate) fn list(&mut self) -> bool {
        !std::mem::replace(&mut self.listed, true)
    }

    fn finish(
        &mut self,
        tuning: &Tuning,
        mut try_link: impl FnMut(Pe, LinkWork<'_>) -> Option<bool>,
    ) -> bool {
        if !self.batcher.pes().is_empty() && self.batcher.may_stay() {
            return true;
        }
        let mut stays = false;
        for i in (0..self.batcher.pes().len()).rev() {
            // A PE for which all is sent leaves its place to one that was attempted.
            let pe = self.batcher.pes()[i];
            let mut is_open = false;
            let tried = try_link(pe, &mut |connection| {
                is_open = true;
                self.send(pe, connection, tuning, AckRequest::Omitted)
            });
            // The endpoint's next call meets a link that is closed.
            stays |= tried.is_none() || is_open && self.batcher.has_any(pe);
        }
        stays
    }

    /// Sends what is batched for a PE, if there is room; returns whether nothing is left.
    pub(crate) fn send(
        &mut self,
        pe: Pe,
        connection: &mut Connection,
        tuning: &Tuning,
        ack: AckRequest,
    ) -> Result<bool, ConnectionEnd> {
        if !self.batcher.has_any(pe) {
            return Ok(true);
        }
        if !connection.origin.has_room_for_batch(tuning) {
            connection.flush()?;
            if !connection.origin.has_room_for_batch(tuning) {
                return Ok(false);
            }
        }
        let mut answers = ReplyDestinations::default();
        self.batcher.take(pe, &mut self.spare, &mut answers);
        // SAFETY: valid until the operations are complete, which they are once the batch is
        // answered, or until a call fails, which closes the connection.
        let seq = unsafe { connection.origin.batch(&self.spare, answers) };
        self.spare.clear();
        self.sent.push((pe, seq));
        if ack == AckRequest::Included {
            connection.origin.ask_for_ack(seq);
        }
        connection.flush().map(|()| true)
    }

    /// Returns the batches that were sent since the last call.
    #[inline]
    pub(crate) fn take_sent(&mut self) -> impl Iterator<Item = (Pe, u64)> {
        self.sent.drain(..)
    }
}
