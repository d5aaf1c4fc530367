//! Messages between PEs that share no team: a mailbox per source, for one message.
//!
//! A message carries a tag, so that a PE can take part in several agreements at once: a message
//! that was taken from a mailbox for another agreement is kept until it is requested, and the
//! mailbox is free again. A sender waits until its last message to the same PE has been taken.

use crate::call::Call;
use crate::diagnosis::status::WaitDescription;
use crate::job::Job;
use crate::memory::areas::MESSAGE;
use crate::net::flags::{self, FlagArea};
use crate::sync::backoff;
use rushmem_explain::status::Subject;
use rushmem_transport::Pe;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{LazyLock, Mutex};

static MAILBOXES: LazyLock<Mailboxes> = LazyLock::new(Mailboxes::default);

/// Returns the mailboxes of this PE.
pub(crate) fn mailboxes() -> &'static Mailboxes {
    &MAILBOXES
}

/// Describes the wait for a PE to send a message, or to take one.
pub(crate) type DescribeWait<'a> = &'a dyn Fn(Pe) -> WaitDescription;

/// The contents of one message.
pub(crate) type MailboxMessage = [u64; MESSAGE];

/// The lower half of the tags of non-blocking collectives, for which no program waits.
const OF_REQUEST: u32 = u32::MAX;

/// Returns the tag of a message of a non-blocking collective, from another number.
pub(crate) fn tag_of_request(number: u64) -> u64 {
    number << 32 | u64::from(OF_REQUEST)
}

/// This PE's side of all its mailboxes.
#[derive(Default)]
pub(crate) struct Mailboxes(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of messages sent to each PE, and taken from each.
    sent: HashMap<Pe, u64>,
    taken: HashMap<Pe, u64>,
    kept: HashMap<(Pe, u64), VecDeque<MailboxMessage>>,
}

impl Mailboxes {
    /// Sends `message` to `dest`, once its mailbox is free.
    pub(crate) fn send(
        &self,
        describe: DescribeWait<'_>,
        job: &Job,
        dest: Pe,
        tag: u64,
        message: &MailboxMessage,
    ) {
        let internal = flags::area();
        let acknowledged = internal.areas().acknowledged(dest);
        loop {
            let mut state = self.state();
            let sent = state.sent.entry(dest).or_default();
            if internal.flag(acknowledged) == *sent {
                *sent += 1;
                let at = internal.areas().mailbox(job.me());
                internal.write(dest, at + 8, &[tag]);
                internal.write(dest, at + 16, message);
                internal.raise(dest, at, *sent);
                return;
            }
            let waited_for = *sent;
            drop(state);
            // A sender that waits takes messages that others have sent: otherwise threads of
            // several PEs that each wait to send to the next would wait forever.
            backoff::until_rung(
                job,
                || describe(dest),
                || {
                    let is_free = internal.flag(acknowledged) >= waited_for;
                    if !is_free {
                        let mut state = self.state();
                        (0..job.n_pes)
                            .for_each(|source| state.empty(internal, job.me(), Pe(source)));
                    }
                    is_free
                },
            );
        }
    }

    /// Waits for the next message of `source` with this tag. `None` when it sent one with another
    /// tag instead and only one thread of any PE is in the library at a time: a source that is in
    /// another agreement with this PE waits there for this PE, so that both would wait forever.
    pub(crate) fn receive(
        &self,
        describe: DescribeWait<'_>,
        job: &Job,
        source: Pe,
        tag: u64,
    ) -> Option<MailboxMessage> {
        let mut found = None;
        backoff::until_rung(
            job,
            || describe(source),
            || {
                let mut state = self.state();
                state.empty(flags::area(), job.me(), source);
                found = state.next(source, tag);
                found.is_some() || !job.threads_somewhere && state.is_elsewhere(source)
            },
        );
        found
    }

    /// Returns the next message of `source` with this tag, if it has arrived.
    pub(crate) fn take(&self, job: &Job, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let mut state = self.state();
        state.empty(flags::area(), job.me(), source);
        state.next(source, tag)
    }

    /// Returns the next message of `source` with this tag, which is left there, if it has arrived.
    pub(crate) fn peek(&self, job: &Job, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let mut state = self.state();
        state.empty(flags::area(), job.me(), source);
        state.kept.get(&(source, tag))?.front().copied()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Waits for a PE that are of no collective.
pub(crate) fn of_message(call: Call) -> impl Fn(Pe) -> WaitDescription {
    move |pe| (call, Subject::Message { from: pe.0 })
}

impl State {
    /// Returns the oldest kept message of `source` with this tag. The tag is removed with its last
    /// message, since each team has its own.
    fn next(&mut self, source: Pe, tag: u64) -> Option<MailboxMessage> {
        let Entry::Occupied(mut messages) = self.kept.entry((source, tag)) else {
            return None;
        };
        let message = messages.get_mut().pop_front();
        if messages.get().is_empty() {
            messages.remove();
        }
        message
    }

    /// Returns true if a message of `source` is kept that its program waits for.
    fn is_elsewhere(&self, source: Pe) -> bool {
        self.kept.keys().any(|(from, tag)| *from == source && *tag as u32 != OF_REQUEST)
    }

    /// Takes the message in the mailbox of `source`, if there is one.
    fn empty(&mut self, internal: &FlagArea, me: Pe, source: Pe) {
        let at = internal.areas().mailbox(source);
        let taken = self.taken.entry(source).or_default();
        if internal.flag(at) == *taken {
            return;
        }
        let mut tag = [0];
        internal.read(at + 8, &mut tag);
        let mut message = [0; MESSAGE];
        internal.read(at + 16, &mut message);
        *taken += 1;
        internal.raise(source, internal.areas().acknowledged(me), *taken);
        self.kept.entry((source, tag[0])).or_default().push_back(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_tag_come_in_order_and_leave_nothing() {
        let mut state = State::default();
        let (source, message) = (Pe(3), [7; MESSAGE]);
        assert_eq!(state.next(source, 1), None);
        state.kept.insert((source, 1), VecDeque::from([message, [8; MESSAGE]]));
        assert_eq!(state.next(Pe(2), 1), None);
        assert_eq!(state.next(source, 1), Some(message));
        assert_eq!(state.next(source, 1), Some([8; MESSAGE]));
        assert!(state.kept.is_empty());
    }
}
