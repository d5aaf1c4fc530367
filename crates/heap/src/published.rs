//! Publishes bytes of a node's first PE to all PEs of the node. All PEs read them in place, so that
//! none has a copy.
//!
//! The bytes lie behind the slices in the memory of the node, but are not symmetric memory: only the
//! first PE can write to them. This module does not interpret them.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::mapping::{Mapping, omit_from_core_files};
use rustix::mm::ProtFlags;
use rustix::thread::futex;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Bytes before those that are published.
const HEADER: usize = 64;

/// The header of a publication, before its bytes.
struct Publication {
    /// The number of publications.
    times: AtomicU32,
    nbytes: AtomicUsize,
}

/// The published bytes, mapped into one PE of the node.
#[derive(Debug)]
pub(crate) struct PublishedBytes {
    memory: Mapping,
    room: usize,
    /// The number of publications that this PE has seen.
    seen: AtomicU32,
}

impl PublishedBytes {
    /// Returns the range of a node's memory for `nbytes` bytes, which only the first PE of the node
    /// writes.
    pub(crate) fn range_bytes(nbytes: usize) -> Option<usize> {
        nbytes.checked_add(HEADER)
    }

    /// Maps the range at `offset` of a node's memory, which has `room` bytes.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn map(
        memory: BorrowedFd<'_>,
        offset: u64,
        room: usize,
        is_first: bool,
    ) -> Result<PublishedBytes, Error> {
        let refused = |e| Error::Refused("mapping what PEs of a node share", e);
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, is_first);
        let nbytes = HEADER + room;
        let memory = Mapping::shared(memory, offset, nbytes, protection).map_err(refused)?;
        omit_from_core_files(memory.start(), nbytes);
        Ok(PublishedBytes { memory, room, seen: AtomicU32::new(0) })
    }

    fn publication(&self) -> &Publication {
        // SAFETY: the start of a range of pages that begins with zeros or what `publish` stored,
        // and is mapped as long as this.
        unsafe { &*self.memory.start().cast() }
    }

    fn bytes(&self) -> *mut u8 {
        self.memory.start().cast::<u8>().wrapping_add(HEADER)
    }

    /// Publishes bytes, in the first PE of the node.
    ///
    /// # Panics
    /// When there is no room for them.
    ///
    /// # Safety
    /// This is the first PE of the node, and no PE of it uses what was published before.
    pub(crate) unsafe fn publish(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room, "{} bytes, room for {}", bytes.len(), self.room);
        // SAFETY: the range has room for them and is writable here; nobody reads it by contract.
        unsafe { self.bytes().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        let Publication { times, nbytes } = self.publication();
        nbytes.store(bytes.len(), Ordering::Relaxed);
        times.fetch_add(1, Ordering::Release);
        // This fails only for an address that is not that of a word.
        let _ = futex::wake(times, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// Waits until bytes are published after those of the last call. Returns them.
    pub(crate) fn wait(&self) -> &[u8] {
        let Publication { times, nbytes } = self.publication();
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        while times.load(Ordering::Acquire) == seen {
            // The call returns at once if the number has changed, and is repeated after a signal.
            let _ = futex::wait(times, futex::Flags::empty(), seen, None);
        }
        // SAFETY: published with this length, within the range. A caller that publishes again knows
        // that nobody uses it any more.
        unsafe { std::slice::from_raw_parts(self.bytes(), nbytes.load(Ordering::Relaxed)) }
    }
}
