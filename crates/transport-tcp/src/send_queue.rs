//! The queue of data to send on a connection: copied bytes and ranges of memory, in order. Small
//! requests are copied, and sent together in one system call.
//!
//! The kernel reads memory in pieces that may begin and end within words. So memory that other
//! threads or PEs may change meanwhile is copied in whole words before it is sent, a part at a
//! time.
#![allow(unsafe_code)]

use crate::sys::{self, VECTORS};
use rushmem_transport::{LocalBuf, SourceBuf, mem};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

enum Unsent {
    /// This many bytes of [`own`](SendQueue::own), after those of earlier parts.
    Own(usize),
    /// Memory that is valid and unchanged until it is sent.
    Memory(SourceBuf),
    /// Memory that is valid until it is sent, but that others may change.
    Shared(SourceBuf),
}

/// Maximum number of bytes of shared memory that are copied at a time. They fit into the cache of a
/// CPU.
const COPY: usize = 64 << 10;
/// A copy ends at the end of its range, or at the end of a word of this size.
const WORD: usize = 8;

/// The position up to which a queue is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpTo {
    Everything,
    /// The end of the next range of memory, if there is one. Such a range ends a frame.
    EndOfMemory,
}

/// The unsent part of a stream of bytes. Positions count from the start of the stream.
pub(crate) struct SendQueue {
    /// Copied bytes: heads, and the data of small requests and replies.
    own: Vec<u8>,
    /// Bytes of `own` that were sent.
    own_sent: usize,
    /// A copy of the start of the first unsent range of shared memory.
    copy: Vec<u8>,
    /// The start of the unsent bytes in `copy`, which begins with padding that is not sent.
    copy_sent: usize,
    unsent: VecDeque<Unsent>,
    appended: u64,
    sent: u64,
}

impl SendQueue {
    pub(crate) fn new() -> SendQueue {
        SendQueue {
            own: Vec::new(),
            own_sent: 0,
            copy: Vec::new(),
            copy_sent: 0,
            unsent: VecDeque::new(),
            appended: 0,
            sent: 0,
        }
    }

    /// Returns the position of the end of the queue.
    pub(crate) fn appended(&self) -> u64 {
        self.appended
    }

    /// Returns the position up to which the kernel has taken the data.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.appended == self.sent
    }

    /// Returns the number of unsent bytes.
    pub(crate) fn unsent(&self) -> u64 {
        self.appended - self.sent
    }

    /// Returns the number of unsent copied bytes.
    pub(crate) fn own_bytes(&self) -> usize {
        self.own.len() - self.own_sent
    }

    /// Returns the number of unsent parts: runs of copied bytes, and ranges of memory.
    pub(crate) fn n_unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Appends bytes whose number is known at compile time, such as a head.
    pub(crate) fn push<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.own.extend_from_slice(bytes);
        self.record_own(N);
    }

    pub(crate) fn push_all(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
        self.record_own(bytes.len());
    }

    /// Appends a copy of memory, read as `L` says.
    pub(crate) fn push_copy<L: mem::Loads>(&mut self, source: &SourceBuf) {
        let LocalBuf { base, nbytes } = source.range();
        // A long copy reads whole words only where both sides have the same alignment.
        if L::ATOMIC && nbytes > 1 && self.own.len() % WORD != base.addr() % WORD {
            let mut copy = vec![0; base.addr() % WORD];
            source.append_to::<L>(&mut copy);
            self.own.extend_from_slice(&copy[base.addr() % WORD..]);
        } else {
            source.append_to::<L>(&mut self.own);
        }

        self.record_own(nbytes);
    }

    /// Appends memory by reference.
    pub(crate) fn push_memory(&mut self, source: SourceBuf) {
        self.appended += source.nbytes() as u64;
        self.unsent.push_back(Unsent::Memory(source));
    }

    /// Appends memory that others may change until it is sent, by reference. No word of it is torn.
    pub(crate) fn push_shared(&mut self, source: SourceBuf) {
        self.appended += source.nbytes() as u64;
        self.unsent.push_back(Unsent::Shared(source));
    }

    fn record_own(&mut self, nbytes: usize) {
        match self.unsent.back_mut() {
            Some(Unsent::Own(n)) => *n += nbytes,
            _ => self.unsent.push_back(Unsent::Own(nbytes)),
        }
        self.appended += nbytes as u64;
    }

    /// Sends what the kernel takes, at most `up_to` this position. Returns true if the position was
    /// reached.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn flush(&mut self, socket: impl AsFd, up_to: UpTo) -> io::Result<bool> {
        let mut reached = false;
        while !self.is_empty() && !reached {
            let result = match self.unsent.front() {
                Some(&Unsent::Own(nbytes)) if self.unsent.len() == 1 => {
                    sys::send_own(&socket, &self.own[self.own_sent..self.own_sent + nbytes])
                }
                _ => self.send_ranges(&socket, up_to),
            };

            match result {
                Ok(nbytes) => reached = self.advance(nbytes) && up_to == UpTo::EndOfMemory,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    fn send_ranges(&mut self, socket: impl AsFd, up_to: UpTo) -> io::Result<usize> {
        // Only the start of shared memory has been copied, so nothing after the copy can be sent.
        let is_end = |part: &Unsent| match part {
            Unsent::Own(_) => false,
            Unsent::Memory(_) => up_to == UpTo::EndOfMemory,
            Unsent::Shared(_) => true,
        };
        let end = self.unsent.iter().take(VECTORS).position(is_end);
        let n_parts = end.map_or(VECTORS, |index| index + 1);

        if let Some(Unsent::Shared(source)) = end.and_then(|index| self.unsent.get(index))
            && self.copy.is_empty()
        {
            let base = source.range().base.addr();
            let end = base.wrapping_add(COPY) % WORD;
            // Both sides get the same alignment, as in `push_copy`.
            self.copy_sent = base % WORD;
            self.copy.resize(self.copy_sent, 0);
            source.append_first_to::<mem::AtomicLoads>(COPY - end, &mut self.copy);
        }

        let copy = LocalBuf::source(self.copy.as_ptr(), self.copy.len()).skip(self.copy_sent);
        let unsent = &self.own[self.own_sent..];
        let mut own = LocalBuf::source(unsent.as_ptr(), unsent.len());

        let ranges = self.unsent.iter().map(|part| match part {
            &Unsent::Own(nbytes) => {
                let range = own.first(nbytes);
                own = own.skip(nbytes);
                range
            }
            Unsent::Memory(source) => source.range(),
            Unsent::Shared(_) => copy,
        });

        // SAFETY: `own` and `copy` hold bytes; a source is valid until it is sent.
        unsafe { sys::send(&socket, ranges.take(n_parts)) }
    }

    /// Removes sent bytes from the queue. Returns true if a range of memory was sent to its end.
    fn advance(&mut self, mut nbytes: usize) -> bool {
        let mut ended = false;
        self.sent += nbytes as u64;

        while nbytes > 0 {
            let Some(first) = self.unsent.front_mut() else {
                break;
            };
            let left = match first {
                Unsent::Own(left) => *left,
                Unsent::Memory(source) | Unsent::Shared(source) => source.nbytes(),
            };

            let taken = nbytes.min(left);
            nbytes -= taken;
            let gone = taken == left;

            match first {
                Unsent::Own(left) => {
                    *left -= taken;
                    self.own_sent += taken;
                }
                Unsent::Memory(source) => {
                    source.take_first(taken);
                    ended |= gone;
                }
                Unsent::Shared(source) => {
                    source.take_first(taken);
                    self.copy_sent += taken;
                    if self.copy_sent == self.copy.len() {
                        self.copy.clear();
                        self.copy_sent = 0;
                    }
                    if gone {
                        // Frees the buffer, which most connections do not need again.
                        self.copy = Vec::new();
                    }
                    ended |= gone;
                }
            }

            if gone {
                self.unsent.pop_front();
            }
        }

        if self.own_sent == self.own.len() {
            self.own.clear();
            self.own_sent = 0;
        } else if self.own_sent > self.own.len() / 2 {
            self.own.drain(..self.own_sent);
            self.own_sent = 0;
        }
        ended
    }
}
