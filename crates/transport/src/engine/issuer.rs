//! The lock of an origin, and the list of origins whose operations calls have left unfinished. The
//! thread that polls next completes these, at the latest the service thread.
//!
//! Locking: verbs wait for the lock of an origin, and so may a provider that creates an endpoint or
//! is dropped. Threads that poll unfinished operations only try it. docs/architecture.md has the
//! order of all locks.

use super::origin::Origin;
use super::primitive::{
    AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, lock, try_lock,
};
use super::wire::{NextEvent, Wire, WireNetwork};
use crate::progress::flush_list::FlushList;
use crate::{EndpointUser, Error};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Once};
use std::task::Waker;

/// Maximum number of polls in a row of an origin by the service thread. A call that waits for the
/// lock ends them, so the number bounds how long other origins and peers wait. It was chosen
/// without a measurement.
const MAX_POLLS: u32 = 100;
/// Threads that wait poll an origin that is not [`BUSY`] in one of this number of their polls: it
/// only awaits acknowledgments, or the service thread will flush its writes. Such an origin rarely
/// needs a poll: for example if a socket was full, so that its last requests are still to be sent.
/// The number was chosen without a measurement; the service thread polls such origins, too.
const POLLS_PER_LOOK: u32 = 16;

/// An origin with its lock, and the data on it that threads read without the lock.
///
/// All accesses to the atomics are relaxed, because the lock orders what is behind it. By a value
/// that it reads without the lock, a thread decides only whether to take the lock, or which origin
/// to use.
pub struct Issuer<W: Wire> {
    /// The origin.
    pub origin: Mutex<Origin<W>>,
    /// The user of the first endpoint, for which the wire was opened.
    opened_for: EndpointUser,
    /// The number of endpoints that use the origin. It grows under the lock of the list of issuers.
    users: AtomicUsize,
    /// The number of calls that wait for the lock.
    pub(super) wanted: AtomicU32,
    /// The number of verbs; it changes under the lock. While it grows, the owner polls the origin
    /// itself.
    uses: AtomicU64,
    /// The flags below; they change under the lock.
    state: AtomicU8,
}

/// The issuer is in the list of unfinished ones.
const LISTED: u8 = 1;
/// The issuer has unfinished operations that the next poll of a waiting thread may end.
const BUSY: u8 = 2;
/// The service thread may sleep for long, since it knows the operations that were unfinished when
/// it last polled: a descriptor signals their next event, or they are not expected to end soon.
const ARMED: u8 = 4;

impl<W: Wire> Issuer<W> {
    fn new(origin: Origin<W>, opened_for: EndpointUser) -> Issuer<W> {
        Issuer {
            origin: Mutex::new(origin),
            opened_for,
            users: AtomicUsize::new(0),
            wanted: AtomicU32::new(0),
            uses: AtomicU64::new(0),
            state: AtomicU8::new(0),
        }
    }

    /// Takes the lock for a verb, and counts the verb. The service thread releases the lock after
    /// its current poll. The verb ends with [`Issuers::release`].
    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, Origin<W>> {
        let origin = try_lock(&self.origin).unwrap_or_else(|| self.lock_later());

        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.wrapping_add(1), Ordering::Relaxed);
        origin
    }

    #[cold]
    fn lock_later(&self) -> MutexGuard<'_, Origin<W>> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let origin = lock(&self.origin);
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        origin
    }

    fn users(&self) -> usize {
        self.users.load(Ordering::Relaxed)
    }

    fn is_free_for(&self, user: EndpointUser) -> bool {
        self.opened_for == user && self.users() == 0
    }

    /// Records that an endpoint no longer uses the origin.
    pub(super) fn remove_user(&self) {
        self.users.fetch_sub(1, Ordering::Relaxed);
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }

    /// Sets the flags. The caller holds the lock.
    fn set_state(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }

    /// Returns true if the issuer is in the list of unfinished ones.
    pub fn is_listed(&self) -> bool {
        self.state() & LISTED != 0
    }
}

/// Returns the flags of an issuer that had the flags `before`. It is listed once operations are
/// unfinished or acknowledgments are missing. Unfinished operations clear [`ARMED`], since some of
/// them may be later than the poll after which the service thread slept.
fn flags_after<W: Wire>(before: u8, origin: &Origin<W>) -> u8 {
    if origin.must_be_polled() {
        let busy = if origin.may_end_in_wait() { BUSY } else { 0 };
        LISTED | busy
    } else if origin.awaits_acks() {
        (before | LISTED) & !BUSY
    } else {
        before & !BUSY
    }
}

/// The limit of the number of wires of a PE, each of which an issuer has. Further endpoints share
/// them.
#[derive(Clone, Copy, Debug)]
pub struct WireLimit {
    /// Maximum number of wires.
    pub n_wires: usize,
    /// What limits their number, such as a variable.
    pub set_by: &'static str,
}

/// The issuers of a PE.
pub struct Issuers<W: Wire> {
    /// Issuers with operations that calls have left unfinished, or whose acknowledgments are
    /// missing.
    unfinished: FlushList<UnfinishedIssuer<W>>,
    /// The number of polls of that list by threads that wait, which counts out the polls that look
    /// at all issuers. Relaxed, since it orders nothing.
    polls: AtomicU32,
    all: Mutex<Vec<Arc<Issuer<W>>>>,
}

struct UnfinishedIssuer<W: Wire> {
    issuer: Arc<Issuer<W>>,
    /// The issuer's number of verbs at the last poll by the service thread.
    uses: u64,
    /// The descriptor of the wire that signals its next event, if it has one, as of that poll.
    event: Option<Arc<OwnedFd>>,
}

/// What the service thread leaves when it has polled an unfinished issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftBehind {
    Nothing,
    /// Operations whose next event a descriptor signals, or only missing acknowledgments.
    Awaited,
    /// Operations that must be polled again: no descriptor signals their next event, or another
    /// thread is using the origin.
    Unsignaled,
}

impl<W: Wire> UnfinishedIssuer<W> {
    /// Makes progress on the operations that calls have left unfinished, for a thread that waits
    /// for something else. Adds the tasks to wake to `tasks`. Returns true if operations are left,
    /// or another thread is using the origin.
    fn poll_in_wait(&self, tasks: &mut Vec<Waker>) -> bool {
        let issuer = &*self.issuer;
        let Some(mut origin) = try_lock(&issuer.origin) else {
            return true;
        };

        if issuer.wanted.load(Ordering::Relaxed) == 0 {
            // A flush may cost messages. Then only the service thread begins one.
            let flush = origin.caps.flushes_in_wait;
            // The next call that meets a loss reports it.
            let _ = origin.advance(flush);
        }
        tasks.append(&mut origin.tasks_to_wake(false));

        let mut state = flags_after(0, &origin);
        let is_left = state & LISTED != 0;
        if is_left {
            // A poll adds no operation, so the service thread still knows all that are left.
            state |= issuer.state() & ARMED;
        }
        issuer.set_state(state);

        // After a loss, nothing is carried out any more.
        is_left && origin.network.local().loss.check().is_ok()
    }

    /// Makes progress on the operations that calls have left unfinished, for the service thread.
    /// Adds the tasks to wake to `tasks`.
    fn poll_in_service(&mut self, tasks: &mut Vec<Waker>) -> LeftBehind {
        let issuer = &*self.issuer;
        let uses = issuer.uses.load(Ordering::Relaxed);
        let is_in_use = std::mem::replace(&mut self.uses, uses) != uses;

        let Some(mut origin) = try_lock(&issuer.origin) else {
            return LeftBehind::Unsignaled;
        };
        if is_in_use {
            // The owner polls the origin itself, but may be busy with other PEs for long, while a
            // target waits for what it has batched.
            origin.send_old_batches();
            return LeftBehind::Unsignaled;
        }

        for _ in 0..MAX_POLLS {
            let is_wanted = issuer.wanted.load(Ordering::Relaxed) > 0;
            // The next call that meets a loss reports it.
            if is_wanted || !origin.advance(true).unwrap_or(false) {
                break;
            }
        }
        tasks.append(&mut origin.tasks_to_wake(true));

        self.event = None;
        let state = flags_after(0, &origin);
        if state & LISTED == 0 {
            issuer.set_state(state);
            return LeftBehind::Nothing;
        }

        issuer.set_state(state | ARMED);
        let left = match origin.next_event() {
            NextEvent::Unsignaled => LeftBehind::Unsignaled,
            NextEvent::OfNetwork => LeftBehind::Awaited,
            NextEvent::On(event) => {
                self.event = Some(event);
                LeftBehind::Awaited
            }
        };

        match origin.network.local().loss.check() {
            Ok(()) => left,
            // Nothing is carried out any more.
            Err(_) => LeftBehind::Nothing,
        }
    }
}

impl<W: Wire> Default for Issuers<W> {
    fn default() -> Issuers<W> {
        Issuers {
            unfinished: FlushList::default(),
            polls: AtomicU32::new(0),
            all: Mutex::default(),
        }
    }
}

impl<W: Wire> Issuers<W> {
    /// Returns an issuer for a new endpoint of a user, and counts the endpoint among its users.
    /// This is an issuer without users if there is one, or a new one, whose origin `make` makes. If
    /// the `limit` is reached or `make` fails, it is the issuer with the fewest users, if possible
    /// one that was made for the same kind of user.
    ///
    /// # Errors
    /// The errors of `make`, if there is no issuer.
    pub fn issuer(
        &self,
        user: EndpointUser,
        limit: WireLimit,
        make: impl FnOnce() -> Result<Origin<W>, Error>,
    ) -> Result<Arc<Issuer<W>>, Error> {
        let mut all = lock(&self.all);

        let fewest = all
            .iter()
            .min_by_key(|issuer| (issuer.opened_for != user, issuer.users()))
            .map(Arc::clone);

        let issuer = match fewest {
            Some(fewest) if fewest.is_free_for(user) || all.len() >= limit.n_wires => fewest,
            fewest => match make() {
                Ok(origin) => {
                    let issuer = Arc::new(Issuer::new(origin, user));
                    all.push(Arc::clone(&issuer));
                    issuer
                }
                Err(error) => {
                    let Some(fewest) = fewest else {
                        return Err(error);
                    };
                    rushmem_system::log::debug!("contexts share endpoints: {error}");
                    fewest
                }
            },
        };

        if issuer.users() > 0 {
            static REPORTED: Once = Once::new();
            REPORTED.call_once(|| {
                let n = all.len();
                let set_by = limit.set_by;
                rushmem_system::log::info!(
                    "contexts share endpoints: all {n} are taken ({set_by})"
                );
            });
        }

        let users = issuer.users.fetch_add(1, Ordering::Relaxed) + 1;
        rushmem_system::log::debug!(issuers = all.len(), users, "an endpoint uses an issuer");
        Ok(issuer)
    }

    /// Calls `each` for each issuer.
    pub fn each(&self, each: impl FnMut(&Arc<Issuer<W>>)) {
        lock(&self.all).iter().for_each(each);
    }

    /// Ends a verb whose result is `done`: releases the lock, lists the issuer if operations are
    /// unfinished, and wakes the tasks that await their completion if they are complete. After a
    /// loss, first cancels all operations, so that the network accesses no memory of callers any
    /// more. Tasks are woken without the lock, since a waker may call anything.
    #[inline]
    pub(super) fn release<T>(
        &self,
        issuer: &Arc<Issuer<W>>,
        mut origin: MutexGuard<'_, Origin<W>>,
        done: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(error @ Error::Lost(..)) = &done {
            if let Err(why) = origin.abandon() {
                origin.network.local().host.cannot_go_on(error, &why);
            }

            let tasks = origin.take_tasks();
            drop(origin);
            wake(tasks);
            return done;
        }

        let tasks = origin.tasks_to_wake(false);
        let before = issuer.state();
        let after = flags_after(before, &origin);
        if after != before {
            issuer.set_state(after);
        }

        let is_new = after & !before & LISTED != 0;
        let is_disarmed = before & !after & ARMED != 0;
        if is_new || is_disarmed {
            self.list(issuer, origin, is_new);
        } else {
            drop(origin);
        }

        wake(tasks);
        done
    }

    /// Releases the lock of an issuer, and adds the issuer to the list of unfinished ones if it
    /// `is_new` there. Requests a flush by the service thread, which may be sleeping until an event
    /// of earlier operations.
    #[inline(never)]
    fn list(&self, issuer: &Arc<Issuer<W>>, origin: MutexGuard<'_, Origin<W>>, is_new: bool) {
        let network = Arc::clone(&origin.network);
        drop(origin);

        if is_new {
            self.unfinished.add(UnfinishedIssuer {
                issuer: Arc::clone(issuer),
                uses: 0,
                event: None,
            });
        }

        network.local().state.request_flush();
    }

    /// Makes progress on the unfinished issuers for a thread that waits for something else. Returns
    /// true if any remain.
    pub fn finish_in_wait(&self) -> bool {
        if self.unfinished.is_empty() {
            return false;
        }

        let n_polls = self.polls.fetch_add(1, Ordering::Relaxed);
        let looks_at_all = n_polls.is_multiple_of(POLLS_PER_LOOK);

        let mut tasks = Vec::new();
        let n = self.unfinished.finish(|unfinished| {
            let is_due = looks_at_all || unfinished.issuer.state() & BUSY != 0;
            !is_due || unfinished.poll_in_wait(&mut tasks)
        });
        wake(tasks);

        n > 0
    }

    /// Makes progress on the unfinished issuers for the service thread, which will sleep until
    /// descriptors signal an event. Returns true if it must poll again without one: no descriptor
    /// signals the next event of an issuer, or another thread is using it.
    pub fn finish_in_service(&self) -> bool {
        let mut is_any_unsignaled = false;
        let mut n_kept = 0;
        let mut tasks = Vec::new();

        let n = self.unfinished.finish(|unfinished| {
            let left = unfinished.poll_in_service(&mut tasks);
            if left == LeftBehind::Nothing {
                return false;
            }
            is_any_unsignaled |= left == LeftBehind::Unsignaled;
            n_kept += 1;
            true
        });
        wake(tasks);

        // Nothing is known of the other issuers, which another thread is polling.
        is_any_unsignaled || n > n_kept
    }

    /// Returns true if any issuer is in the list of unfinished ones.
    pub fn are_any_unfinished(&self) -> bool {
        self.unfinished.any(|_| true)
    }

    /// Returns true if an unfinished issuer may have operations in flight or batches to send. An
    /// issuer that a call is using does not count: its owner polls it.
    pub fn moves_data(&self) -> bool {
        self.unfinished.any(|unfinished| {
            try_lock(&unfinished.issuer.origin).is_some_and(|origin| origin.moves_data())
        })
    }

    /// Returns the descriptors that signal the next events of unfinished issuers; `None` if another
    /// thread is polling some of them.
    pub fn events(&self) -> Option<Vec<Arc<OwnedFd>>> {
        let events = self.unfinished.map(|unfinished| unfinished.event.clone())?;
        Some(events.into_iter().flatten().collect())
    }
}

/// Wakes tasks. The caller has no lock.
fn wake(tasks: Vec<Waker>) {
    tasks.into_iter().for_each(Waker::wake);
}
