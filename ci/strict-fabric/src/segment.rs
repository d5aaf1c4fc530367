//! The memory that a domain shares with its peers: a memfd with a table of its registrations, an
//! inbox for each endpoint, and the requests that its endpoints have sent.
//!
//! It consists of atomic words, so that a faulty peer can only cause wrong values.
#![allow(unsafe_code)]

use crate::memory::PageMapping;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Maximum number of registrations of a domain.
pub(crate) const REGIONS: usize = 4096;
/// Maximum number of endpoints of a domain.
pub(crate) const ENDPOINTS: usize = 64;
/// Maximum number of requests of an endpoint in flight.
pub(crate) const SLOTS: usize = 512;
/// Maximum number of requests in an inbox.
const INBOX_SIZE: usize = 4096;
/// Maximum number of bytes of inline data.
pub(crate) const INLINE: usize = 256;
/// Maximum number of local pieces of a request.
pub(crate) const PIECES: usize = 4;

/// An entry of the table of registrations.
pub(crate) struct Region {
    /// Odd while the entry describes a registration; different for each one.
    pub(crate) generation: AtomicU64,
    pub(crate) key: AtomicU64,
    pub(crate) base: AtomicU64,
    pub(crate) nbytes: AtomicU64,
    pub(crate) access: AtomicU64,
    /// The endpoint that the registration is bound to, or [`ANY_ENDPOINT`].
    pub(crate) endpoint: AtomicU32,
}

impl Region {
    /// Returns true if the entry still describes the registration of this generation.
    #[inline]
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    pub(crate) fn is_bound_to(&self, endpoint: u32) -> bool {
        self.endpoint.load(Ordering::Relaxed) == endpoint
            && self.generation.load(Ordering::Relaxed) % 2 == 1
    }
}

/// The endpoint of a registration that is not bound to one.
pub(crate) const ANY_ENDPOINT: u32 = u32::MAX;

/// Combined with the nonce of a segment, so that other words are unlikely to equal it ("STRICT").
const NONCE_MASK: u64 = 0x5354_5249_4354;

/// The states of a request: submitted, being performed by the target, and done.
pub(crate) const POSTED: u32 = 1;
pub(crate) const TAKEN: u32 = 2;
pub(crate) const DONE: u32 = 3;

/// A request that its target reads.
pub(crate) struct RequestSlot {
    pub(crate) state: AtomicU32,
    pub(crate) error: AtomicU32,
    pub(crate) kind: AtomicU32,
    pub(crate) n_pieces: AtomicU32,
    pub(crate) op: AtomicU32,
    pub(crate) address: AtomicU64,
    pub(crate) key: AtomicU64,
    pub(crate) nbytes: AtomicU64,
    /// Addresses and lengths of the local pieces. Without pieces, the data are inline in `bytes`.
    pub(crate) pieces: [[AtomicU64; 2]; PIECES],
    pub(crate) operand: AtomicU64,
    pub(crate) condition: AtomicU64,
    pub(crate) old: AtomicU64,
    bytes: [AtomicU64; INLINE / 8],
}

impl RequestSlot {
    /// Stores inline data, at most [`INLINE`] bytes.
    pub(crate) fn set_inline(&self, bytes: &[u8]) {
        for (place, chunk) in self.bytes.iter().zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    pub(crate) fn inline(&self) -> [u8; INLINE] {
        let mut bytes = [0; INLINE];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(&self.bytes) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        bytes
    }
}

/// The location of a request: the origin's segment, endpoint and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRef {
    pub(crate) pid: u32,
    pub(crate) fd: u32,
    pub(crate) endpoint: u32,
    pub(crate) slot: u32,
}

struct Cell {
    /// The position in the queue for which the cell is ready, minus the index of the cell, so that
    /// zeros are a valid start.
    turn: AtomicU64,
    /// The process and the descriptor of a request.
    origin: AtomicU64,
    /// The endpoint and the slot of a request.
    slot: AtomicU64,
}

/// Returns a word with these halves.
fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the higher half of a word.
fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// A bounded queue with many producers and one consumer (Vyukov).
pub(crate) struct Inbox {
    next_in: AtomicU64,
    next_out: AtomicU64,
    cells: [Cell; INBOX_SIZE],
}

impl Inbox {
    /// Adds a request. Returns whether there was room.
    pub(crate) fn push(&self, request: RequestRef) -> bool {
        let order = Ordering::Relaxed;
        let mut position = self.next_in.load(order);
        loop {
            let index = position % INBOX_SIZE as u64;
            let cell = &self.cells[index as usize];
            let turn = cell.turn.load(Ordering::Acquire) + index;
            if turn < position {
                // The consumer has not read the request that is one round older.
                return false;
            }
            if turn > position {
                // Another producer has taken this position.
                position = self.next_in.load(order);
                continue;
            }

            let taken = self
                .next_in
                .compare_exchange(position, position + 1, order, order);
            if let Err(current) = taken {
                position = current;
                continue;
            }

            cell.origin.store(joined(request.pid, request.fd), order);
            cell.slot
                .store(joined(request.endpoint, request.slot), order);
            // Publishes the request to the consumer.
            cell.turn.store(position + 1 - index, Ordering::Release);
            return true;
        }
    }

    /// Takes the next request. Only for the consumer.
    #[inline]
    pub(crate) fn pop(&self) -> Option<RequestRef> {
        let position = self.next_out.load(Ordering::Relaxed);
        let index = position % INBOX_SIZE as u64;
        let cell = &self.cells[index as usize];
        if cell.turn.load(Ordering::Acquire) + index != position + 1 {
            return None;
        }

        let origin = cell.origin.load(Ordering::Relaxed);
        let slot = cell.slot.load(Ordering::Relaxed);
        // Gives the cell to the producer of the next round, after the words above were read.
        cell.turn
            .store(position + INBOX_SIZE as u64 - index, Ordering::Release);
        self.next_out.store(position + 1, Ordering::Relaxed);

        Some(RequestRef {
            pid: high(origin),
            fd: origin as u32,
            endpoint: high(slot),
            slot: slot as u32,
        })
    }
}

pub(crate) struct Contents {
    /// Distinguishes the segments of different processes.
    pub(crate) nonce: AtomicU64,
    /// One more than the highest index of a region that was ever used.
    pub(crate) regions_used: AtomicU32,
    /// A lock for atomic operations of the emulated device on this process's memory.
    pub(crate) amo: AtomicU32,
    pub(crate) regions: [Region; REGIONS],
    pub(crate) inboxes: [Inbox; ENDPOINTS],
    pub(crate) slots: [[RequestSlot; SLOTS]; ENDPOINTS],
}

impl Contents {
    /// Returns the slot of a request, whose origin has this segment.
    pub(crate) fn slot(&self, request: &RequestRef) -> &RequestSlot {
        &self.slots[request.endpoint as usize][request.slot as usize]
    }
}

/// A mapped segment, own or of a peer.
pub(crate) struct MappedSegment {
    mapped: PageMapping,
}

impl MappedSegment {
    /// Creates a segment. Peers can open it while the file is open.
    pub(crate) fn create() -> io::Result<(MappedSegment, File)> {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"strict-fabric".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: opened above, and not owned elsewhere.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(size_of::<Contents>() as u64)?;

        let segment = MappedSegment {
            mapped: PageMapping::new(&file, 0, size_of::<Contents>())?,
        };
        let nonce = joined(std::process::id(), file.as_raw_fd().unsigned_abs()) ^ NONCE_MASK;
        segment.nonce.store(nonce, Ordering::Release);
        Ok((segment, file))
    }

    pub(crate) fn open(pid: u32, fd: u32) -> io::Result<MappedSegment> {
        let file = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/fd/{fd}"))?;
        // After the peer has closed its segment, another file may have the descriptor.
        if file.metadata()?.len() != size_of::<Contents>() as u64 {
            return Err(io::ErrorKind::NotFound.into());
        }

        Ok(MappedSegment {
            mapped: PageMapping::new(&file, 0, size_of::<Contents>())?,
        })
    }
}

impl std::ops::Deref for MappedSegment {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        // SAFETY: the mapping has this size, is page-aligned and lives as long as the segment; any
        // bytes are valid atomic integers.
        unsafe { &*self.mapped.base().cast() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_in_order_and_a_full_inbox_refuses_more() {
        let (segment, _file) = MappedSegment::create().expect("memory");
        let inbox = &segment.inboxes[3];
        let request = |slot| RequestRef {
            pid: 1,
            fd: 2,
            endpoint: 3,
            slot,
        };
        assert_eq!(inbox.pop(), None);
        for round in 0..3 {
            for slot in 0..INBOX_SIZE as u32 {
                assert!(inbox.push(request(slot + round)));
            }
            assert!(!inbox.push(request(0)));
            for slot in 0..INBOX_SIZE as u32 {
                assert_eq!(inbox.pop(), Some(request(slot + round)));
            }
            assert_eq!(inbox.pop(), None);
        }
    }

    #[test]
    fn a_peer_sees_what_is_written() {
        let (segment, file) = MappedSegment::create().expect("memory");
        let fd = file.as_raw_fd().unsigned_abs();
        let peer = MappedSegment::open(std::process::id(), fd).expect("the same file");
        segment.slots[1][2].set_inline(b"hello, world");
        assert_eq!(&peer.slots[1][2].inline()[..12], b"hello, world");
    }
}
