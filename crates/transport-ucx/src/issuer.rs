//! A worker that issues the operations of the endpoints that share it, with what other threads read
//! of it without its lock.

use crate::origin::Origin;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A worker that issues.
pub(crate) struct Issuer {
    pub(crate) origin: Mutex<Origin>,
    /// How many endpoints use it.
    users: AtomicUsize,
    /// Counts the verbs; it changes under the lock of the origin. As long as it grows, its owner
    /// polls.
    uses: AtomicU64,
    /// It is among what is unfinished; it changes under the lock of the origin.
    noted: AtomicBool,
    /// Nothing of it is unfinished; it changes under the lock of the origin.
    rests: AtomicBool,
    efd: OwnedFd,
}

impl Issuer {
    pub(crate) fn new(origin: Origin) -> io::Result<Issuer> {
        Ok(Issuer {
            efd: origin.worker().efd().try_clone_to_owned()?,
            origin: Mutex::new(origin),
            users: AtomicUsize::new(0),
            uses: AtomicU64::new(0),
            noted: AtomicBool::new(false),
            rests: AtomicBool::new(true),
        })
    }

    pub(crate) fn users(&self) -> usize {
        self.users.load(Ordering::Acquire)
    }

    /// An endpoint uses it from now on.
    pub(crate) fn add_user(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// An endpoint uses it no more.
    pub(crate) fn remove_user(&self) {
        self.users.fetch_sub(1, Ordering::Release);
    }

    /// Returns how many verbs it carried out.
    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// It carries out one more verb. The caller has the lock of the origin, as every other code
    /// that changes this has.
    pub(crate) fn is_used(&self) {
        self.uses.store(self.uses.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Its owner leaves it with something unfinished, or with acknowledgments that are owed: it is
    /// among what is unfinished from now on. Returns whether that is new. The caller has the lock
    /// of the origin.
    pub(crate) fn leave(&self, is_unfinished: bool, is_owed: bool) -> bool {
        if self.rests.load(Ordering::Relaxed) == is_unfinished {
            self.rests.store(!is_unfinished, Ordering::Relaxed);
        }
        let is_new = (is_unfinished || is_owed) && !self.noted.load(Ordering::Relaxed);
        if is_new {
            self.noted.store(true, Ordering::Relaxed);
        }
        is_new
    }

    /// Returns true if it is still among what is unfinished, as [`leave`](Issuer::leave) says. The
    /// caller has the lock of the origin.
    pub(crate) fn stays(&self, is_unfinished: bool, is_owed: bool) -> bool {
        self.rests.store(!is_unfinished, Ordering::Relaxed);
        self.noted.store(is_unfinished || is_owed, Ordering::Relaxed);
        is_unfinished || is_owed
    }

    /// It is only owed acknowledgments, which peers send on request.
    pub(crate) fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// The descriptor of its worker.
    pub(crate) fn efd(&self) -> BorrowedFd<'_> {
        self.efd.as_fd()
    }
}
