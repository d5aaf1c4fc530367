//! Connections of an endpoint, in profiles that need them: each takes a while to be set up, every
//! tenth is refused, and a process may have a limited number of them.

use libfabric_sys as fi;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Posts that fail with `FI_EAGAIN` while a connection is being set up.
const DELAY: u32 = 20;
const REFUSED_ONE_IN: usize = 10;

/// The connections of a process.
#[derive(Default)]
pub(crate) struct ConnectionCounts {
    attempts: usize,
    open: usize,
}

/// The connections of an endpoint, by peer: how many posts are to fail yet.
#[derive(Default)]
pub(crate) struct Connections(HashMap<usize, u32>);

impl Connections {
    /// The result of a post to a peer before its connection is set up, in a process that may have
    /// `most` connections.
    pub(crate) fn refusal(
        &mut self,
        (counts, most): (&Mutex<ConnectionCounts>, usize),
        peer: usize,
    ) -> Option<isize> {
        if most == 0 {
            return None;
        }
        let again = Some(-(fi::FI_EAGAIN as isize));
        match self.0.entry(peer) {
            Entry::Occupied(mut delay) => {
                *delay.get_mut() = delay.get().checked_sub(1)?;
                again
            }
            Entry::Vacant(delay) => {
                let mut counts = counts.lock();
                counts.attempts += 1;
                if counts.attempts.is_multiple_of(REFUSED_ONE_IN) || counts.open == most {
                    return Some(-(fi::FI_ECONNREFUSED as isize));
                }
                counts.open += 1;
                delay.insert(DELAY);
                again
            }
        }
    }

    /// Closes them.
    pub(crate) fn close(&mut self, counts: &Mutex<ConnectionCounts>) {
        counts.lock().open -= self.0.len();
        self.0.clear();
    }
}
