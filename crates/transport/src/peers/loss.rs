//! The first loss of a PE, or failure of this PE's network, and the protocol violations that lead
//! to one. After it all verbs that use the network, and all polls, fail with the same error. The
//! host is notified of the first loss only, and of none once this PE leaves the job.

use crate::{Error, Host, Pe};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The first loss of a transport, if there was one.
pub struct Loss {
    me: Pe,
    own_host: String,
    host: Arc<dyn Host>,
    first: OnceLock<Error>,
    /// This PE is leaving the job, so that connections that break are not reported. Relaxed: it
    /// publishes nothing else, and a loss at the same time may be reported or not.
    leaving: AtomicBool,
}

/// Returns a copy of an error. Not inlined: the clone would make each caller of
/// [`Loss::check`] longer, and almost all of them find no loss.
#[cold]
#[inline(never)]
fn cloned(error: &Error) -> Error {
    error.clone()
}

impl Loss {
    /// Returns a record without a loss, of PE `me` on host `own_host`.
    pub fn new(me: Pe, own_host: String, host: Arc<dyn Host>) -> Loss {
        Loss {
            me,
            own_host,
            host,
            first: OnceLock::new(),
            leaving: AtomicBool::new(false),
        }
    }

    /// Checks that there was no loss.
    ///
    /// # Errors
    /// The first loss.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        match self.first.get() {
            None => Ok(()),
            Some(first) => Err(cloned(first)),
        }
    }

    /// Reports the loss of a PE, to which the connection broke for the reason `why`. `host` is the
    /// host of that PE, if it is known. Returns the first loss, which may be another one.
    pub fn of_peer(&self, pe: Pe, host: Option<&str>, why: &str) -> Error {
        let me = self.me;
        let own_host = &self.own_host;
        let host = host.unwrap_or("an unknown host");
        let text = format!(
            "PE {pe} was lost: the connection from PE {me} on {own_host} to PE {pe} on {host} broke: {why}"
        );
        self.record(Error::Lost(pe, text))
    }

    /// Reports a message that violates the protocol. This is the loss of the PE that it names as
    /// its sender, or of this PE if it names none whose host is known. `host_of` returns the host
    /// of a PE, if it is known. Returns the first loss, which may be another one.
    pub fn of_message(
        &self,
        message: &RefusedMessage,
        host_of: impl FnOnce(Pe) -> Option<String>,
    ) -> Error {
        let why = &message.why;

        if let Some(pe) = message.from
            && let Some(host) = host_of(pe)
        {
            let why = format!("{why}; see what PE {pe} said last");
            return self.of_peer(pe, Some(&host), &why);
        }

        let why = format!("a message came that names no PE of this job: {why}");
        self.of_self(&why)
    }

    /// Reports that this PE cannot use its network. Returns the first loss, which may be another
    /// one.
    pub fn of_self(&self, why: &str) -> Error {
        let me = self.me;
        let own_host = &self.own_host;
        let text = format!("PE {me} on {own_host} cannot use its network: {why}");
        self.record(Error::Lost(me, text))
    }

    /// Records that this PE leaves the job. No loss is reported to the host from now on. A
    /// transport calls this first when it is dropped.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Records a loss, and notifies the host of it if it is the first one. Returns the first one.
    fn record(&self, loss: Error) -> Error {
        let mut is_first = false;
        let first = self.first.get_or_init(|| {
            is_first = true;
            loss
        });

        if is_first {
            rushmem_system::log::debug!("the network fails from now on: {first}");
            if !self.leaving.load(Ordering::Relaxed) {
                self.host.lost(first);
            }
        }
        first.clone()
    }
}

/// A violation of the protocol by a message. It is reported as a loss ([`Loss::of_message`]): a PE
/// that waits for the effects of the message, or for a reply, would wait forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A message or a field of an unknown kind.
    Unknown(&'static str),
    /// A message of more bytes than its kind may have.
    TooLong(u64),
    /// An address outside its segment, or of a word that is not aligned.
    Address(u64),
    /// Malformed entries of a request.
    Entries,
    /// A request with a number that it cannot have at this point of its stream, such as one that
    /// was used before.
    Number(u32),
    /// An answer without a request, or of another length than requested, or an acknowledgment for
    /// an origin that does not exist.
    Unrequested,
    /// More requests, or longer results of one request, than a PE may ask for at once.
    TooMany,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Unknown(what) => write!(f, "it sent an unknown {what}"),
            Violation::TooLong(nbytes) => write!(f, "it sent a message of {nbytes} bytes"),
            Violation::Address(offset) => write!(f, "it used an invalid offset {offset}"),
            Violation::Entries => f.write_str("it sent a damaged batch of operations"),
            Violation::Number(number) => {
                write!(f, "it sent request {number} twice or out of its order")
            }
            Violation::Unrequested => f.write_str("it answered what was not requested"),
            Violation::TooMany => f.write_str("it requested more than it may at once"),
        }
    }
}

/// A message that violates the protocol, or whose handling failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedMessage {
    /// The PE that the message names as its sender, if it names one.
    pub from: Option<Pe>,
    /// The violation, or the failure.
    pub why: String,
}

impl RefusedMessage {
    /// Returns a message from a PE that was refused for this reason.
    pub fn of(pe: Pe, why: impl fmt::Display) -> RefusedMessage {
        RefusedMessage {
            from: Some(pe),
            why: why.to_string(),
        }
    }

    /// Returns a message from an unknown sender that was refused for this reason.
    pub fn of_nobody(why: impl fmt::Display) -> RefusedMessage {
        RefusedMessage {
            from: None,
            why: why.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A host that records the losses of which it is notified.
    #[derive(Default)]
    struct Losses(Mutex<Vec<Error>>);

    impl Losses {
        fn all(&self) -> Vec<Error> {
            self.0.lock().expect("no panic holds it").clone()
        }
    }

    impl Host for Losses {
        fn lost(&self, error: &Error) {
            self.0
                .lock()
                .expect("no panic holds it")
                .push(error.clone());
        }
    }

    #[test]
    fn the_first_loss_stays_and_is_reported_once() {
        let losses = Arc::new(Losses::default());
        let loss = Loss::new(Pe(0), "here".to_owned(), losses.clone());
        assert_eq!(loss.check(), Ok(()));

        let first = loss.of_peer(Pe(3), Some("there"), "it hung up");
        let text =
            "PE 3 was lost: the connection from PE 0 on here to PE 3 on there broke: it hung up";
        assert_eq!(first.to_string(), text);

        assert_eq!(loss.of_self("no descriptors"), first);
        assert_eq!(loss.check(), Err(first.clone()));
        assert_eq!(losses.all(), [first]);
    }

    #[test]
    fn a_message_that_cannot_be_carried_out_is_the_loss_of_its_sender() {
        let text = |message: RefusedMessage| {
            let loss = Loss::new(Pe(0), "here".to_owned(), Arc::new(Losses::default()));
            let error = loss.of_message(&message, |pe| match pe {
                Pe(3) => Some("there".to_owned()),
                _ => None,
            });
            error.to_string()
        };

        let wrong = Violation::Address(99);
        let of_peer = text(RefusedMessage::of(Pe(3), wrong));
        assert_eq!(
            of_peer,
            "PE 3 was lost: the connection from PE 0 on here to PE 3 on there broke: it used an invalid offset 99; see what \
             PE 3 said last"
        );

        for message in [
            RefusedMessage::of(Pe(7), wrong),
            RefusedMessage::of_nobody(wrong),
        ] {
            let report = text(message);
            assert!(
                report.starts_with("PE 0 on here cannot use its network: a message came"),
                "{report}"
            );
            assert!(report.ends_with("it used an invalid offset 99"), "{report}");
        }
    }

    #[test]
    fn a_pe_that_leaves_reports_no_loss() {
        let losses = Arc::new(Losses::default());
        let loss = Loss::new(Pe(0), "here".to_owned(), losses.clone());
        loss.leave();
        loss.of_peer(Pe(1), None, "it hung up");

        assert!(loss.check().is_err());
        assert_eq!(losses.all(), []);
    }
}
