//! Passes bytes from a node's first PE to all PEs of the node. All PEs read them in place, so that
//! none needs a copy.
//!
//! The bytes lie behind the slices in the memory of the node, but are not symmetric memory: only
//! the first PE can write to them. This module does not interpret them.
#![allow(unsafe_code)]

use crate::error::{Error, Operation};
use crate::mapping::{Mapping, omit_from_core_files};
use rustix::mm::ProtFlags;
use rustix::thread::futex;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The size of the header, which precedes the published bytes: a cache line.
const HEADER: usize = 64;

/// The header of the published bytes, in shared memory.
struct Publication {
    /// The number of publications so far, also the futex on which PEs wait for the next one. The
    /// first PE of the node raises it with release order after it has stored the bytes and their
    /// number, and the others read it with acquire order before they read these.
    times: AtomicU32,
    /// The number of published bytes. Relaxed: `times` orders it.
    nbytes: AtomicUsize,
}

/// The published bytes, mapped into one PE of the node.
#[derive(Debug)]
pub(crate) struct PublishedBytes {
    memory: Mapping,
    /// The number of bytes that fit behind the header.
    room: usize,
    /// The number of publications that this PE has seen. Relaxed: no other process reads it, and
    /// each call counts one publication.
    seen: AtomicU32,
}

impl PublishedBytes {
    /// Returns the size in bytes of the range of a node's memory that is needed to publish `nbytes`
    /// bytes; `None` if it is too large.
    pub(crate) fn range_bytes(nbytes: usize) -> Option<usize> {
        nbytes.checked_add(HEADER)
    }

    /// Maps the range at `offset` of a node's memory, which has room to publish `room` bytes. The
    /// mapping is writable only in the first PE of the node.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn map(
        memory: BorrowedFd<'_>,
        offset: u64,
        room: usize,
        is_first: bool,
    ) -> Result<PublishedBytes, Error> {
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, is_first);

        let nbytes = HEADER + room;
        let memory = Mapping::shared(memory, offset, nbytes, protection)
            .map_err(|e| Error::Refused(Operation::MappingPublished, e))?;
        omit_from_core_files(memory.start(), nbytes);

        Ok(PublishedBytes {
            memory,
            room,
            seen: AtomicU32::new(0),
        })
    }

    fn publication(&self) -> &Publication {
        // SAFETY: the mapping begins at a page, has room for the header, and lives as long as
        // `self`. Any bytes are valid values of the fields, and all PEs access these atomically.
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
    /// This is the first PE of the node, and no PE of the node still uses the bytes of an earlier
    /// call.
    pub(crate) unsafe fn publish(&self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.room,
            "{} bytes, room for {}",
            bytes.len(),
            self.room
        );
        // SAFETY: the destination has room for `bytes`, as checked above. By contract this is the
        // first PE, whose mapping is writable, and no PE reads the destination meanwhile. It is no
        // memory of `bytes`, which safe code has borrowed.
        unsafe {
            self.bytes()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };

        // The number of publications comes last: a PE that sees it sees the bytes and their number.
        let Publication { times, nbytes } = self.publication();
        nbytes.store(bytes.len(), Ordering::Relaxed);
        times.fetch_add(1, Ordering::Release);

        // Wakes all: the kernel takes the number for a signed one. This fails only for an address
        // that is not that of a word.
        let _ = futex::wake(times, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// Waits until bytes are published after those of the last call. Returns them.
    pub(crate) fn wait(&self) -> &[u8] {
        let Publication { times, nbytes } = self.publication();
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        while times.load(Ordering::Acquire) == seen {
            // Every error is an end of the wait, after which the number is compared again: it has
            // changed already, or a signal has come.
            let _ = futex::wait(times, futex::Flags::empty(), seen, None);
        }

        // SAFETY: `publish` has stored these bytes and their number before it raised `times`, which
        // was seen above, and has asserted that they fit the mapping. By its contract they do not
        // change while this result is used.
        unsafe { std::slice::from_raw_parts(self.bytes(), nbytes.load(Ordering::Relaxed)) }
    }
}
