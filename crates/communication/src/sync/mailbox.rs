//! Messages between two PEs that need no team: each PE has a mailbox per source, for one message.
//!
//! A message has a tag, so that a PE can take part in several agreements at once: the receiver
//! moves a message for another agreement out of the mailbox and keeps it until it is requested. A
//! sender waits until the receiver has taken its last message.

use crate::net::flags::{self, FlagArea};
use crate::status::WaitDescription;
use crate::sync::waits;
use rushmem_explain::status::AwaitedObject;
use rushmem_pe::call::Call;
use rushmem_pe::job::Job;
use rushmem_pe::memory::areas::MESSAGE;
use rushmem_system::lock::lock;
use rushmem_transport::Pe;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{LazyLock, Mutex, MutexGuard};

static MAILBOXES: LazyLock<Mailboxes> = LazyLock::new(|| Mailboxes::new(flags::area()));

/// Returns the mailboxes of this PE.
pub fn mailboxes() -> &'static Mailboxes {
    &MAILBOXES
}

/// Returns the description of a wait for a PE to send a message, or to take one.
pub type DescribeWait<'a> = &'a dyn Fn(Pe) -> WaitDescription;

/// The contents of one message.
pub type MailboxMessage = [u64; MESSAGE];

/// The offset of the tag in a mailbox, behind the sequence number.
const TAG: usize = 8;
/// The offset of the contents in a mailbox.
const CONTENTS: usize = 16;

/// The lower half of the tags of non-blocking collectives, whose messages are sent and received by
/// threads of the library, not of the program.
const OF_REQUEST: u32 = u32::MAX;

/// Returns the tag of a message of a non-blocking collective: its upper half is the lower half of
/// `number`, its lower half is `u32::MAX`.
pub fn request_tag(number: u64) -> u64 {
    number << 32 | u64::from(OF_REQUEST)
}

/// The mailboxes of a PE, and the state of its messages to other PEs.
pub struct Mailboxes {
    /// The internal areas, as this PE sees them.
    area: &'static FlagArea,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of messages sent to each PE.
    sent: HashMap<Pe, u64>,
    /// The number of messages taken from the mailbox of each PE.
    taken: HashMap<Pe, u64>,
    /// The messages that were taken and not requested yet, by source and tag.
    kept: HashMap<(Pe, u64), VecDeque<MailboxMessage>>,
}

impl Mailboxes {
    /// Returns the mailboxes in the area of a PE, before any message.
    pub fn new(area: &'static FlagArea) -> Mailboxes {
        Mailboxes {
            area,
            state: Mutex::default(),
        }
    }

    /// Sends `message` to `dest`, after `dest` has taken the last message of this PE from the
    /// mailbox.
    pub fn send(
        &self,
        describe: DescribeWait<'_>,
        job: &Job,
        dest: Pe,
        tag: u64,
        message: &MailboxMessage,
    ) {
        let area = self.area;
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
            waits::until_rung_in(
                job,
                area,
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
    pub fn receive(
        &self,
        describe: DescribeWait<'_>,
        job: &Job,
        source: Pe,
        tag: u64,
    ) -> Option<MailboxMessage> {
        let mut found = None;
        waits::until_rung_in(
            job,
            self.area,
            || describe(source),
            || {
                let mut state = self.state();
                state.take(self.area, job.me, source);
                found = state.next(source, tag);

                found.is_some() || !job.has_threads_somewhere && state.has_other_message(source)
            },
        );
        found
    }

    /// Returns the next message of `source` with this tag, if it has arrived.
    pub fn take(&self, job: &Job, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let mut state = self.state();
        state.take(self.area, job.me, source);
        state.next(source, tag)
    }

    /// Returns a copy of the next message of `source` with this tag, if it has arrived.
    pub fn peek(&self, job: &Job, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let mut state = self.state();
        state.take(self.area, job.me, source);
        state.kept.get(&(source, tag))?.front().copied()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Returns the description of a wait of `call` for a message of a PE, outside of a collective.
pub fn message_wait(call: Call) -> impl Fn(Pe) -> WaitDescription {
    move |pe| WaitDescription {
        call,
        subject: AwaitedObject::Message { from: pe.0 },
    }
}

impl State {
    /// Removes and returns the oldest kept message of `source` with this tag.
    fn next(&mut self, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let Entry::Occupied(mut messages) = self.kept.entry((source, tag)) else {
            return None;
        };
        let message = messages.get_mut().pop_front();
        if messages.get().is_empty() {
            // Each team has a tag of its own, so empty queues would pile up.
            messages.remove();
        }
        message
    }

    /// Returns true if a kept message of `source` is for a blocking call, in which a thread of that
    /// PE waits.
    fn has_other_message(&self, source: Pe) -> bool {
        self.kept
            .keys()
            .any(|(from, tag)| *from == source && *tag as u32 != OF_REQUEST)
    }

    /// Moves the message in the mailbox of `source`, if there is one, to the kept ones, and
    /// acknowledges it.
    fn take(&mut self, area: &FlagArea, me: Pe, source: Pe) {
        let mailbox = area.areas().mailbox(source);
        let taken = self.taken.entry(source).or_default();
        if area.flag(mailbox) == *taken {
            return;
        }

        let mut tag = [0];
        area.read(mailbox + TAG, &mut tag);
        let mut message = [0; MESSAGE];
        area.read(mailbox + CONTENTS, &mut message);

        // After the reads: from now on the sender may store the next message here.
        *taken += 1;
        area.raise(source, area.areas().acknowledged(me), *taken);

        self.kept
            .entry((source, tag[0]))
            .or_default()
            .push_back(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_tag_come_in_order_and_leave_nothing() {
        let mut state = State::default();
        let source = Pe(3);
        assert_eq!(state.next(source, 1), None);

        let messages = VecDeque::from([[7; MESSAGE], [8; MESSAGE]]);
        state.kept.insert((source, 1), messages);
        assert_eq!(state.next(Pe(2), 1), None);
        assert_eq!(state.next(source, 1), Some([7; MESSAGE]));
        assert_eq!(state.next(source, 1), Some([8; MESSAGE]));
        assert!(state.kept.is_empty());
    }
}
