//! The first loss of a PE, or the first failure of this one. From then on every operation of the
//! transport fails, and the host is notified once.
//!
//! Every verb and every poll checks this first, so that all of them fail with the same error.

use crate::{Error, Fault, Host, Pe};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The first loss that a transport met, if any.
pub struct Loss {
    me: Pe,
    own_host: String,
    host: Arc<dyn Host>,
    first: OnceLock<Error>,
    /// This PE is leaving: connections that break now are not reported.
    leaving: AtomicBool,
}

impl Loss {
    /// Returns a record without a loss. Messages name `me` and `own_host`, this machine.
    pub fn new(me: Pe, own_host: String, host: Arc<dyn Host>) -> Loss {
        Loss { me, own_host, host, first: OnceLock::new(), leaving: AtomicBool::new(false) }
    }

    /// Checks that there was no loss.
    ///
    /// # Errors
    /// The first loss.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        match self.first.get() {
            None => Ok(()),
            Some(_) => self.check_again(),
        }
    }

    #[cold]
    #[inline(never)]
    fn check_again(&self) -> Result<(), Error> {
        self.first.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Reports that the connection to a PE broke. Returns the first loss, which may be another one.
    /// `host` is the machine of the PE, if it is known.
    pub fn of_peer(&self, pe: Pe, host: Option<&str>, why: &str) -> Error {
        let (me, own, host) = (self.me, &self.own_host, host.unwrap_or("an unknown host"));
        let text = format!(
            "PE {pe} was lost: the connection from PE {me} on {own} to PE {pe} on {host} broke: {why}"
        );
        self.end(Error::Lost(pe, text))
    }

    /// Reports a message that this PE could not carry out: the loss of the PE that sent it, or of
    /// this one if it names none. Returns the first loss, which may be another one. `host_of` names
    /// the machine of a PE of the job.
    pub fn of_message(
        &self,
        message: &RefusedMessage,
        host_of: impl FnOnce(Pe) -> Option<String>,
    ) -> Error {
        let RefusedMessage { from, why } = message;
        match from.and_then(|pe| host_of(pe).map(|host| (pe, host))) {
            Some((pe, host)) => {
                self.of_peer(pe, Some(&host), &format!("{why}; see what PE {pe} said last"))
            }
            None => self.of_self(&format!("a message came that names no PE of this job: {why}")),
        }
    }

    /// Reports that this PE cannot use its network any more. Returns the first loss, which may be
    /// another one.
    pub fn of_self(&self, why: &str) -> Error {
        let (me, own) = (self.me, &self.own_host);
        self.end(Error::Lost(me, format!("PE {me} on {own} cannot use its network: {why}")))
    }

    /// Reports memory of this process that it cannot access. Returns the first loss, which may be
    /// another one.
    pub fn of_memory(&self, fault: Fault) -> Error {
        self.end(Error::Fault(fault))
    }

    /// Records that this PE leaves the job: no loss is reported to the host any more. A transport
    /// calls this first when it is dropped.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    fn end(&self, error: Error) -> Error {
        let mut is_first = false;
        let first = self.first.get_or_init(|| {
            is_first = true;
            error
        });
        if is_first {
            rushmem_log::debug!("the network fails from now on: {first}");
        }
        if is_first && !self.leaving.load(Ordering::Acquire) {
            self.host.lost(first);
        }
        first.clone()
    }
}

/// The fault of a message, a request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A message or field of no known meaning.
    Unknown(&'static str),
    /// More bytes than a message of its kind may have.
    TooLong(u64),
    /// An address that is not in the segment, or not aligned to its word.
    Address(u64),
    /// A batch that no PE sends.
    Batch,
    /// A request whose number in its stream is not a next one.
    Number(u32),
    /// An answer without a request, or not of the kind requested.
    Unrequested,
    /// More requests than may wait for their answers.
    TooMany,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Unknown(what) => write!(f, "it sent an unknown {what}"),
            Violation::TooLong(nbytes) => write!(f, "it sent a message of {nbytes} bytes"),
            Violation::Address(offset) => write!(f, "it used an invalid offset {offset}"),
            Violation::Batch => f.write_str("it sent a damaged batch of operations"),
            Violation::Number(number) => {
                write!(f, "it sent request {number} twice or out of its order")
            }
            Violation::Unrequested => f.write_str("it answered what was not requested"),
            Violation::TooMany => f.write_str("it requested more than it may at once"),
        }
    }
}

/// A message that this PE could not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedMessage {
    /// The PE that it names as its sender, if it names any.
    pub from: Option<Pe>,
    /// The fault of the message, or the failure that it led to.
    pub why: String,
}

impl RefusedMessage {
    /// Returns a violation by a PE.
    pub fn of(pe: Pe, why: impl fmt::Display) -> RefusedMessage {
        RefusedMessage { from: Some(pe), why: why.to_string() }
    }

    /// Returns a violation whose sender is unknown.
    pub fn of_nobody(why: impl fmt::Display) -> RefusedMessage {
        RefusedMessage { from: None, why: why.to_string() }
    }
}

#[cfg(test)]
mod tests;
