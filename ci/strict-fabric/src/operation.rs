//! Operations: as an application requests them, as an endpoint stores them, and their completions.

use crate::atomic::AtomicOp;
use crate::remote::TargetAccess;
use crate::segment::PIECES;
use libfabric_sys as fi;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;

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

/// An operation, as far as its order depends on it.
#[derive(Clone, Copy)]
pub(crate) struct OrderedOp {
    pub(crate) kind: OpKind,
    pub(crate) nbytes: usize,
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
    /// Returns an operation without data, flags and context.
    #[inline]
    pub(crate) fn new(kind: OpKind, to: fi::fi_addr_t) -> Posted<'static> {
        Posted {
            kind,
            pieces: &[],
            descs: &[],
            to,
            address: 0,
            key: 0,
            context: null_mut(),
            flags: 0,
            amo: None,
            silent: false,
        }
    }

    pub(crate) fn nbytes(&self) -> usize {
        match &self.amo {
            Some(amo) => amo.width,
            None => self.pieces.iter().map(|piece| piece.iov_len).sum(),
        }
    }

    pub(crate) fn target_access(&self) -> TargetAccess {
        TargetAccess {
            key: self.key,
            address: self.address,
            nbytes: self.nbytes(),
            rights: self.kind.access(),
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

    pub(crate) fn target_access(&self) -> TargetAccess {
        TargetAccess {
            key: self.key,
            address: self.address,
            nbytes: self.nbytes,
            rights: self.kind.access(),
        }
    }

    /// Returns what the rules of order depend on.
    pub(crate) fn ordered(&self) -> OrderedOp {
        OrderedOp {
            kind: self.kind,
            nbytes: self.nbytes,
        }
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

/// An entry of a completion queue for a failed operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedOp {
    pub(crate) operation: CompletedOp,
    /// The error code of libfabric.
    pub(crate) error: i32,
}

/// The unread entries of a queue.
pub(crate) struct Completions {
    pub(crate) entries: VecDeque<CompletedOp>,
    pub(crate) errors: VecDeque<FailedOp>,
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

    pub(crate) fn fail(&mut self, operation: CompletedOp, error: i32) {
        self.errors.push_back(FailedOp { operation, error });
    }
}
