//! What the verbs of a context use: an ep, on which they start operations, and the waits for these.

mod amos;
mod blocks;
mod requests;
mod strided;
mod transfers;
mod waits;

use crate::ep::{EpFailure, FiEndpoint, Post};
use crate::progress::Progress;
use crate::requests::Requests;
use crate::shared::{SharedEp, SharedState};
use rushmem_transport::kit::lock::lock;
use rushmem_transport::kit::pe_map::PeMap;
use rushmem_transport::kit::wait::Attempt;
use rushmem_transport::{Amos, Error};
use std::sync::{Arc, MutexGuard};

/// One context's endpoint.
pub(crate) struct OfiEndpoint {
    progress: Arc<Progress>,
    pub(crate) ep: Arc<SharedEp>,
    /// How many replies had come when they were last looked through.
    seen: u32,
    /// Completion does not cover the target's memory.
    flushes: bool,
    /// PEs that were written to since the last quiet, where that is so.
    pub(crate) unflushed: Vec<u32>,
    /// Small operations travel together: CPUs move the data, so that a message costs as much as a
    /// hundred of them. A NIC writes and reads a word faster than the target's CPU carries out a
    /// request, and buffers for messages are short there.
    pub(crate) gathers: bool,
    /// It is in a session, if it gathers.
    pub(crate) in_session: bool,
    /// The number of fences, as its requests know too.
    fences: u32,
    /// For each PE, how many fences there were when something was last written to it, so that what
    /// follows a fence waits for what went to the same PE before, and for nothing else.
    followed: PeMap<u32>,
    /// Counts the calls of fence, from 1.
    n_fences: u32,
    /// For each PE to which the last put was a write of the fabric's, the count at that time.
    written: PeMap<u32>,
    /// The number of fences there that were at the last quiet: nothing needs to follow them.
    settled: u32,
    /// It waits for an acknowledgment, which comes to the service.
    awaits_ack: bool,
    /// The PE for which it waits, if it is one.
    towards: Option<u32>,
    /// Polls of the ep over all waits: those that are short serve peers, too.
    polls: u32,
}

/// The ep was closed.
fn given_up() -> EpFailure {
    EpFailure { pe: None, why: "it was given up after another loss".to_owned() }
}

impl OfiEndpoint {
    pub(crate) fn new(progress: Arc<Progress>, ep: Arc<SharedEp>) -> OfiEndpoint {
        let shared = &progress.shared;
        let facts = &shared.fabric.facts;
        let (flushes, n_pes) = (!facts.delivery, shared.peers.n_pes());
        let (followed, written) = (PeMap::new(n_pes), PeMap::new(n_pes));
        let gathers = facts.copies() && shared.amos == Amos::Software;
        let (seen, fences) = (ep.replies.came(), lock(&ep.requests).issued.fences());
        OfiEndpoint {
            progress,
            ep,
            seen,
            flushes,
            unflushed: Vec::new(),
            gathers,
            in_session: false,
            fences,
            followed,
            n_fences: 1,
            written,
            settled: fences,
            awaits_ack: false,
            towards: None,
            polls: 0,
        }
    }

    pub(crate) fn shared(&self) -> &SharedState {
        &self.progress.shared
    }

    pub(crate) fn requests(&self) -> MutexGuard<'_, Requests> {
        lock(&self.ep.requests)
    }

    /// Lets everything work.
    pub(crate) fn poll(&mut self) -> Result<bool, Error> {
        let polled = self.progress.poll();
        self.or_close(polled)
    }

    /// Something failed: returns the first loss.
    fn give_up(&mut self, failure: &EpFailure) -> Error {
        self.close();
        self.shared().lose(failure)
    }

    /// The ep is closed, so that nothing touches memory of the caller's any more.
    fn close(&mut self) {
        *lock(&self.ep.ep) = None;
        self.requests().clear();
    }

    /// A call that ends with an error leaves nothing in flight, whatever the error is about.
    fn or_close<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        done.inspect_err(|_| self.close())
    }

    /// The error that ended everything, if one did.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        let checked = self.shared().loss.check();
        self.or_close(checked)
    }

    /// Works on the ep.
    #[inline]
    pub(crate) fn with_ep<T>(
        &mut self,
        work: impl FnOnce(&mut FiEndpoint) -> Result<T, EpFailure>,
    ) -> Result<T, Error> {
        let done = lock(&self.ep.ep).as_mut().map(work);
        done.unwrap_or_else(|| Err(given_up())).map_err(|failure| self.give_up(&failure))
    }

    /// Starts something towards a PE as soon as there is room. If the call waits until it is
    /// complete (`awaited`), no other thread need poll the ep for it.
    #[inline(always)]
    pub(crate) fn start(
        &mut self,
        pe: u32,
        awaited: bool,
        mut post: impl FnMut(&mut FiEndpoint) -> Result<Post, i32>,
    ) -> Result<(), Error> {
        match self.post(pe, awaited, &mut post)? {
            Post::Later => self.start_later(pe, awaited, post).map(|_| ()),
            Post::Started => Ok(()),
        }
    }

    /// One attempt to start something towards a PE.
    #[inline(always)]
    fn post(
        &mut self,
        pe: u32,
        awaited: bool,
        post: &mut (impl FnMut(&mut FiEndpoint) -> Result<Post, i32> + ?Sized),
    ) -> Result<Post, Error> {
        let mut ep = lock(&self.ep.ep);
        match ep.as_mut().map(post) {
            Some(Ok(posted)) => {
                if !awaited && posted != Post::Later {
                    self.progress.shared.note(&self.ep);
                }
                Ok(posted)
            }
            refused => {
                drop(ep);
                Err(self.refused(pe, refused.and_then(Result::err)))
            }
        }
    }

    /// Nothing can be started towards a PE: libfabric's number, or `None` if the ep was given up.
    #[cold]
    fn refused(&mut self, pe: u32, code: Option<i32>) -> Error {
        let failure = lock(&self.ep.ep)
            .as_ref()
            .zip(code)
            .map(|(ep, code)| EpFailure { pe: Some(pe), why: ep.why_refused(pe, code) });
        self.give_up(&failure.unwrap_or_else(given_up))
    }

    /// There was no room: everything works until there is.
    #[cold]
    fn start_later(
        &mut self,
        pe: u32,
        awaited: bool,
        mut post: impl FnMut(&mut FiEndpoint) -> Result<Post, i32>,
    ) -> Result<Post, Error> {
        self.shared().state.count_retry();
        let post: &mut dyn FnMut(&mut FiEndpoint) -> Result<Post, i32> = &mut post;
        self.wait_for(Some(pe), |this| {
            let polled = this.poll_ep()?;
            if this.with_ep(|ep| Ok(ep.pauses(pe)))? {
                return Ok(polled);
            }
            match this.post(pe, awaited, &mut *post)? {
                Post::Later => Ok(polled),
                posted => Ok(Attempt::Done(posted)),
            }
        })
    }
}
