//! Messages between two PEs that need no team: each PE has a mailbox per source, for one message.
//!
//! A message has a tag, so that a PE can take part in several agreements at once: the receiver
//! moves a message for another agreement out of the mailbox and keeps it until it is requested. A
//! sender waits until the receiver has taken its last message.

pub(crate) mod state;

use crate::links::Links;
use crate::status::WaitDescription;
use crate::sync::waits;
use rushmem_explain::status::AwaitedObject;
use rushmem_pe::call::Call;
use rushmem_system::lock::lock;
use rushmem_transport::Pe;
use state::{CONTENTS, OF_REQUEST, State, TAG};
use std::sync::MutexGuard;

/// Returns the description of a wait for a PE to send a message, or to take one.
pub type DescribeWait<'a> = &'a dyn Fn(Pe) -> WaitDescription;

pub use state::MailboxMessage;

/// Returns the tag of a message of a non-blocking collective: its upper half is the lower half of
/// `number`, its lower half is `u32::MAX`.
pub fn request_tag(number: u64) -> u64 {
    number << 32 | u64::from(OF_REQUEST)
}

impl Links {
    /// Sends `message` to `dest`, after `dest` has taken the last message of this PE from the
    /// mailbox.
    pub fn send_message(
        &'static self,
        describe: DescribeWait<'_>,
        dest: Pe,
        tag: u64,
        message: &MailboxMessage,
    ) {
        let Links { job, area, .. } = self;
        let acknowledged = area.areas().acknowledged(dest);
        loop {
            let mut state = self.state();
            let sent = state.sent.entry(dest).or_default();
            if area.flag(acknowledged) == *sent {
                *sent += 1;
                let mailbox = area.areas().mailbox(job.me);
                area.write(dest, mailbox + TAG, &[tag]);
                area.write(dest, mailbox + CONTENTS, message);
                // Last: the number tells the receiver that the words are there.
                area.raise(dest, mailbox, *sent);
                return;
            }

            // Another thread may send to `dest` meanwhile, so the loop looks again after the wait.
            let waited_for = *sent;
            drop(state);

            // While it waits, a sender takes the messages that others have sent to this PE:
            // otherwise PEs that each wait to send to the next one would wait forever.
            waits::until_rung(
                self,
                &[],
                || describe(dest),
                || {
                    let is_free = area.flag(acknowledged) >= waited_for;
                    if !is_free {
                        let mut state = self.state();
                        for source in 0..job.n_pes {
                            state.take(area, job.me, Pe(source));
                        }
                    }
                    is_free
                },
            );
        }
    }

    /// Waits for the next message of `source` with this tag. Returns `None` if `source` has sent a
    /// message of a blocking call with another tag and no PE has several threads in the library:
    /// then `source` waits for this PE in another agreement, and both would wait forever.
    pub fn receive_message(
        &'static self,
        describe: DescribeWait<'_>,
        source: Pe,
        tag: u64,
    ) -> Option<MailboxMessage> {
        let mut found = None;
        let Links { job, area, .. } = self;
        waits::until_rung(
            self,
            &[],
            || describe(source),
            || {
                let mut state = self.state();
                state.take(area, job.me, source);
                found = state.next(source, tag);

                found.is_some() || !job.has_threads_somewhere && state.has_other_message(source)
            },
        );
        found
    }

    /// Returns the next message of `source` with this tag, if it has arrived.
    pub fn take_message(&self, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let mut state = self.state();
        state.take(&self.area, self.job.me, source);
        state.next(source, tag)
    }

    /// Returns a copy of the next message of `source` with this tag, if it has arrived.
    pub fn peek_message(&self, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let mut state = self.state();
        state.take(&self.area, self.job.me, source);
        state.kept.get(&(source, tag))?.front().copied()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.mailboxes.0)
    }
}

/// Returns the description of a wait of `call` for a message of a PE, outside of a collective.
pub fn message_wait(call: Call) -> impl Fn(Pe) -> WaitDescription {
    move |pe| WaitDescription {
        call,
        subject: AwaitedObject::Message { from: pe.0 },
    }
}
