//! Who lets the workers of this PE work: the threads that wait in the library, or else the service thread.
//!
//! Locks: an origin is waited for by its endpoints and tried by everyone else. Nobody waits for a lock while holding another,
//! except for the list of what is unfinished, which is held for a few instructions. This file must never know what an origin
//! issues.

use crate::issuer::Issuer;
use crate::origin::Origin;
use crate::shared::{SERVICE_BACKOFF, SOON, Shared};
use rushmem_transport::Error;
use rushmem_transport::kit::attendance::Attendance;
use rushmem_transport::kit::lock::{lock, try_lock};
use rushmem_transport::kit::unfinished::Unfinished;
use rustix::event::{PollFd, PollFlags};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Polls of a worker that is busy by the service thread, before others get it again.
const MAX_POLLS: u32 = 100;
/// Of so many polls of a thread that waits, one is also for workers from which nothing is expected: a socket that was full may take
/// more of what was sent.
const POLLS_PER_LOOK: u32 = 16;
/// Longest sleep of the service thread while data that nobody waits for is in flight: UCX over sockets moves it only when it is
/// polled.
const LONGEST_OF_DATA: Duration = Duration::from_micros(200);
/// Longest sleep of all: UCX has timers of its own to keep.
const ROUND: Duration = Duration::from_secs(1);

/// One PE's share in the network, with the workers that issue. Fields are dropped in this order.
pub(crate) struct Progress {
    /// Issuers that their owners left unfinished.
    unfinished: Unfinished<Left>,
    /// Counts the polls of threads that wait.
    polls: AtomicU32,
    issuers: Mutex<Vec<Arc<Issuer>>>,
    pub(crate) shared: Shared,
}

/// An issuer that its owner left unfinished.
struct Left {
    issuer: Arc<Issuer>,
    /// Its uses when it was last polled by the service thread.
    uses: u64,
}

/// Who polls what is unfinished.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// A thread that waits for something else.
    Waiter,
    /// The service thread, which will sleep until descriptors tell of news.
    Service,
}

impl AsRef<Attendance> for Progress {
    fn as_ref(&self) -> &Attendance {
        &self.shared.attendance
    }
}

impl Progress {
    pub(crate) fn new(shared: Shared) -> Progress {
        Progress {
            unfinished: Unfinished::default(),
            polls: AtomicU32::new(0),
            issuers: Mutex::default(),
            shared,
        }
    }

    /// A worker for a new endpoint, which is its user from now on.
    pub(crate) fn issuer(&self) -> Result<Arc<Issuer>, Error> {
        let shared = &self.shared;
        let mut issuers = lock(&self.issuers);
        let least = issuers.iter().min_by_key(|issuer| issuer.users());
        let issuer = match least {
            Some(least) if least.users() == 0 || issuers.len() >= shared.tuning.max_workers => {
                Arc::clone(least)
            }
            _ => {
                let origin = Origin::new(&shared.context, &shared.answers);
                let issuer = Issuer::new(origin.map_err(Error::Unavailable)?)
                    .map_err(|e| Error::Unavailable(format!("the kernel refused: {e}")))?;
                issuers.push(Arc::new(issuer));
                Arc::clone(&issuers[issuers.len() - 1])
            }
        };
        issuer.add_user();
        Ok(issuer)
    }

    /// Works with an issuer's origin. What is left unfinished is noted. A loss ends everything: when this returns one, UCX
    /// uses no memory of callers any more. What `work` returns outlives the lock, so it shares nothing with the origin.
    pub(crate) fn with_origin<T: Send>(
        &self,
        issuer: &Arc<Issuer>,
        work: impl FnOnce(&mut Origin, &Shared) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut origin = lock(&issuer.origin);
        issuer.is_used();
        let done = work(&mut origin, &self.shared);
        if let Err(error @ Error::Lost(..)) = &done {
            self.abandon(&mut origin, error);
        } else if issuer.leave(origin.is_unfinished(), origin.is_owed()) {
            drop(origin);
            self.unfinished.add(Left { issuer: Arc::clone(issuer), uses: 0 });
            self.shared.attendance.call_soon(SOON);
        }
        done
    }

    /// After a loss: ends what an origin has in flight, or the process.
    fn abandon(&self, origin: &mut Origin, error: &Error) {
        let limit = self.shared.tuning.abandon_limit;
        if let Err(unended) = origin.abandon(limit) {
            self.shared.host.cannot_go_on(&format!(
                "{error}; {limit:?} later UCX still uses memory of calls that have failed (operations in flight: {unended}), so \
                 this process ends: let UCX use transports that it can cancel (SHMEM_UCX_TLS), or another network \
                 (SHMEM_TRANSPORT)"
            ));
        }
    }

    /// Lets the issuers work that were left unfinished. Returns whether one has more to do, or its owner has been back, as far
    /// as the service thread wants to know.
    fn finish(&self, by: By) -> bool {
        let shared = &self.shared;
        let by_service = by == By::Service;
        let mut is_busy = false;
        let looks_at_all =
            by_service || self.polls.fetch_add(1, Ordering::Relaxed).is_multiple_of(POLLS_PER_LOOK);
        self.unfinished.finish(|left| {
            if !looks_at_all && left.issuer.rests() {
                return true;
            }
            let uses = left.issuer.uses();
            let in_use = by_service && std::mem::replace(&mut left.uses, uses) != uses;
            let Some(mut origin) = try_lock(&left.issuer.origin).filter(|_| !in_use) else {
                is_busy = true;
                return true;
            };
            let mut polls = if by_service { MAX_POLLS } else { 1 };
            // To ask peers what has arrived costs them messages: the service thread does, now and then.
            let flush = by_service || origin.holds() || !origin.worker().copies();
            // A loss is told by whoever meets it next.
            while polls > 0 && origin.advance(shared, flush).unwrap_or(false) {
                polls -= 1;
            }
            let stays = left.issuer.stays(origin.is_unfinished(), origin.is_owed());
            is_busy |= stays && by_service && !origin.worker().arm();
            stays && shared.loss.check().is_ok()
        });
        is_busy
    }

    /// Some issuer was left with transfers in flight.
    fn moves_data(&self) -> bool {
        self.unfinished
            .any(|left| try_lock(&left.issuer.origin).is_some_and(|origin| origin.moves_data()))
    }

    /// A thread that waits finishes what is unfinished and serves peers; returns whether there was work for them.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        self.finish(By::Waiter);
        let worked = self.shared.serve();
        self.shared.loss.check().map(|()| worked)
    }

    /// Makes the workers ready for their end.
    pub(crate) fn leave(&self) {
        for issuer in &*lock(&self.issuers) {
            lock(&issuer.origin).leave();
        }
    }

    /// The service thread's sleep until a peer asks for something, there is news for what is unfinished, or the timer rings.
    fn sleep(&self, at_most: Duration) {
        let shared = &self.shared;
        let issuers = self.unfinished.map(|left| Arc::clone(&left.issuer));
        let efds = issuers.iter().map(|issuer| issuer.efd());
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = vec![PollFd::new(shared.attendance.timer(), PollFlags::IN)];
        fds.push(readable(shared.service_efd()));
        fds.extend(efds.map(readable));
        shared.attendance.sleep(&mut fds, at_most);
    }
}

/// The service thread's work: it sleeps in the kernel until a worker has something to do or the timer rings, or backs off while
/// others poll.
pub(crate) fn run(progress: &Progress) {
    let shared = &progress.shared;
    let attendance = &shared.attendance;
    let mut seen = 0;
    // Beside others who poll, and beside owners who are at their workers.
    let mut backoff = shared.service_backoff();
    let mut busy = shared.service_backoff();
    while !attendance.is_closing() {
        let all = attendance.polls();
        let polls = all.wrapping_sub(seen);
        seen = all;
        let (asleep, waiting) = (attendance.any_asleep(), attendance.any_waiting());
        let longest = if progress.moves_data() { LONGEST_OF_DATA } else { Duration::MAX };
        if (polls > 0 || asleep || waiting) && attendance.may_back_off() {
            // Others serve. Who moves much data polls rarely, but will soon.
            let polls = if waiting && !asleep { u64::MAX } else { polls };
            backoff.while_others_poll(polls, asleep);
            attendance.attend();
            attendance.back_off(backoff.limit(longest));
            progress.finish(By::Service);
            continue;
        }
        backoff.reset();
        while shared.serve_uncounted() {}
        attendance.stop_attending();
        let is_busy = progress.finish(By::Service);
        if is_busy {
            attendance.attend();
        }
        let longest = longest.min(SERVICE_BACKOFF.longest);
        match shared.arm() {
            Some(true) if !is_busy => {
                busy.reset();
                progress.sleep(ROUND);
            }
            // Owners are at their workers, perhaps without a CPU.
            Some(true) => {
                let timer = PollFd::new(attendance.timer(), PollFlags::IN);
                let service = PollFd::from_borrowed_fd(shared.service_efd(), PollFlags::IN);
                attendance.sleep(&mut [timer, service], busy.longer(longest));
            }
            Some(false) => {}
            // Somebody else serves, and may stop doing so.
            None => {
                let timer = PollFd::new(attendance.timer(), PollFlags::IN);
                attendance.sleep(&mut [timer], busy.longer(longest));
            }
        }
    }
}
