//! What a domain shows to its peers: a file without a name that each maps. It has what is registered, an inbox for each
//! endpoint, and the requests that its endpoints send.
//!
//! All of it is made of atomic words, so that a faulty process can do no more than say nonsense. It must never know who may
//! ask for what.
#![allow(unsafe_code)]

use crate::memory::Mapped;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Registrations of a domain.
pub(crate) const REGIONS: usize = 4096;
/// Endpoints of a domain.
pub(crate) const ENDPOINTS: usize = 64;
/// Requests that an endpoint has under way.
pub(crate) const SLOTS: usize = 512;
/// Requests that may wait for an endpoint.
const WAITING: usize = 4096;
/// Bytes that travel with a request.
pub(crate) const INLINE: usize = 256;
/// Pieces of a request's memory.
pub(crate) const PIECES: usize = 4;

/// Registered memory.
pub(crate) struct Region {
    /// Odd while it is in use; each use has another number.
    pub(crate) life: AtomicU64,
    pub(crate) key: AtomicU64,
    pub(crate) base: AtomicU64,
    pub(crate) nbytes: AtomicU64,
    pub(crate) access: AtomicU64,
    /// The endpoint that it belongs to; none is [`ANY`].
    pub(crate) endpoint: AtomicU32,
}

impl Region {
    /// Whether it is in use and belongs to an endpoint.
    pub(crate) fn is_of(&self, endpoint: u32) -> bool {
        self.endpoint.load(Ordering::Relaxed) == endpoint
            && self.life.load(Ordering::Relaxed) % 2 == 1
    }
}

/// No endpoint in particular.
pub(crate) const ANY: u32 = u32::MAX;

/// What became of a request.
pub(crate) const POSTED: u32 = 1;
pub(crate) const TAKEN: u32 = 2;
pub(crate) const DONE: u32 = 3;

/// A request, as its target reads it.
pub(crate) struct Slot {
    pub(crate) state: AtomicU32,
    pub(crate) error: AtomicU32,
    pub(crate) kind: AtomicU32,
    pub(crate) n_pieces: AtomicU32,
    pub(crate) op: AtomicU32,
    pub(crate) address: AtomicU64,
    pub(crate) key: AtomicU64,
    pub(crate) nbytes: AtomicU64,
    /// Addresses and lengths; no pieces mean that the bytes are below.
    pub(crate) pieces: [[AtomicU64; 2]; PIECES],
    pub(crate) operand: AtomicU64,
    pub(crate) condition: AtomicU64,
    pub(crate) old: AtomicU64,
    bytes: [AtomicU64; INLINE / 8],
}

impl Slot {
    /// Takes bytes along, at most [`INLINE`].
    pub(crate) fn pack(&self, bytes: &[u8]) {
        for (place, chunk) in self.bytes.iter().zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// The bytes that were taken along.
    pub(crate) fn unpack(&self) -> [u8; INLINE] {
        let mut bytes = [0; INLINE];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(&self.bytes) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        bytes
    }
}

/// Who asks, and where the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) pid: u32,
    pub(crate) fd: u32,
    pub(crate) endpoint: u32,
    pub(crate) slot: u32,
}

struct Cell {
    /// What the cell's turn is, less its index, so that zeros are the first turn.
    turn: AtomicU64,
    from: AtomicU64,
    what: AtomicU64,
}

/// A queue that many fill and one empties.
pub(crate) struct Inbox {
    next_in: AtomicU64,
    next_out: AtomicU64,
    cells: [Cell; WAITING],
}

impl Inbox {
    /// Whether there was room.
    pub(crate) fn push(&self, letter: Letter) -> bool {
        let mut at = self.next_in.load(Ordering::Relaxed);
        loop {
            let cell = &self.cells[at as usize % WAITING];
            let turn = cell.turn.load(Ordering::Acquire) + at % WAITING as u64;
            if turn < at {
                return false;
            }
            let order = Ordering::Relaxed;
            let taken = match turn == at {
                true => self.next_in.compare_exchange(at, at + 1, order, order),
                false => Err(self.next_in.load(order)),
            };
            match taken {
                Ok(_) => {
                    let Letter { pid, fd, endpoint, slot } = letter;
                    cell.from.store(u64::from(pid) << 32 | u64::from(fd), order);
                    cell.what.store(u64::from(endpoint) << 32 | u64::from(slot), order);
                    cell.turn.store(at + 1 - at % WAITING as u64, Ordering::Release);
                    return true;
                }
                Err(now) => at = now,
            }
        }
    }

    /// The next, for the one who empties it.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Letter> {
        let at = self.next_out.load(Ordering::Relaxed);
        let index = at % WAITING as u64;
        let cell = &self.cells[index as usize];
        if cell.turn.load(Ordering::Acquire) + index != at + 1 {
            return None;
        }
        let (from, what) = (cell.from.load(Ordering::Relaxed), cell.what.load(Ordering::Relaxed));
        cell.turn.store(at + WAITING as u64 - index, Ordering::Release);
        self.next_out.store(at + 1, Ordering::Relaxed);
        let halves = |word: u64| ((word >> 32) as u32, word as u32);
        let ((pid, fd), (endpoint, slot)) = (halves(from), halves(what));
        Some(Letter { pid, fd, endpoint, slot })
    }
}

/// The file's contents.
pub(crate) struct Contents {
    /// So that nobody takes another process's for it.
    pub(crate) nonce: AtomicU64,
    /// Regions from here on were never used.
    pub(crate) regions_used: AtomicU32,
    /// Held by whoever carries out an atomic operation from outside.
    pub(crate) amo: AtomicU32,
    pub(crate) regions: [Region; REGIONS],
    pub(crate) inboxes: [Inbox; ENDPOINTS],
    pub(crate) slots: [[Slot; SLOTS]; ENDPOINTS],
}

/// A domain's file, own or a peer's.
pub(crate) struct Segment {
    mapped: Mapped,
}

impl Segment {
    /// A new one, and the file, which peers find as long as it is open.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn create() -> io::Result<(Segment, File)> {
        // SAFETY: a name that ends with a zero.
        let fd = unsafe { libc::memfd_create(c"strict-fabric".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: opened above, and owned by nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(size_of::<Contents>() as u64)?;
        let segment = Segment { mapped: Mapped::new(&file, 0, size_of::<Contents>())? };
        let nonce =
            u64::from(std::process::id()) << 32 | u64::from(file.as_raw_fd().unsigned_abs());
        segment.nonce.store(nonce ^ 0x5354_5249_4354, Ordering::Release);
        Ok((segment, file))
    }

    /// A peer's.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) fn open(pid: u32, fd: u32) -> io::Result<Segment> {
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}"))?;
        if file.metadata()?.len() != size_of::<Contents>() as u64 {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Segment { mapped: Mapped::new(&file, 0, size_of::<Contents>())? })
    }
}

impl std::ops::Deref for Segment {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        // SAFETY: a mapping of this size, aligned to pages, of atomic integers, for which any bytes are values.
        unsafe { &*self.mapped.base().cast() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_in_order_and_a_full_inbox_takes_none() {
        let (segment, _file) = Segment::create().expect("memory");
        let inbox = &segment.inboxes[3];
        let letter = |slot| Letter { pid: 1, fd: 2, endpoint: 3, slot };
        assert_eq!(inbox.pop(), None);
        for round in 0..3 {
            for slot in 0..WAITING as u32 {
                assert!(inbox.push(letter(slot + round)));
            }
            assert!(!inbox.push(letter(0)));
            for slot in 0..WAITING as u32 {
                assert_eq!(inbox.pop(), Some(letter(slot + round)));
            }
            assert_eq!(inbox.pop(), None);
        }
    }

    #[test]
    fn a_peer_sees_what_is_written() {
        let (segment, file) = Segment::create().expect("memory");
        let fd = file.as_raw_fd().unsigned_abs();
        let peer = Segment::open(std::process::id(), fd).expect("the same file");
        segment.slots[1][2].pack(b"hello, world");
        assert_eq!(&peer.slots[1][2].unpack()[..12], b"hello, world");
    }
}
