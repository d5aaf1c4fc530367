//! What the verbs of a context are made of: starting operations on its ep, waiting for them, and taking
//! replies. Whoever waits lets everything work.
#![allow(unsafe_code)]

mod requests;
mod routes;

use crate::ep::{Failure, FiEndpoint, Post, Wanted};
use crate::message::Update;
use crate::progress::Progress;
use crate::shared::{Shared, SharedEp};
use routes::Routes;
use rushmem_transport::Amos;
use rushmem_transport::kit::backoff::Backoff;
use rushmem_transport::kit::lock::lock;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::{
    AmoRequest, AmoWidth, Completion, Error, Get, LocalAccess, Pe, Put, RemoteAddr,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Polls of the ep between two polls of the service, while no reply is due.
const POLLS_PER_SERVICE: u32 = 16;
/// A wait that has slept for so long without news is unconfirmed: the peer is asked, and again after as long.
const UNCONFIRMED_AFTER: Duration = Duration::from_secs(1);

/// An atomic operation whose old value is due.
pub(crate) struct Due {
    slot: u32,
    pub(crate) pe: u32,
    wanted: Wanted,
}

/// One context's endpoint.
pub(crate) struct OfiEndpoint {
    progress: Arc<Progress>,
    pub(crate) ep: Arc<SharedEp>,
    due: Vec<Due>,
    /// Slots that no operation has.
    slots: Vec<u32>,
    /// How many replies had come when they were last looked through.
    seen: u32,
    /// Completion does not tell of the target's memory.
    flushes: bool,
    /// PEs that were written to since the last quiet, where that is so.
    pub(crate) unflushed: Vec<u32>,
    /// Counts the fences; and for each PE, how many there were when something was last written to it, so that what follows a fence
    /// waits for what went to the same PE before, and for nothing else.
    fences: u32,
    /// How many fences there were at the last quiet: nothing needs to follow them.
    settled: u32,
    routes: Routes,
    /// The PEs that are not known to have carried out all that they were asked.
    owing: Vec<u32>,
    /// It waits for an answer, which comes to the service.
    listens: bool,
    /// Polls of the ep over all waits: those that are short serve peers, too.
    polls: u32,
}

/// The ep was closed.
fn given_up() -> Failure {
    Failure { pe: None, why: "it was given up after another loss".to_owned() }
}

impl OfiEndpoint {
    pub(crate) fn new(progress: Arc<Progress>, ep: Arc<SharedEp>) -> OfiEndpoint {
        let slots = (0..progress.shared.tuning.amos as u32).collect();
        let (due, unflushed) = (Vec::new(), Vec::new());
        let seen = ep.replies.came();
        let flushes = !progress.shared.fabric.facts.delivery;
        let n_pes = progress.shared.peers.n_pes();
        OfiEndpoint {
            progress,
            ep,
            due,
            slots,
            seen,
            flushes,
            unflushed,
            fences: 0,
            settled: 0,
            routes: Routes::new(n_pes),
            owing: Vec::new(),
            listens: false,
            polls: 0,
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.progress.shared
    }

    /// Lets everything work.
    pub(crate) fn poll(&mut self) -> Result<bool, Error> {
        let polled = self.progress.poll();
        self.or_close(polled)
    }

    /// Something failed: returns the first loss.
    fn give_up(&mut self, failure: &Failure) -> Error {
        self.close();
        self.shared().lose(failure)
    }

    /// The ep is closed, so that nothing touches memory of the caller's any more.
    fn close(&mut self) {
        *lock(&self.ep.ep) = None;
        self.due.clear();
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
        work: impl FnOnce(&mut FiEndpoint) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        let done = lock(&self.ep.ep).as_mut().map(work);
        done.unwrap_or_else(|| Err(given_up())).map_err(|failure| self.give_up(&failure))
    }

    /// Starts something towards a PE as soon as there is room.
    #[inline(always)]
    pub(crate) fn start(
        &mut self,
        pe: u32,
        mut post: impl FnMut(&mut FiEndpoint) -> Result<Post, i32>,
    ) -> Result<(), Error> {
        match self.post(pe, &mut post)? {
            Post::Later => self.start_later(pe, post).map(|_| ()),
            Post::Started => Ok(()),
        }
    }

    /// One attempt to start something towards a PE.
    #[inline(always)]
    fn post(
        &mut self,
        pe: u32,
        post: &mut (impl FnMut(&mut FiEndpoint) -> Result<Post, i32> + ?Sized),
    ) -> Result<Post, Error> {
        let mut ep = lock(&self.ep.ep);
        match ep.as_mut().map(post) {
            Some(Ok(posted)) => {
                if posted != Post::Later {
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
        let why = |code| self.shared().fabric.library.strerror(code);
        let failure = code.map(|code| Failure { pe: Some(pe), why: why(code) });
        self.give_up(&failure.unwrap_or_else(given_up))
    }

    /// There was no room: everything works until there is.
    #[cold]
    fn start_later(
        &mut self,
        pe: u32,
        mut post: impl FnMut(&mut FiEndpoint) -> Result<Post, i32>,
    ) -> Result<Post, Error> {
        let post: &mut dyn FnMut(&mut FiEndpoint) -> Result<Post, i32> = &mut post;
        self.wait(Some(pe), |this| {
            let taken = this.with_ep(|ep| ep.poll(|_| ()))?;
            let posted = this.post(pe, &mut *post)?;
            Ok(((posted != Post::Later).then_some(posted), taken > 0))
        })
    }

    /// Does `step` until it yields something; everything works meanwhile. `towards` is who is waited for.
    fn until<T>(
        &mut self,
        towards: Option<u32>,
        mut step: impl FnMut(&mut FiEndpoint) -> Result<Option<T>, Failure>,
    ) -> Result<T, Error> {
        self.wait(towards, |this| {
            let mut taken = 0;
            let done = this.with_ep(|ep| {
                // The first time there is most often room, and nothing to take.
                if let Some(done) = step(ep)? {
                    return Ok(Some(done));
                }
                taken = ep.poll(|_| ())?;
                if taken > 0 { step(ep) } else { Ok(None) }
            })?;
            Ok((done, taken > 0))
        })
    }

    /// Attempts something until it yields something; everything works meanwhile. An attempt also tells whether it found work.
    fn wait<T>(
        &mut self,
        towards: Option<u32>,
        mut attempt: impl FnMut(&mut OfiEndpoint) -> Result<(Option<T>, bool), Error>,
    ) -> Result<T, Error> {
        let mut wait = None;
        let result = loop {
            let worked = match attempt(self) {
                Ok((Some(done), _)) => break Ok(done),
                Ok((None, worked)) => worked,
                Err(error) => break Err(error),
            };
            let backoff = wait.get_or_insert_with(|| self.progress.begin());
            if let Err(error) = self.pause(backoff, towards, worked) {
                break Err(error);
            }
        };
        if wait.is_some() {
            self.progress.end();
        }
        result
    }

    /// Between two polls of the ep; `worked` when the last found something.
    fn pause(
        &mut self,
        backoff: &mut Backoff,
        towards: Option<u32>,
        mut worked: bool,
    ) -> Result<(), Error> {
        self.shared().attendance.polled();
        self.polls = self.polls.wrapping_add(1);
        let in_turn = self.polls.is_multiple_of(POLLS_PER_SERVICE);
        let is_expected = self.listens || !self.due.is_empty();
        if is_expected || in_turn || self.shared().oversubscribed {
            let served = self.progress.poll_service();
            worked |= self.or_close(served)?;
        }
        worked |= self.collect();
        if worked {
            backoff.renew();
            backoff.forget_sleep();
            return Ok(());
        }
        self.progress.pause(backoff);
        if backoff.since_asleep() > UNCONFIRMED_AFTER {
            backoff.forget_sleep();
            self.confirm(towards)?;
        }
        Ok(())
    }

    /// After a long wait: whether the PEs that owe something are there at all. Not every provider says so
    /// when a message is lost; a read that fails does.
    fn confirm(&mut self, towards: Option<u32>) -> Result<(), Error> {
        let mut owing: Vec<u32> = self.due.iter().map(|due| due.pe).chain(towards).collect();
        owing.sort_unstable();
        owing.dedup();
        for pe in owing {
            let from = self.shared().some_byte(pe);
            let confirmed = self.shared().confirm(pe);
            confirmed.map_err(|failure| self.give_up(&failure))?;
            self.with_ep(|ep| {
                if let Some(from) = from
                    && ep.pending(pe) == 0
                {
                    let asked = ep.read_and_forget(&from);
                    asked.map_err(|code| Failure { pe: Some(pe), why: ep.strerror(code) })?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Takes the replies that have come; whether there were any.
    pub(crate) fn collect(&mut self) -> bool {
        let came = self.ep.replies.came();
        if came == self.seen {
            return false;
        }
        self.seen = came;
        let (replies, slots) = (&self.ep.replies, &mut self.slots);
        self.due.retain(|due| {
            let Some(old) = replies.take(due.slot) else { return true };
            // SAFETY: valid for a word of this width until now, by the contract of `start_amo`.
            unsafe { due.wanted.width.write(due.wanted.at, old) };
            slots.push(due.slot);
            false
        });
        true
    }

    /// Whether replies are due.
    pub(crate) fn any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Waits until no more than so many replies that `which` chooses are due.
    pub(crate) fn due_at_most(
        &mut self,
        most: usize,
        which: impl Fn(&Due) -> bool,
    ) -> Result<(), Error> {
        self.wait(None, |this| {
            this.collect();
            if this.due.iter().filter(|due| which(due)).count() <= most {
                return Ok((Some(()), false));
            }
            let taken = this.with_ep(|ep| ep.poll(|_| ()))?;
            Ok((None, taken > 0))
        })
    }

    /// Refuses a word that no atomic operation can be about, before anything is started for it.
    pub(crate) fn check_word(&self, pe: Pe, at: RemoteAddr, width: AmoWidth) -> Result<(), Error> {
        check_aligned(pe, at, width)?;
        if pe == self.shared().me && self.shared().segments.word(at, width).is_some() {
            return Ok(());
        }
        self.shared().remote(pe, at, width.nbytes()).map(|_| ())
    }

    /// Carries out an atomic operation and returns the old value.
    pub(crate) fn fetch(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        let mut old = 0u64;
        let wanted = Wanted { at: (&raw mut old).cast(), width: AmoWidth::Eight };
        // SAFETY: a local that lives until the operation is over, or the ep is closed after a loss.
        unsafe { self.start_amo(pe, request, Some(wanted)) }?;
        match self.shared().amos {
            Amos::Network => self.completed(pe),
            Amos::Software => self.due_at_most(0, |due| due.wanted.at == wanted.at),
        }?;
        // SAFETY: a live local, written through a pointer to it.
        Ok(unsafe { (&raw const old).read() })
    }

    /// Starts an atomic operation.
    ///
    /// # Safety
    /// Where the old value is wanted, if it is, is valid for writes until its reply is collected.
    pub(crate) unsafe fn start_amo(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        wanted: Option<Wanted>,
    ) -> Result<(), Error> {
        if self.shared().amos == Amos::Network {
            // SAFETY: by contract.
            return unsafe { self.start_native(pe, request, wanted) };
        }
        let &AmoRequest { dest, width, .. } = request;
        check_aligned(pe, dest, width)?;
        if self.update_own(pe, request, wanted) {
            return Ok(());
        }
        self.follow_writes(pe)?;
        self.shared().remote(pe, dest, width.nbytes())?;
        let slot = wanted.map(|wanted| self.slot(pe, wanted)).transpose()?;
        self.send(pe, Some(Update::of(request)), None, slot, (false, false))
    }

    /// Updates a word of this PE; whether it is one.
    fn update_own(&mut self, pe: Pe, request: &AmoRequest, wanted: Option<Wanted>) -> bool {
        if pe != self.shared().me {
            return false;
        }
        let Some(old) = self.shared().segments.apply(request) else { return false };
        if let Some(Wanted { at, width }) = wanted {
            // SAFETY: valid by the contract of `start_amo`.
            unsafe { width.write(at, old) };
        }
        self.shared().host.arrived();
        true
    }

    /// A put that is not copied.
    ///
    /// # Safety
    /// The source is valid for reads during this call, or until the next quiet if that completes it.
    pub(crate) unsafe fn put_long(&mut self, pe: Pe, put: &Put) -> Result<(), Error> {
        // One call of libfabric may take long: a provider over sockets moves a megabyte in one. The
        // service thread leaves the CPU alone meanwhile, for a few of its sleeps at most.
        self.shared().attendance.begin_wait();
        // SAFETY: the same contract.
        let done = match unsafe { self.start_put(pe, put) } {
            Ok(false) if put.completion == Completion::Now => self.completed(pe),
            started => started.map(|_| ()),
        };
        self.shared().attendance.end_wait();
        done
    }

    /// Starts a put; returns whether its source is free already. A caller that waits for that would wait for the target.
    ///
    /// # Safety
    /// The source is valid for reads until it is free: then, or when [`completed`](Self::completed) or the next quiet returns.
    pub(crate) unsafe fn start_put(&mut self, pe: Pe, put: &Put) -> Result<bool, Error> {
        let &Put { dest, source, completion } = put;
        self.follow(pe)?;
        if source.nbytes == 0 {
            return Ok(true);
        }
        if pe == self.shared().me {
            // SAFETY: the source is valid by contract.
            let is_done = unsafe { self.shared().segments.write_from(dest, source) };
            if is_done {
                self.shared().host.arrived();
                return Ok(true);
            }
        }
        let remote = self.shared().remote(pe, dest, source.nbytes)?;
        self.touch(pe);
        if source.nbytes <= self.shared().copy_up_to(completion) {
            // SAFETY: valid during this call.
            self.start(pe.0, |ep| unsafe { ep.write_copy(remote, source) })?;
            return Ok(true);
        }
        self.shared().check_memory(LocalAccess::Read, source)?;
        let known = self.shared().descriptor_of(source);
        let mut done = 0;
        while done < source.nbytes {
            let part = source.skip(done).first(self.shared().tuning.max_bytes);
            let to = remote.skip(done);
            // SAFETY: valid until it completes, by contract.
            self.start(pe.0, |ep| unsafe { ep.write(&to, part, known) })?;
            done += part.nbytes;
        }
        Ok(false)
    }

    /// A PE is written to.
    #[inline(always)]
    fn touch(&mut self, pe: Pe) {
        if self.flushes {
            self.touch_to_flush(pe);
        }
    }

    #[inline(never)]
    fn touch_to_flush(&mut self, pe: Pe) {
        if !self.unflushed.contains(&pe.0) {
            self.unflushed.push(pe.0);
            self.ep.undelivered.store(true, Ordering::Relaxed);
        }
    }

    /// Starts a get; returns whether its bytes have come already.
    ///
    /// # Safety
    /// The destination is valid for writes until they have: then, or when
    /// [`completed`](Self::completed) or the next quiet returns.
    pub(crate) unsafe fn start_get(&mut self, pe: Pe, get: &Get) -> Result<bool, Error> {
        let &Get { dest, source, .. } = get;
        if dest.nbytes == 0 {
            return Ok(true);
        }
        // SAFETY: the destination is valid by contract.
        if pe == self.shared().me && unsafe { self.shared().segments.read_into(source, dest) } {
            return Ok(true);
        }
        self.shared().check_memory(LocalAccess::Write, dest)?;
        let remote = self.shared().remote(pe, source, dest.nbytes)?;
        let known = self.shared().descriptor_of(dest);
        let mut done = 0;
        while done < dest.nbytes {
            let part = dest.skip(done).first(self.shared().tuning.max_bytes);
            let from = remote.skip(done);
            // SAFETY: a part of what is valid by contract.
            self.start(pe.0, |ep| unsafe { ep.read(from, part, known) })?;
            done += part.nbytes;
        }
        Ok(false)
    }

    /// Waits until nothing of the fabric's is in flight towards a PE.
    #[inline(never)]
    pub(crate) fn completed(&mut self, pe: Pe) -> Result<(), Error> {
        self.until(Some(pe.0), |ep| Ok((ep.pending(pe.0) == 0).then_some(())))
    }

    /// Waits until nothing of the fabric's is in flight.
    pub(crate) fn all_completed(&mut self) -> Result<(), Error> {
        self.until(None, |ep| Ok((ep.in_flight() == 0).then_some(())))
    }

    /// Waits until what was written to a PE is in its memory.
    pub(crate) fn delivered(&mut self, pe: Pe) -> Result<(), Error> {
        self.completed(pe)?;
        self.flush(Some(pe))
    }

    /// After completions that do not tell of the target's memory: read from it, which comes after what was
    /// written before.
    pub(crate) fn flush(&mut self, only: Option<Pe>) -> Result<(), Error> {
        let chosen = |pe: &u32| only.is_none_or(|only| only.0 == *pe);
        let touched: Vec<u32> = self.unflushed.iter().copied().filter(chosen).collect();
        for pe in touched {
            if let Some(from) = self.shared().some_byte(pe) {
                self.start(pe, |ep| ep.read_and_forget(&from))?;
            }
        }
        self.unflushed.retain(|pe| !chosen(pe));
        match only {
            Some(pe) => self.completed(pe),
            None => self.all_completed(),
        }?;
        self.ep.undelivered.store(!self.unflushed.is_empty(), Ordering::Relaxed);
        Ok(())
    }
}
