//! What is over of the operations of a queue's endpoints, and was not read yet.

use std::collections::VecDeque;

/// An operation that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) nbytes: usize,
}

/// What is over and was not read.
pub(crate) struct Done {
    pub(crate) entries: VecDeque<Entry>,
    /// With libfabric's numbers.
    pub(crate) errors: VecDeque<(Entry, i32)>,
    pub(crate) size: usize,
}

impl Done {
    /// Entries for which there is room.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.size.saturating_sub(self.entries.len() + self.errors.len())
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    pub(crate) fn fail(&mut self, entry: Entry, error: i32) {
        self.errors.push_back((entry, error));
    }
}
