//! What an application asks for, and what becomes of that in an endpoint.

use crate::done::Entry;
use crate::segment::PIECES;
use crate::word::Amo;
use libfabric_sys as fi;
use std::ffi::c_void;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Write = 1,
    Read,
    /// An atomic operation.
    Update,
    /// One whose old value comes back.
    Fetch,
    Send,
}

impl Kind {
    pub(crate) fn from_number(number: u32) -> Option<Kind> {
        use Kind::{Fetch, Read, Send, Update, Write};
        [Write, Read, Update, Fetch, Send].into_iter().find(|kind| *kind as u32 == number)
    }

    /// What a target must have allowed.
    pub(crate) fn access(self) -> u64 {
        match self {
            Kind::Write | Kind::Update => fi::FI_REMOTE_WRITE,
            Kind::Read => fi::FI_REMOTE_READ,
            Kind::Fetch => fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE,
            Kind::Send => 0,
        }
    }

    /// What the registration of own memory must allow.
    pub(crate) fn own_access(self) -> u64 {
        match self {
            Kind::Write | Kind::Update => fi::FI_WRITE,
            Kind::Read | Kind::Fetch => fi::FI_READ,
            Kind::Send => fi::FI_SEND,
        }
    }

    /// Whether its memory is read alone.
    pub(crate) fn is_source(self) -> bool {
        matches!(self, Kind::Write | Kind::Send)
    }

    /// What its entry says.
    pub(crate) fn entry_flags(self) -> u64 {
        match self {
            Kind::Write => fi::FI_RMA | fi::FI_WRITE,
            Kind::Read => fi::FI_RMA | fi::FI_READ,
            Kind::Update => fi::FI_ATOMIC | fi::FI_WRITE,
            Kind::Fetch => fi::FI_ATOMIC | fi::FI_READ,
            Kind::Send => fi::FI_MSG | fi::FI_SEND,
        }
    }
}

/// What an application asks for.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) kind: Kind,
    /// Of an atomic operation: all the memory that it uses, that of the old value last.
    pub(crate) pieces: &'a [fi::iovec],
    pub(crate) descs: &'a [*mut c_void],
    pub(crate) to: fi::fi_addr_t,
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) amo: Option<Amo>,
    /// It never has an entry.
    pub(crate) silent: bool,
}

impl Request<'_> {
    pub(crate) fn nbytes(&self) -> usize {
        match &self.amo {
            Some(amo) => amo.width,
            None => self.pieces.iter().map(|piece| piece.iov_len).sum(),
        }
    }
}

/// A request that was taken.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) pieces: [fi::iovec; PIECES],
    pub(crate) n_pieces: usize,
    /// Its place among the peers.
    pub(crate) peer: usize,
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) nbytes: usize,
    pub(crate) context: usize,
    pub(crate) amo: Option<Amo>,
    /// It has an entry when it is over.
    pub(crate) completes: bool,
}

impl Operation {
    pub(crate) fn pieces(&self) -> &[fi::iovec] {
        &self.pieces[..self.n_pieces]
    }

    pub(crate) fn entry(&self) -> Entry {
        Entry { context: self.context, flags: self.kind.entry_flags(), nbytes: self.nbytes }
    }
}
