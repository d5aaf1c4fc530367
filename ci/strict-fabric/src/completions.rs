//! The unread entries of a completion queue.

use std::collections::VecDeque;

/// A completed operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedOp {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) nbytes: usize,
}

/// The unread entries of a queue.
pub(crate) struct Completions {
    pub(crate) entries: VecDeque<CompletedOp>,
    /// Failed operations, with error codes of libfabric.
    pub(crate) errors: VecDeque<(CompletedOp, i32)>,
    pub(crate) size: usize,
}

impl Completions {
    /// Returns the number of entries for which there is room.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.size.saturating_sub(self.entries.len() + self.errors.len())
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: CompletedOp) {
        self.entries.push_back(entry);
    }

    pub(crate) fn fail(&mut self, entry: CompletedOp, error: i32) {
        self.errors.push_back((entry, error));
    }
}
