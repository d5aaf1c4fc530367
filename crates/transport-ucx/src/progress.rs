//! Makes progress on the workers of this PE: by threads that wait in the library, or by the service
//! thread (`kit::engine`).
//!
//! Locking: endpoints wait for an origin's lock; all other threads try it. No thread waits for a
//! lock while it holds another, except that of the list of what is unfinished, which is held for a
//! few instructions.

use crate::issuer::Issuer;
use crate::origin::Origin;
use crate::shared::SharedState;
use rushmem_transport::Error;
use rushmem_transport::kit::backoff::{FLUSH_DELAY, WaitLimits};
use rushmem_transport::kit::engine::{Driver, MAX_SLEEP, MAX_SLEEP_IN_FLIGHT, Served, Sleeper};
use rushmem_transport::kit::lock::{lock, try_lock};
use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::unfinished::Unfinished;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

/// Polls of a busy worker in a row by the service thread, before other threads may lock it.
const MAX_POLLS: u32 = 100;
/// Polls of a waiter per poll of workers that are only owed acknowledgments, whose sockets may have
/// been full.
const POLLS_PER_LOOK: u32 = 16;

/// One PE's share in the network, with the workers that issue. Fields are dropped in this order.
pub(crate) struct Progress {
    /// Issuers that their owners left unfinished.
    unfinished: Unfinished<Left>,
    /// Counts the polls of threads that wait.
    polls: AtomicU32,
    issuers: Mutex<Vec<Arc<Issuer>>>,
    pub(crate) shared: SharedState,
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
    /// The service thread, which will sleep until descriptors signal an event.
    Service,
}

impl Progress {
    pub(crate) fn new(shared: SharedState) -> Progress {
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
                let window = shared.tuning.window();
                let origin = Origin::new(&shared.context, &shared.acks, window);
                let issuer = Issuer::new(origin.map_err(Error::Unavailable)?)
                    .map_err(|e| Error::Unavailable(format!("the kernel refused: {e}")))?;
                issuers.push(Arc::new(issuer));
                Arc::clone(&issuers[issuers.len() - 1])
            }
        };
        if issuer.users() > 0 {
            static REPORTED: Once = Once::new();
            REPORTED.call_once(|| {
                rushmem_log::info!(
                    "contexts share workers: all {} are taken (SHMEM_UCX_WORKERS)",
                    issuers.len()
                );
            });
        }
        issuer.add_user();
        let (workers, users) = (issuers.len(), issuer.users());
        rushmem_log::debug!(workers, users, "an endpoint uses a worker");
        Ok(issuer)
    }

    /// Works with an issuer's origin. What is left unfinished is noted. A loss or a fault ends
    /// everything: when this returns one, UCX uses no memory of callers any more. What `work`
    /// returns outlives the lock, so it shares nothing with the origin.
    pub(crate) fn with_origin<T: Send>(
        &self,
        issuer: &Arc<Issuer>,
        work: impl FnOnce(&mut Origin, &SharedState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut origin = lock(&issuer.origin);
        issuer.is_used();
        let done = work(&mut origin, &self.shared);
        if let Err(error @ (Error::Lost(..) | Error::Fault(_))) = &done {
            self.abandon(&mut origin, error);
        } else if issuer.leave(origin.is_unfinished(), origin.is_owed()) {
            drop(origin);
            self.unfinished.add(Left { issuer: Arc::clone(issuer), uses: 0 });
            self.shared.state.request_flush();
        }
        done
    }

    /// After a loss: ends what an origin has in flight, or the process.
    fn abandon(&self, origin: &mut Origin, error: &Error) {
        let limit = self.shared.tuning.abandon_limit;
        if let Err(unended) = origin.abandon(limit) {
            let why = format!(
                "{limit:?} later UCX still uses memory of calls that have failed (operations in flight: {unended}), so \
                 this process ends: let UCX use transports that it can cancel (SHMEM_UCX_TLS), or another network \
                 (SHMEM_TRANSPORT)"
            );
            self.shared.host.cannot_go_on(error, &why);
        }
    }

    /// Lets the issuers work that were left unfinished. Returns whether one has more to do, or its
    /// owner has been back, as far as the service thread wants to know.
    fn finish(&self, by: By) -> bool {
        let shared = &self.shared;
        let by_service = by == By::Service;
        let (mut is_busy, mut n_kept) = (false, 0);
        let looks_at_all =
            by_service || self.polls.fetch_add(1, Ordering::Relaxed).is_multiple_of(POLLS_PER_LOOK);
        let mut finish = |left: &mut Left| {
            if !looks_at_all && left.issuer.rests() {
                return true;
            }
            let uses = left.issuer.uses();
            let in_use = by_service && std::mem::replace(&mut left.uses, uses) != uses;
            let Some(mut origin) = try_lock(&left.issuer.origin) else {
                is_busy = true;
                return true;
            };
            if in_use {
                // Its owner may be busy with other PEs for long.
                origin.send_old_gathered(shared);
                is_busy = true;
                return true;
            }
            let mut polls = if by_service { MAX_POLLS } else { 1 };
            // To ask peers what has arrived costs them messages: the service thread does, now and
            // then.
            let flush = by_service || !origin.worker().copies();
            // A loss is reported by the next call that meets it.
            while polls > 0 && origin.advance(shared, flush).unwrap_or(false) {
                polls -= 1;
            }
            let stays = left.issuer.stays(origin.is_unfinished(), origin.is_owed());
            is_busy |= stays && by_service && !origin.worker().arm();
            stays && shared.loss.check().is_ok()
        };
        let n = self.unfinished.finish(|left| {
            let stays = finish(left);
            n_kept += usize::from(stays);
            stays
        });
        // Nothing is known of those that another thread is finishing.
        is_busy || n > n_kept
    }

    /// Some issuer was left with transfers in flight.
    fn moves_data(&self) -> bool {
        self.unfinished
            .any(|left| try_lock(&left.issuer.origin).is_some_and(|origin| origin.moves_data()))
    }

    /// A thread that waits finishes what is unfinished and serves peers; returns whether there was
    /// work for them.
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
}

impl Driver for Progress {
    fn state(&self) -> &ProgressState {
        &self.shared.state
    }

    fn flush(&self) -> bool {
        self.finish(By::Service)
    }

    /// Serves until there is nothing to do, since only then a worker can be armed.
    fn serve(&self) -> Served {
        let mut result = self.shared.try_serve();
        let mut last = result;
        while last == Served::Worked {
            last = self.shared.try_serve();
            result = Served::Worked;
        }
        result
    }

    fn sleep(&self, is_left: bool, sleeper: &mut Sleeper<'_>) {
        let service = self.shared.service_efd();
        if self.shared.arm() != Some(true) {
            // There is something to do, or another thread has come to serve.
        } else if is_left {
            // Owners are at their workers, perhaps without a CPU.
            let at_most = self.longest_backoff().min(WaitLimits::LONGEST);
            sleeper.briefly(&[service], at_most);
        } else {
            let issuers = self.unfinished.map(|left| Arc::clone(&left.issuer));
            // Another thread is finishing some, and may keep them.
            let Some(issuers) = issuers else { return sleeper.briefly(&[service], FLUSH_DELAY) };
            let efds = issuers.iter().map(|issuer| issuer.efd());
            let efds: Vec<BorrowedFd<'_>> = [service].into_iter().chain(efds).collect();
            sleeper.until(&efds, MAX_SLEEP);
        }
    }

    /// UCX over sockets moves data only while it is polled.
    fn longest_backoff(&self) -> Duration {
        if self.moves_data() { MAX_SLEEP_IN_FLIGHT } else { Duration::MAX }
    }
}
