//! What the verbs of a context are made of: starting operations on its ep, waiting for them, and taking
//! replies. Whoever waits lets everything work.
#![allow(unsafe_code)]

mod requests;

use crate::ep::{Failure, FiEndpoint, Post, Wanted};
use crate::message::Update;
use crate::native::Amo;
use crate::progress::Progress;
use crate::shared::{Shared, SharedEp};
use requests::Route;
use rushmem_transport::Amos;
use rushmem_transport::kit::backoff::Backoff;
use rushmem_transport::kit::pe_map::PeMap;
use rushmem_transport::kit::peers::check_aligned;
use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::wait::{Attempt, Waiter, wait};
use rushmem_transport::{
    AmoRequest, AmoWidth, Completion, Error, LocalBuf, OldValue, Pe, Put, RemoteAddr,
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
    routes: PeMap<Route>,
    /// The PEs that are not known to have carried out all that they were asked.
    owing: Vec<u32>,
    /// It waits for an answer, which comes to the service.
    listens: bool,
    /// The PE for which it waits, if it is one.
    towards: Option<u32>,
    /// Polls of the ep over all waits: those that are short serve peers, too.
    polls: u32,
}

impl Waiter for OfiEndpoint {
    fn state(&self) -> &ProgressState {
        &self.shared().state
    }

    fn poll(&mut self, mut worked: bool, backoff: &mut Backoff) -> Result<bool, Error> {
        if backoff.since_asleep() > UNCONFIRMED_AFTER {
            backoff.forget_sleep();
            self.confirm()?;
        }
        self.state().polled();
        self.polls = self.polls.wrapping_add(1);
        let in_turn = self.polls.is_multiple_of(POLLS_PER_SERVICE);
        let is_expected = self.listens || !self.due.is_empty();
        if is_expected || in_turn || self.state().oversubscribed() {
            let served = self.progress.poll_service();
            worked |= self.or_close(served)?;
        }
        worked |= self.collect();
        if worked {
            backoff.forget_sleep();
        }
        Ok(worked)
    }

    fn sleep(&mut self, at_most: Duration) {
        self.shared().sleep(at_most);
    }
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
            routes: PeMap::new(n_pes),
            owing: Vec::new(),
            listens: false,
            towards: None,
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
        *self.ep.ep.lock() = None;
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
        let done = self.ep.ep.lock().as_mut().map(work);
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
            Post::Started(_) | Post::Done => Ok(()),
        }
    }

    /// Waits for the end of an attempt to carry something out at once; whether there was one, or else nothing was started.
    #[cold]
    #[inline(never)]
    pub(crate) fn attempted(
        &mut self,
        pe: Pe,
        attempt: Result<Post, Failure>,
    ) -> Result<bool, Error> {
        match attempt {
            Ok(Post::Done) => Ok(true),
            Ok(Post::Later) => Ok(false),
            Ok(Post::Started(op)) => {
                self.until(Some(pe.0), |ep| Ok(ep.is_over(op).then_some(true)))
            }
            Err(failure) => Err(self.give_up(&failure)),
        }
    }

    /// One attempt to start something towards a PE.
    #[inline(always)]
    fn post(
        &mut self,
        pe: u32,
        post: &mut (impl FnMut(&mut FiEndpoint) -> Result<Post, i32> + ?Sized),
    ) -> Result<Post, Error> {
        let mut ep = self.ep.ep.lock();
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
        self.wait_for(Some(pe), |this| {
            let polled = this.poll_ep()?;
            match this.post(pe, &mut *post)? {
                Post::Later => Ok(polled),
                posted => Ok(Attempt::Done(posted)),
            }
        })
    }

    /// Does `step` until it yields something; everything works meanwhile. `towards` is who is waited for.
    fn until<T>(
        &mut self,
        towards: Option<u32>,
        mut step: impl FnMut(&mut FiEndpoint) -> Result<Option<T>, Failure>,
    ) -> Result<T, Error> {
        self.wait_for(towards, |this| {
            this.with_ep(|ep| {
                // The first time there is most often room, and nothing to take.
                if let Some(done) = step(ep)? {
                    return Ok(Attempt::Done(done));
                }
                match ep.poll(|_| ())? {
                    0 => Ok(Attempt::Idle),
                    _ => Ok(step(ep)?.map_or(Attempt::Worked, Attempt::Done)),
                }
            })
        })
    }

    /// Repeats an attempt until it is done; everything works meanwhile. `towards` is the PE that is waited for.
    fn wait_for<T>(
        &mut self,
        towards: Option<u32>,
        attempt: impl FnMut(&mut OfiEndpoint) -> Result<Attempt<T>, Error>,
    ) -> Result<T, Error> {
        self.towards = towards;
        wait(self, attempt)
    }

    /// Polls the ep; whether there was work.
    fn poll_ep<T>(&mut self) -> Result<Attempt<T>, Error> {
        let taken = self.with_ep(|ep| ep.poll(|_| ()))?;
        Ok(if taken > 0 { Attempt::Worked } else { Attempt::Idle })
    }

    /// After a long wait: whether the PEs that owe something are there at all. Not every provider says so
    /// when a message is lost; a read that fails does.
    fn confirm(&mut self) -> Result<(), Error> {
        let mut owing: Vec<u32> = self.due.iter().map(|due| due.pe).chain(self.towards).collect();
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
        self.wait_for(None, |this| {
            this.collect();
            match this.due.iter().filter(|due| which(due)).count() <= most {
                true => Ok(Attempt::Done(())),
                false => this.poll_ep(),
            }
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

    /// Carries an atomic operation out and returns the old value.
    #[inline(always)]
    pub(crate) fn fetch(&mut self, dest: RemoteAddr, amo: Amo, pe: Pe) -> Result<u64, Box<Error>> {
        let mut old = 0u64;
        let wanted = Wanted { at: (&raw mut old).cast(), width: AmoWidth::Eight };
        // SAFETY: a local that lives until the operation is over, or the ep is closed after a loss.
        let attempt = unsafe { self.fetch_at_once(dest, amo, pe, wanted) };
        if !matches!(attempt, Ok(Post::Done)) && !self.attempted(pe, attempt)? {
            // SAFETY: as above.
            unsafe { self.fetch_otherwise(dest, amo, pe, wanted) }?;
        }
        // SAFETY: a live local, written through a pointer to it.
        Ok(unsafe { (&raw const old).read() })
    }

    /// As [`fetch`](Self::fetch), whatever is in its way.
    ///
    /// # Safety
    /// As of [`start_amo`](Self::start_amo).
    #[cold]
    #[inline(never)]
    unsafe fn fetch_otherwise(
        &mut self,
        dest: RemoteAddr,
        amo: Amo,
        pe: Pe,
        wanted: Wanted,
    ) -> Result<(), Error> {
        let Amo { op, width, operand, condition } = amo;
        let request = AmoRequest { dest, width, op, operand, condition, old: OldValue::Returned };
        // SAFETY: by contract.
        unsafe { self.start_amo(pe, &request, Some(wanted)) }?;
        match self.shared().amos {
            Amos::Network => self.completed(pe),
            Amos::Software => self.due_at_most(0, |due| due.wanted.at == wanted.at),
        }
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

    /// A put. Most are so short that they are copied when they start, with nothing in their way.
    ///
    /// # Safety
    /// The source is valid for reads during this call, or until the next quiet if that completes it.
    #[inline(always)]
    pub(crate) unsafe fn write(
        &mut self,
        dest: RemoteAddr,
        source: LocalBuf,
        pe: Pe,
        completion: Completion,
    ) -> Result<(), Box<Error>> {
        // SAFETY: valid during this call.
        match unsafe { self.write_at_once(dest, source, pe) } {
            true => Ok(()),
            // SAFETY: by contract.
            false => unsafe { self.write_otherwise(dest, source, pe, completion) },
        }
    }

    /// Starts a put that is copied at once, where nothing is in its way; whether it did.
    ///
    /// # Safety
    /// The source is valid for reads.
    #[inline(always)]
    unsafe fn write_at_once(&mut self, dest: RemoteAddr, source: LocalBuf, pe: Pe) -> bool {
        let shared = self.shared();
        if pe == shared.me || self.is_past_fence(pe) {
            return false;
        }
        let Some(remote) = shared.known_remote(pe, dest, source.nbytes) else { return false };
        self.touch(pe);
        // Found once: the compiler does not know that the stores below leave these pointers as they are.
        let (shared, own) = (self.shared(), &self.ep);
        let Some(mut ep) = own.ep.own() else { return false };
        let Some(ep) = ep.as_mut() else { return false };
        shared.note(own);
        // SAFETY: valid during this call.
        unsafe { ep.write_at_once(remote, source) }
    }

    /// A put, whatever is in its way.
    ///
    /// # Safety
    /// As of [`write`](Self::write).
    #[cold]
    #[inline(never)]
    unsafe fn write_otherwise(
        &mut self,
        dest: RemoteAddr,
        source: LocalBuf,
        pe: Pe,
        completion: Completion,
    ) -> Result<(), Box<Error>> {
        let is_long = source.nbytes > self.shared().copy_up_to(completion);
        // One call of libfabric's may take long: a provider over sockets moves a megabyte in one. The service thread leaves the CPU
        // alone meanwhile, for a few of its sleeps at most.
        if is_long {
            self.shared().state.enter_wait();
        }
        // SAFETY: by contract.
        let done = unsafe { self.put_and_wait(pe, &Put { dest, source, completion }) };
        if is_long {
            self.shared().state.leave_wait();
        }
        done.map_err(Box::new)
    }

    /// # Safety
    /// As of [`write`](Self::write).
    unsafe fn put_and_wait(&mut self, pe: Pe, put: &Put) -> Result<(), Error> {
        // SAFETY: by contract.
        let is_free = unsafe { self.start_put(pe, put) }?;
        let waits = put.completion == Completion::Now;
        if waits && !is_free { self.completed(pe) } else { Ok(()) }
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

    /// A get. Most are one read, with nothing in its way; while such a get polls nobody else need.
    ///
    /// # Safety
    /// The destination is valid for writes during this call, or until the next quiet if that completes it.
    #[inline(always)]
    pub(crate) unsafe fn read(
        &mut self,
        dest: LocalBuf,
        source: RemoteAddr,
        pe: Pe,
        completion: Completion,
    ) -> Result<(), Box<Error>> {
        if completion == Completion::Now {
            // SAFETY: valid during this call.
            let attempt = unsafe { self.read_at_once(dest, source, pe) };
            if matches!(attempt, Ok(Post::Done)) || self.attempted(pe, attempt)? {
                return Ok(());
            }
        }
        // SAFETY: by contract.
        unsafe { self.read_otherwise(dest, source, pe, completion) }
    }

    /// Attempts a get that is one read, where nothing is in its way.
    ///
    /// # Safety
    /// The destination is valid for writes until the read is over, or the ep was closed.
    #[inline(always)]
    unsafe fn read_at_once(
        &mut self,
        dest: LocalBuf,
        source: RemoteAddr,
        pe: Pe,
    ) -> Result<Post, Failure> {
        let shared = self.shared();
        let is_one_read = dest.nbytes.wrapping_sub(1) < shared.tuning.max_bytes;
        if !is_one_read || pe == shared.me {
            return Ok(Post::Later);
        }
        let Some(remote) = shared.known_remote(pe, source, dest.nbytes) else {
            return Ok(Post::Later);
        };
        let known = shared.descriptor_of(dest);
        let Some(mut ep) = self.ep.ep.own() else { return Ok(Post::Later) };
        let Some(ep) = ep.as_mut() else { return Ok(Post::Later) };
        // SAFETY: by contract.
        match unsafe { ep.read(remote, dest, known) } {
            Ok(Post::Started(op)) => ep.poll_for(op),
            _ => Ok(Post::Later),
        }
    }

    /// A get, whatever is in its way.
    ///
    /// # Safety
    /// As of [`read`](Self::read).
    #[cold]
    #[inline(never)]
    unsafe fn read_otherwise(
        &mut self,
        dest: LocalBuf,
        source: RemoteAddr,
        pe: Pe,
        completion: Completion,
    ) -> Result<(), Box<Error>> {
        if dest.nbytes == 0 {
            return Ok(());
        }
        if pe == self.shared().me {
            // SAFETY: the destination is valid by contract.
            let is_done = unsafe { self.shared().segments.read_into(source, dest) };
            if is_done {
                return Ok(());
            }
        }
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
        if completion == Completion::Now {
            self.completed(pe)?;
        }
        Ok(())
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
