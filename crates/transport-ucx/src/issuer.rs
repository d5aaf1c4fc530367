//! A worker that issues for the endpoints that share it, with what others may know of it without its lock.
//!
//! It must never know who lets it work.

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
    /// Counts the verbs; it changes under the lock of the origin. As long as it moves, its owner lets it work.
    uses: AtomicU64,
    /// It is among what is unfinished; it changes under the lock of the origin.
    noted: AtomicBool,
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

    /// How many verbs it carried out.
    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// It carries out one more verb. The caller has the lock of the origin, as whoever else changes this.
    pub(crate) fn is_used(&self) {
        self.uses.store(self.uses.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// It is among what is unfinished from now on; whether it was before. The caller has the lock of the origin.
    pub(crate) fn note(&self) -> bool {
        let was_noted = self.noted.load(Ordering::Relaxed);
        if !was_noted {
            self.noted.store(true, Ordering::Relaxed);
        }
        was_noted
    }

    /// It is not among what is unfinished any more. The caller has the lock of the origin.
    pub(crate) fn forget(&self) {
        self.noted.store(false, Ordering::Relaxed);
    }

    /// The descriptor of its worker.
    pub(crate) fn efd(&self) -> BorrowedFd<'_> {
        self.efd.as_fd()
    }
}
