//! Operations: as an application requests them, as an endpoint stores them, and their completions.

use crate::atomic::AtomicOp;
use crate::segment::PIECES;
use libfabric_sys as fi;
use std::collections::VecDeque;
use std::ffi::c_void;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum OpKind {
    Write = 1,
    Read,
    /// An atomic operation, which fetches the old value.
    Fetch,
    Send,
}

impl OpKind {
    pub(crate) fn from_number(number: u32) -> Option<OpKind> {
        use OpKind::{Fetch, Read, Send, Write};
        [Write, Read, Fetch, Send]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }

    /// Returns the access that the target's registration must permit.
    pub(crate) fn access(self) -> u64 {
        match self {
            OpKind::Write => fi::FI_REMOTE_WRITE,
            OpKind::Read => fi::FI_REMOTE_READ,
            OpKind::Fetch => fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE,
            OpKind::Send => 0,
        }
    }

    /// Returns the access that the registrations of local buffers must permit.
    pub(crate) fn own_access(self) -> u64 {
        match self {
            OpKind::Write => fi::FI_WRITE,
            OpKind::Read | OpKind::Fetch => fi::FI_READ,
            OpKind::Send => fi::FI_SEND,
        }
    }

    /// Returns true if its local buffers are only read.
    pub(crate) fn is_source(self) -> bool {
        matches!(self, OpKind::Write | OpKind::Send)
    }

    pub(crate) fn completion_flags(self) -> u64 {
        match self {
            OpKind::Write => fi::FI_RMA | fi::FI_WRITE,
            OpKind::Read => fi::FI_RMA | fi::FI_READ,
            OpKind::Fetch => fi::FI_ATOMIC | fi::FI_READ,
            OpKind::Send => fi::FI_MSG | fi::FI_SEND,
        }
    }
}

/// An operation as an application requests it.
#[derive(Clone, Copy)]
pub(crate) struct Posted<'a> {
    pub(crate) kind: OpKind,
    /// The local buffers; for an atomic operation, that of the old value is the last.
    pub(crate) pieces: &'a [fi::iovec],
    pub(crate) descs: &'a [*mut c_void],
    pub(crate) to: fi::fi_addr_t,
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) amo: Option<AtomicOp>,
    /// True if it never has a completion.
    pub(crate) silent: bool,
}

impl Posted<'_> {
    pub(crate) fn nbytes(&self) -> usize {
        match &self.amo {
            Some(amo) => amo.width,
            None => self.pieces.iter().map(|piece| piece.iov_len).sum(),
        }
    }
}

/// An operation that an endpoint has accepted.
#[derive(Clone, Copy)]
pub(crate) struct AcceptedOp {
    pub(crate) kind: OpKind,
    pub(crate) pieces: [fi::iovec; PIECES],
    pub(crate) n_pieces: usize,
    pub(crate) peer: usize,
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) nbytes: usize,
    pub(crate) context: usize,
    pub(crate) amo: Option<AtomicOp>,
    pub(crate) completes: bool,
}

impl AcceptedOp {
    pub(crate) fn pieces(&self) -> &[fi::iovec] {
        &self.pieces[..self.n_pieces]
    }

    pub(crate) fn completion(&self) -> CompletedOp {
        CompletedOp {
            context: self.context,
            flags: self.kind.completion_flags(),
            nbytes: self.nbytes,
        }
    }
}

/// An entry of a completion queue.
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
        self.size
            .saturating_sub(self.entries.len() + self.errors.len())
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: CompletedOp) {
        self.entries.push_back(entry);
    }

    pub(crate) fn fail(&mut self, entry: CompletedOp, error: i32) {
        self.errors.push_back((entry, error));
    }
}
