//! The state of the mailboxes of a PE: what it has sent, taken and kept.

use crate::net::flags::FlagArea;
use rushmem_pe::memory::areas::MESSAGE;
use rushmem_transport::Pe;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// The contents of one message.
pub type MailboxMessage = [u64; MESSAGE];

/// The offset of the tag in a mailbox, behind the sequence number.
pub(super) const TAG: usize = 8;
/// The offset of the contents in a mailbox.
pub(super) const CONTENTS: usize = 16;

/// The lower half of the tags of non-blocking collectives, whose messages are sent and received by
/// threads of the library, not of the program.
pub(super) const OF_REQUEST: u32 = u32::MAX;

/// The mailboxes of a PE, and the state of its messages to other PEs.
#[derive(Default)]
pub struct Mailboxes(pub(super) Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    /// The number of messages sent to each PE.
    pub(super) sent: HashMap<Pe, u64>,
    /// The number of messages taken from the mailbox of each PE.
    taken: HashMap<Pe, u64>,
    /// The messages that were taken and not requested yet, by source and tag.
    pub(super) kept: HashMap<(Pe, u64), VecDeque<MailboxMessage>>,
}

impl State {
    /// Removes and returns the oldest kept message of `source` with this tag; `None` if there is
    /// none.
    pub(super) fn next(&mut self, source: Pe, tag: u64) -> Option<MailboxMessage> {
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
    pub(super) fn has_other_message(&self, source: Pe) -> bool {
        self.kept
            .keys()
            .any(|(from, tag)| *from == source && *tag as u32 != OF_REQUEST)
    }

    /// Moves the message in the mailbox of `source`, if there is one, to the kept ones, and
    /// acknowledges it.
    pub(super) fn take(&mut self, area: &FlagArea, me: Pe, source: Pe) {
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
