//! The data that wait to be sent on a connection: copied bytes and ranges of memory, in order.
//! Small requests are copied, and leave together in one system call.
//!
//! The kernel reads memory in pieces that begin and end within words, at different times. Memory
//! that others may change meanwhile is therefore copied in whole words when its turn comes: a part
//! of it at a time.
#![allow(unsafe_code)]

use crate::sys::{self, VECTORS};
use rushmem_transport::{LocalBuf, mem};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

enum Unsent {
    /// This many of the copied bytes, which follow those of the part before.
    Own(usize),
    /// Memory that stays valid until it is sent.
    Memory(LocalBuf),
    /// Memory that stays valid until it is sent, but which others may change.
    Shared(LocalBuf),
}

/// The most bytes of such memory that are copied at a time. They fit into the cache of a CPU.
const COPY: usize = 64 << 10;
/// A copy ends at the end of a word of this size.
const WORD: usize = 8;

/// The position up to which a queue is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpTo {
    Everything,
    /// The end of the next range of memory, where there is one, which is the end of what was
    /// appended together.
    EndOfMemory,
}

/// The unsent part of a stream. Its positions count bytes from the stream's start.
pub(crate) struct SendQueue {
    own: Vec<u8>,
    /// The number of of that the own bytes are sent.
    own_sent: usize,
    /// A copy of the start of the first shared memory that is unsent.
    copy: Vec<u8>,
    /// The number of bytes of the copy that are sent.
    copy_sent: usize,
    unsent: VecDeque<Unsent>,
    /// The number of bytes of the first unsent memory that were sent before.
    memory_sent: usize,
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
            memory_sent: 0,
            appended: 0,
            sent: 0,
        }
    }

    /// Returns the position up to which data were appended.
    pub(crate) fn appended(&self) -> u64 {
        self.appended
    }

    /// Returns the position up to which the kernel has the data.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.appended == self.sent
    }

    /// Returns the number of bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.appended - self.sent
    }

    /// Returns the number of copied bytes that wait to be sent.
    pub(crate) fn own_bytes(&self) -> usize {
        self.own.len() - self.own_sent
    }

    /// Parts of the stream that wait.
    pub(crate) fn n_unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Appends a head, or something else whose length is known when it is compiled.
    pub(crate) fn push<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.own.extend_from_slice(bytes);
        self.appended_own(N);
    }

    /// Appends bytes.
    pub(crate) fn push_all(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
        self.appended_own(bytes.len());
    }

    /// Appends a copy of memory, read as `L` says.
    ///
    /// # Safety
    /// The range is valid for such reads.
    pub(crate) unsafe fn push_copy<L: mem::Loads>(&mut self, range: LocalBuf) {
        // A long copy reads whole words only where both sides have the same alignment.
        if L::ATOMIC && range.nbytes > 1 && self.own.len() % WORD != range.base.addr() % WORD {
            let mut copy = vec![0; range.base.addr() % WORD];
            // SAFETY: the same contract.
            unsafe { append::<L>(&mut copy, range) };
            self.own.extend_from_slice(&copy[range.base.addr() % WORD..]);
        } else {
            // SAFETY: the same contract.
            unsafe { append::<L>(&mut self.own, range) };
        }
        self.appended_own(range.nbytes);
    }

    /// Appends memory by reference.
    ///
    /// # Safety
    /// The range stays valid for reads until it is sent or the queue is dropped.
    pub(crate) unsafe fn push_memory(&mut self, range: LocalBuf) {
        self.unsent.push_back(Unsent::Memory(range));
        self.appended += range.nbytes as u64;
    }

    /// Appends memory by reference that others may change until it is sent. No word of it is torn.
    ///
    /// # Safety
    /// The range stays valid for reads by atomics until it is sent or the queue is dropped.
    pub(crate) unsafe fn push_shared(&mut self, range: LocalBuf) {
        self.unsent.push_back(Unsent::Shared(range));
        self.appended += range.nbytes as u64;
    }

    fn appended_own(&mut self, nbytes: usize) {
        match self.unsent.back_mut() {
            Some(Unsent::Own(n)) => *n += nbytes,
            _ => self.unsent.push_back(Unsent::Own(nbytes)),
        }
        self.appended += nbytes as u64;
    }

    /// Returns the next memory that is sent by reference, as it was appended.
    pub(crate) fn next_memory(&self) -> LocalBuf {
        let memory = self.unsent.iter().find_map(|part| match part {
            Unsent::Memory(LocalBuf { base, nbytes }) => Some(LocalBuf {
                base: base.wrapping_sub(self.memory_sent),
                nbytes: nbytes + self.memory_sent,
            }),
            Unsent::Own(_) | Unsent::Shared(_) => None,
        });
        memory.unwrap_or(LocalBuf::EMPTY)
    }

    /// Sends what the kernel takes, up to everything or to the end of the next range of memory;
    /// returns whether that was reached.
    ///
    /// # Errors
    /// The kernel's. If it is EFAULT, the [next memory](SendQueue::next_memory) cannot be read.
    pub(crate) fn flush(&mut self, socket: impl AsFd, up_to: UpTo) -> io::Result<bool> {
        let mut reached = false;
        let mut at_once = up_to;
        while !self.is_empty() && !reached {
            let result = match self.unsent.front() {
                Some(&Unsent::Own(nbytes)) if self.unsent.len() == 1 => {
                    sys::send_own(&socket, &self.own[self.own_sent..self.own_sent + nbytes])
                }
                _ => self.send_ranges(&socket, at_once),
            };
            match result {
                Ok(nbytes) => reached = self.advance(nbytes) && up_to == UpTo::EndOfMemory,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Any of the ranges may be at fault: they are sent one by one, so that it is the
                // next one when it fails again.
                Err(e) if e.raw_os_error() == Some(libc::EFAULT) && at_once == UpTo::Everything => {
                    at_once = UpTo::EndOfMemory;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    fn send_ranges(&mut self, socket: impl AsFd, up_to: UpTo) -> io::Result<usize> {
        // Only the start of shared memory has a copy, so nothing that follows it can be sent yet.
        let is_end = |part: &Unsent| match part {
            Unsent::Own(_) => false,
            Unsent::Memory(_) => up_to == UpTo::EndOfMemory,
            Unsent::Shared(_) => true,
        };
        let end = self.unsent.iter().take(VECTORS).position(is_end);
        let n_parts = end.map_or(VECTORS, |at| at + 1);
        if let Some(Unsent::Shared(range)) = end.and_then(|at| self.unsent.get(at))
            && self.copy.is_empty()
        {
            let end = range.base.addr().wrapping_add(COPY) % WORD;
            // Both sides are aligned alike, as for `push_copy`.
            self.copy_sent = range.base.addr() % WORD;
            self.copy.resize(self.copy_sent, 0);
            // SAFETY: valid by the contract of `push_shared`.
            unsafe { append::<mem::AtomicLoads>(&mut self.copy, range.first(COPY - end)) };
        }
        let copy = LocalBuf::source(self.copy.as_ptr(), self.copy.len()).skip(self.copy_sent);
        let unsent = &self.own[self.own_sent..];
        let mut own = LocalBuf::source(unsent.as_ptr(), unsent.len());
        let ranges = self.unsent.iter().map(|part| match *part {
            Unsent::Own(nbytes) => {
                let range = own.first(nbytes);
                own = own.skip(nbytes);
                range
            }
            Unsent::Memory(range) => range,
            Unsent::Shared(_) => copy,
        });
        // SAFETY: `own` and `copy` hold bytes; memory is valid by the contract of `push_memory`.
        unsafe { sys::send(&socket, ranges.take(n_parts)) }
    }

    /// Takes sent bytes off the queue; returns whether a range of memory was sent to its end.
    fn advance(&mut self, mut nbytes: usize) -> bool {
        let mut ended = false;
        self.sent += nbytes as u64;
        while nbytes > 0 {
            let Some(first) = self.unsent.front_mut() else {
                break;
            };
            let left = match first {
                Unsent::Own(left) => left,
                Unsent::Memory(range) | Unsent::Shared(range) => &mut range.nbytes,
            };
            let taken = nbytes.min(*left);
            *left -= taken;
            nbytes -= taken;
            let gone = *left == 0;
            match first {
                Unsent::Own(_) => self.own_sent += taken,
                Unsent::Memory(range) => {
                    range.base = range.base.wrapping_add(taken);
                    self.memory_sent = if gone { 0 } else { self.memory_sent + taken };
                    ended |= gone;
                }
                Unsent::Shared(range) => {
                    range.base = range.base.wrapping_add(taken);
                    self.copy_sent += taken;
                    if self.copy_sent == self.copy.len() {
                        self.copy.clear();
                        self.copy_sent = 0;
                    }
                    if gone {
                        // A connection that sends no such memory needs no buffer.
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

/// Appends a copy of memory, read as `L` says.
///
/// # Safety
/// The range is valid for such reads.
unsafe fn append<L: mem::Loads>(bytes: &mut Vec<u8>, range: LocalBuf) {
    let start = bytes.len();
    bytes.reserve(range.nbytes);
    let to = bytes.as_mut_ptr().wrapping_add(start);
    // SAFETY: the range is valid by contract, and room for as many bytes was reserved.
    unsafe { mem::copy_bytes::<L>(to, range.base, range.nbytes) };
    // SAFETY: reserved and written above.
    unsafe { bytes.set_len(start + range.nbytes) };
}
