//! The first loss of a PE: it ends everything that a transport does, and the host learns of it once.
//!
//! Every verb and every poll asks here first, so that all of them fail with the same error. This file must never know how a
//! loss shows, which is a provider's to say.

use crate::{Error, Host, Pe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The first loss that a transport met, if any.
pub struct Loss {
    me: Pe,
    own_host: String,
    host: Arc<dyn Host>,
    first: OnceLock<Error>,
    /// This PE leaves: what breaks from now on is no loss to tell of.
    leaving: AtomicBool,
}

impl Loss {
    /// No loss so far, at PE `me` on the host of this name.
    pub fn new(me: Pe, own_host: String, host: Arc<dyn Host>) -> Loss {
        Loss { me, own_host, host, first: OnceLock::new(), leaving: AtomicBool::new(false) }
    }

    /// The error that ended everything, if one did.
    ///
    /// # Errors
    /// The first loss.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        match self.first.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// The connection to a PE broke: from now on everything fails. Returns the first loss. `host` is where the PE runs, if that is
    /// known.
    pub fn of_peer(&self, pe: Pe, host: Option<&str>, why: &str) -> Error {
        let (me, own, host) = (self.me, &self.own_host, host.unwrap_or("an unknown host"));
        let text =
            format!("the connection from PE {me} on {own} to PE {pe} on {host} broke: {why}");
        self.end(Error::Lost(pe, text))
    }

    /// This PE cannot go on: from now on everything fails. Returns the first loss.
    pub fn of_self(&self, why: &str) -> Error {
        let (me, own) = (self.me, &self.own_host);
        self.end(Error::Lost(me, format!("PE {me} on {own} cannot use its network: {why}")))
    }

    /// This PE leaves the job: the host is told of no loss any more.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    fn end(&self, error: Error) -> Error {
        let mut is_first = false;
        let first = self.first.get_or_init(|| {
            is_first = true;
            error
        });
        if is_first && !self.leaving.load(Ordering::Acquire) {
            self.host.lost(first);
        }
        first.clone()
    }
}

#[cfg(test)]
mod tests;
