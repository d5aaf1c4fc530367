//! What all endpoints and the service thread of a PE share: peers, workers, and who lets them work.
//!
//! Locks: the target is only ever tried, never waited for; an origin is waited for by its endpoints and
//! tried by everyone else. Nobody waits for a lock while holding another, except for the list of notes,
//! which is held for a few instructions.

use crate::area::Areas;
use crate::origin::Origin;
use crate::peers::{Contact, Peers};
use crate::settings::Tuning;
use crate::target::Target;
use crate::ucp::{Context, Worker};
use rushmem_transport::kit::amos::Amos;
use rushmem_transport::{Error, Host, Open, Pe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

/// What a context leaves unfinished is looked after within about this time.
pub(crate) const SOON: Duration = Duration::from_micros(50);

/// Looks that the service thread has at a worker that is busy, before others get it again.
const MANY_LOOKS: u32 = 100;

/// A worker that issues, with what others may know of it without its lock.
pub(crate) struct Issuer {
    pub(crate) origin: Mutex<Origin>,
    /// How many endpoints use it.
    pub(crate) users: AtomicUsize,
    /// Counts the verbs: as long as it moves, its owner lets it work.
    uses: AtomicU64,
    /// It is among the notes.
    noted: AtomicBool,
    efd: OwnedFd,
}

/// Issuers that their owners left unfinished.
#[derive(Default)]
struct Notes {
    any: AtomicBool,
    list: Mutex<Vec<Note>>,
    /// The service thread looks at the notes by itself, or the timer will wake it.
    attended: AtomicBool,
}

struct Note {
    issuer: Arc<Issuer>,
    /// Its uses at the last look.
    uses: u64,
}

/// One PE's share in the network. Fields are dropped in this order: workers before memory.
pub(crate) struct Shared {
    pub(crate) me: Pe,
    pub(crate) oversubscribed: bool,
    pub(crate) tuning: Tuning,
    pub(crate) amos: Amos,
    pub(crate) host: Arc<dyn Host>,
    /// The name of this PE's host, for messages.
    pub(crate) own_host: String,
    pub(crate) areas: Arc<Areas>,
    pub(crate) contacts: Box<[OnceLock<Contact>]>,
    pub(crate) issuers: Mutex<Vec<Arc<Issuer>>>,
    pub(crate) target: Mutex<Target>,
    pub(crate) context: Arc<Context>,
    /// Rings when notes are due, and at the end.
    pub(crate) timer: OwnedFd,
    /// The descriptor of the target's worker.
    target_efd: OwnedFd,
    /// Counts the looks of threads that wait: as long as it moves, the service thread need not.
    pub(crate) polls: AtomicU64,
    /// How many threads sleep in [`Shared::sleep`].
    pub(crate) sleepers: AtomicU32,
    /// Whoever polled so far sleeps elsewhere: the service thread takes over.
    handed_over: AtomicBool,
    /// The service thread looks at its timer alone.
    pub(crate) napping: AtomicBool,
    pub(crate) closing: AtomicBool,
    notes: Notes,
    loss: OnceLock<Error>,
}

/// A lock whose holder panicked is as good as any: the job is ending.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What ends the service thread's sleep early.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The timer alone: others serve.
    Timer,
    /// Also a request of a peer.
    Request,
    /// Also news for what was left unfinished.
    Anything,
}

/// What a PE brings along to [`Shared::new`].
pub(crate) struct Start {
    pub(crate) open: Open,
    pub(crate) tuning: Tuning,
    pub(crate) amos: Amos,
    pub(crate) own_host: String,
    pub(crate) areas: Arc<Areas>,
    pub(crate) context: Arc<Context>,
    pub(crate) target: Target,
    pub(crate) timer: OwnedFd,
}

impl Issuer {
    pub(crate) fn new(origin: Origin) -> std::io::Result<Issuer> {
        Ok(Issuer {
            efd: origin.worker().efd().try_clone_to_owned()?,
            origin: Mutex::new(origin),
            users: AtomicUsize::new(0),
            uses: AtomicU64::new(0),
            noted: AtomicBool::new(false),
        })
    }
}

impl Shared {
    pub(crate) fn new(start: Start) -> std::io::Result<Shared> {
        let Start { open, tuning, amos, own_host, areas, context, target, timer } = start;
        Ok(Shared {
            me: open.pe,
            oversubscribed: open.oversubscribed,
            tuning,
            amos,
            host: open.host,
            own_host,
            areas,
            contacts: (0..open.n_pes).map(|_| OnceLock::new()).collect(),
            issuers: Mutex::default(),
            target_efd: target.worker().efd().try_clone_to_owned()?,
            target: Mutex::new(target),
            context,
            timer,
            polls: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            handed_over: AtomicBool::new(false),
            napping: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            notes: Notes::default(),
            loss: OnceLock::new(),
        })
    }

    /// Work with an issuer's origin. What is left unfinished is noted. A loss ends everything: when this returns one, UCX
    /// uses no memory of callers any more.
    pub(crate) fn with_origin<T: Send>(
        &self,
        issuer: &Arc<Issuer>,
        work: impl FnOnce(&mut Origin) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut origin = lock(&issuer.origin);
        issuer.uses.fetch_add(1, Ordering::Relaxed);
        let done = work(&mut origin);
        if let Err(error @ Error::Lost(..)) = &done {
            let limit = self.tuning.abandon_limit;
            if let Err(unended) = origin.abandon(limit) {
                self.host.cannot_go_on(&format!(
                    "{error}; {unended} operations of UCX go on with memory of calls that have failed, {limit:?} after that, so \
                     this process ends: let UCX use transports that it can cancel (SHMEM_UCX_TLS), or another network \
                     (SHMEM_TRANSPORT)"
                ));
            }
        } else if origin.is_unfinished() && !issuer.noted.swap(true, Ordering::Relaxed) {
            drop(origin);
            self.note(issuer);
        }
        done
    }

    fn note(&self, issuer: &Arc<Issuer>) {
        lock(&self.notes.list).push(Note { issuer: Arc::clone(issuer), uses: 0 });
        self.notes.any.store(true, Ordering::Relaxed);
        // Either this thread sees that nobody attends, or the service thread sees the note.
        fence(Ordering::SeqCst);
        if !self.notes.attended.load(Ordering::Relaxed) {
            self.notes.attended.store(true, Ordering::Relaxed);
            self.ring_after(SOON);
        }
    }

    /// The service thread will look at the notes again soon, whatever happens.
    pub(crate) fn attend(&self) {
        self.notes.attended.store(true, Ordering::Relaxed);
    }

    /// The service thread will sleep until something happens: whoever notes more sets the timer.
    /// False when there are notes that ask for another look soon.
    pub(crate) fn may_stop_attending(&self) -> bool {
        self.notes.attended.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let busy = self.look_after(true);
        if busy {
            self.attend();
        }
        !busy
    }

    /// Let the issuers work that were left unfinished; with `arm`, have their descriptors tell of what
    /// comes. Whether one has more to do, or its owner has been back.
    pub(crate) fn look_after(&self, arm: bool) -> bool {
        if !self.notes.any.load(Ordering::Relaxed) {
            return false;
        }
        // In this order: a note that comes in between is taken now, or found by the next look.
        self.notes.any.store(false, Ordering::Relaxed);
        let mut notes = std::mem::take(&mut *lock(&self.notes.list));
        let mut busy = false;
        notes.retain_mut(|note| {
            let uses = note.issuer.uses.load(Ordering::Relaxed);
            let in_use = arm && std::mem::replace(&mut note.uses, uses) != uses;
            let Some(mut origin) = try_lock(&note.issuer.origin).filter(|_| !in_use) else {
                busy = true;
                return true;
            };
            let mut looks = if arm { MANY_LOOKS } else { 1 };
            let step = match arm || origin.holds() || !origin.worker().copies() {
                true => Origin::advance,
                // To ask peers what has arrived costs them messages: the service thread does, now and then.
                false => Origin::progress,
            };
            // A loss is told by whoever meets it next.
            while looks > 0 && step(&mut origin, self).unwrap_or(false) {
                looks -= 1;
            }
            if origin.is_unfinished() {
                busy |= arm && !origin.worker().arm();
                return self.check().is_ok();
            }
            note.issuer.noted.store(false, Ordering::Relaxed);
            false
        });
        if !notes.is_empty() {
            lock(&self.notes.list).append(&mut notes);
            self.notes.any.store(true, Ordering::Relaxed);
        }
        busy
    }

    /// Some issuer was left with transfers in flight.
    pub(crate) fn moves_data(&self) -> bool {
        let notes = lock(&self.notes.list);
        notes
            .iter()
            .any(|note| try_lock(&note.issuer.origin).is_some_and(|origin| origin.moves_data()))
    }

    /// The service thread is about to look at its timer alone; false when it has been handed over to.
    pub(crate) fn may_nap(&self) -> bool {
        self.napping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.handed_over.swap(false, Ordering::Relaxed)
    }

    /// Let the service thread wake after so long.
    pub(crate) fn ring_after(&self, time: Duration) {
        let at = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(time) };
        // It fails for times that are no times.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &at);
    }

    /// As [`Shared::serve`], by the service thread.
    pub(crate) fn serve_uncounted(&self) -> bool {
        let worked = try_lock(&self.target).is_some_and(|target| target.serve());
        if worked {
            self.host.arrived();
        }
        worked
    }

    /// Serve peers and look after what was left unfinished.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        self.look_after(false);
        let worked = self.serve();
        self.check().map(|()| worked)
    }

    /// Have the target's descriptor tell of what comes; false when there is something to do already, and
    /// `None` while somebody else serves.
    pub(crate) fn arm(&self) -> Option<bool> {
        try_lock(&self.target).map(|target| target.worker().arm())
    }

    /// The service thread's sleep.
    pub(crate) fn rest(&self, until: Until, at_most: Duration) {
        let issuers: Vec<Arc<Issuer>> = match until {
            Until::Timer | Until::Request => Vec::new(),
            Until::Anything => {
                lock(&self.notes.list).iter().map(|note| Arc::clone(&note.issuer)).collect()
            }
        };
        let mut fds = vec![PollFd::new(&self.timer, PollFlags::IN)];
        if until != Until::Timer {
            fds.push(PollFd::new(&self.target_efd, PollFlags::IN));
        }
        fds.extend(issuers.iter().map(|issuer| PollFd::new(&issuer.efd, PollFlags::IN)));
        // Interrupted or not, what there is to do is looked up.
        let _ = poll(&mut fds, Some(&timespec(at_most)));
        if !fds[0].revents().is_empty() {
            // It is empty when the timer was set again meanwhile.
            let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        }
    }
}

/// A duration for the kernel.
fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

impl Peers for Shared {
    fn check(&self) -> Result<(), Error> {
        match self.loss.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    fn lose(&self, pe: Pe, why: &str) -> Error {
        let host = self.contact(pe).map_or("an unknown host", |contact| contact.host.as_str());
        let (me, own) = (self.me, &self.own_host);
        let text = format!("the way from PE {me} on {own} to PE {pe} on {host} broke: {why}");
        let mut first = false;
        let error = self.loss.get_or_init(|| {
            first = true;
            Error::Lost(pe, text)
        });
        if first {
            self.host.lost(error);
        }
        error.clone()
    }

    fn contact(&self, pe: Pe) -> Result<&Contact, Error> {
        self.contacts.get(pe.index()).and_then(OnceLock::get).ok_or(Error::Unreachable(pe))
    }

    fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Relaxed);
        // Either this thread sees the nap, or the service thread sees that it should take none.
        fence(Ordering::SeqCst);
        if self.napping.load(Ordering::Relaxed) {
            self.ring_after(Duration::from_nanos(1));
        }
    }

    fn serve(&self) -> bool {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.serve_uncounted()
    }

    fn sleep(&self, worker: Option<&Worker>, at_most: Duration) {
        let armed = self.arm();
        if armed == Some(false) || worker.is_some_and(|worker| !worker.arm()) {
            return;
        }
        // Whoever serves already may be without a CPU: to wake for what it has not taken yet would keep it so.
        let target = armed.is_some().then(|| self.target_efd.as_fd());
        let at_most = if target.is_some() { at_most } else { at_most.min(SOON) };
        let fds = target.into_iter().chain(worker.map(Worker::efd));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Interrupted by a signal: as good as woken.
        let _ = poll(&mut fds, Some(&timespec(at_most)));
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    fn max_in_flight(&self) -> usize {
        self.tuning.max_in_flight
    }

    fn oversubscribed(&self) -> bool {
        self.oversubscribed
    }
}
